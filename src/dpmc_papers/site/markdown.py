"""Markdown to the HTML of a page: links that lead somewhere, tables that a phone can show."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

# The address of a link or picture on the site; None where the site has nothing of the kind.
Resolve = Callable[[str], str | None]


PARSER = MarkdownIt("commonmark").enable("table")


def parse(text: str) -> list[Token]:
    """Return the tokens of a text."""
    return PARSER.parse(text)


def html(tokens: Sequence[Token]) -> str:
    """Return tokens as HTML, as they are."""
    return str(PARSER.renderer.render(tokens, PARSER.options, {}))


def address(title: str) -> str:
    """Return the address of a heading on a page, as GitHub and Sphinx make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def render(
    tokens: Sequence[Token],
    resolve: Resolve,
    names: Mapping[str, str],
    deeper: int = 0,
    prefix: str = "",
) -> str:
    """Return HTML.

    Parameters
    ----------
    tokens : sequence of Token
        They are changed.
    resolve : callable
        A link that it knows nothing of becomes plain text.
    names : mapping of str to str
        The address of what may stand as code.
    deeper : int
        How many levels headings move down.
    prefix : str
        What the places of headings start with.
    """
    headings, column, inside = list[str](), 0, ""
    for index, token in enumerate(tokens):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{int(token.tag[1]) + deeper}"
            if token.nesting == 1:
                token.attrSet("id", prefix + address(plain(tokens[index + 1])))
        elif token.type in ("thead_open", "tbody_open"):
            inside = token.tag
            headings = [] if inside == "thead" else headings
        elif token.type == "tr_open":
            column = 0
        elif token.type == "th_open":
            headings.append(plain(tokens[index + 1]))
            token.attrSet("scope", "col")
        elif token.type == "td_open":
            token.attrSet("data-label", headings[column])
            column += 1
        elif token.type == "inline":
            token.children = linked(token.children or [], resolve, names)
    return _accessible(html(tokens))


def plain(token: Token) -> str:
    """Return the words of a line, without markup."""
    return "".join(
        " " if child.type in ("softbreak", "hardbreak") else child.content
        for child in token.children or ()
        if child.type != "image"
    )


def linked(children: Sequence[Token], resolve: Resolve, names: Mapping[str, str]) -> list[Token]:
    """Return the parts of a line with addresses of the site; links that lead nowhere go."""
    parts: list[Token] = []
    kept = list[bool]()
    for child in children:
        if child.type == "link_open":
            address = resolve(str(child.attrs["href"]))
            kept.append(address is not None)
            if address is not None:
                child.attrSet("href", address)
                parts.append(child)
        elif child.type == "link_close":
            if kept.pop():
                parts.append(child)
        elif child.type == "image":
            address = resolve(str(child.attrs["src"]))
            if address is not None:
                child.attrSet("src", address)
                child.attrSet("loading", "lazy")
                parts.append(child)
        elif child.type == "code_inline" and child.content in names and not kept:
            opening = Token("link_open", "a", 1)
            opening.attrSet("href", names[child.content])
            parts += [opening, child, Token("link_close", "a", -1)]
        else:
            parts.append(child)
    return parts


def _accessible(html: str) -> str:
    """Let keys scroll code; keep the roles of tables that a narrow screen shows as cards."""
    html = html.replace("<pre>", '<pre tabindex="0">')
    html = html.replace("<table>", '<table class="cards" role="table">')
    html = re.sub(r"<(thead|tbody)>", r'<\1 role="rowgroup">', html)
    html = html.replace("<tr>", '<tr role="row">')
    return html.replace("<th ", '<th role="columnheader" ').replace("<td ", '<td role="cell" ')
