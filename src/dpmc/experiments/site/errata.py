"""Page of the errata: Markdown to HTML, with a section per document and links to outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token


@dataclass(frozen=True)
class Errata:
    """Errata of all documents.

    Parameters
    ----------
    title : str
        Heading of the page.
    body : str
        HTML below it.
    sections : mapping of str to str
        Heading of each document's section; the key of the document is its place on the page.
    points : mapping of str to int
        How many points the tables of each section have.
    """

    title: str
    body: str
    sections: Mapping[str, str]
    points: Mapping[str, int]


def read(text: str, links: Mapping[str, Mapping[str, str]]) -> Errata:
    """Return the page of the errata.

    Parameters
    ----------
    text : str
        Markdown. A section of a document is headed by its title and, as code in parentheses,
        its key.
    links : mapping of str to mapping of str to str
        For each document, the address of what may stand in its section as code.

    Returns
    -------
    Errata
    """
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(text)
    title, sections, points, key = "", dict[str, str](), dict[str, int](), ""
    inside, headings, column = "", list[str](), 0
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            words = tokens[index + 1].content
            match = re.search(r"\s*\(`(\w+)`\)$", words)
            if token.tag == "h1":
                title = words
            elif token.tag == "h2":
                key = match[1] if match else _place(words)
                sections[key], points[key] = words[: match.start()] if match else words, 0
            token.attrSet("id", key if token.tag == "h2" else f"{key}-{_place(words)}".strip("-"))
        elif token.type in ("thead_open", "tbody_open"):
            inside = token.tag
            headings = [] if inside == "thead" else headings
        elif token.type == "tr_open":
            column = 0
            points[key] = points.get(key, 0) + (inside == "tbody")
        elif token.type in ("th_open", "td_open"):
            if inside == "thead":
                headings.append(tokens[index + 1].content)
                token.attrSet("scope", "col")
            else:
                token.attrSet("data-label", headings[column])
                column += 1
        elif token.type == "inline":
            _link(token, links.get(key, {}))
    start = next((k + 1 for k, t in enumerate(tokens) if t.type == "heading_close"), 0)
    body = parser.renderer.render(tokens[start:], parser.options, {})
    return Errata(title, _accessible(body), sections, points)


def _place(words: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", words.lower()))


def _link(token: Token, links: Mapping[str, str]) -> None:
    """Make links of the code in a line that names something with an address."""
    parts: list[Token] = []
    for child in token.children or ():
        if child.type == "code_inline" and child.content in links:
            opening = Token("link_open", "a", 1)
            opening.attrSet("href", links[child.content])
            parts += [opening, child, Token("link_close", "a", -1)]
        else:
            parts.append(child)
    token.children = parts


def _accessible(html: str) -> str:
    """Keep the roles of tables that a narrow screen shows as cards."""
    html = html.replace("<table>", '<table class="cards" role="table">')
    html = re.sub(r"<(thead|tbody)>", r'<\1 role="rowgroup">', html)
    html = html.replace("<tr>", '<tr role="row">')
    return html.replace("<th ", '<th role="columnheader" ').replace("<td ", '<td role="cell" ')
