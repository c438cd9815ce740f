"""The text on a document in `docs/`, for its page: the finding, the first lines, and the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from markdown_it.token import Token

from dpmc_papers.site import markdown
from dpmc_papers.site.sources import Source

PUBLISHED = "../results/published/"
# Texts that have a page on the site.
PAGES = {"errata.md": "errata.html", "verdicts.md": "verdicts.html"}


@dataclass(frozen=True)
class Text:
    """The text on a document, for one page of the site.

    Parameters
    ----------
    finding, lead : str
        HTML: the sentence in bold that it starts with, and the rest of this paragraph.
    body : str
        HTML of what follows.
    words : str
        The finding without markup.
    figure : str
        The first figure that the text names and the results have, else their first; empty if
        there is none.
    """

    finding: str = ""
    lead: str = ""
    body: str = ""
    words: str = ""
    figure: str = ""


def read(source: Source, keys: Sequence[str], root: str, names: Mapping[str, str]) -> Text:
    """Return the text on a document.

    Parameters
    ----------
    source : Source
        Its `text` is that of `docs/<key>.md`.
    keys : sequence of str
        Documents with a page on the site.
    root : str
        Way from the page to the folder of the site: "." or "..".
    names : mapping of str to str
        The address of what may stand as code.
    """
    shown = _figure(source)
    tokens = markdown.parse(source.text)
    first = next((k for k, t in enumerate(tokens) if t.type == "paragraph_open"), None)
    if first is None:
        return Text(figure=shown)
    places = Places(tuple(keys), root, source)
    line, rest = tokens[first + 1], tokens[first + 3 :]
    bold, remaining = _split(line.children or [])
    words = markdown.plain(_inline(bold))
    return Text(
        finding=markdown.render([_inline(bold)], places.resolve, names).strip(),
        lead=markdown.render([_inline(remaining)], places.resolve, names).strip(),
        body=sized(markdown.render(rest, places.resolve, names, 1, "text-"), source),
        words=words,
        figure=shown,
    )


@dataclass(frozen=True)
class Places:
    """Where on the site a link of a text in `docs/` leads to.

    Parameters
    ----------
    keys : tuple of str
        Documents with a page on the site.
    root : str
        Way from the page to the folder of the site.
    source : Source, optional
        The document that the text is about.
    """

    keys: tuple[str, ...]
    root: str
    source: Source | None = None

    def resolve(self, target: str) -> str | None:
        """Return the address of a link or picture; None where the site has nothing of the kind."""
        if re.match(r"[a-z]+:", target):
            return target
        path, _, place = target.partition("#")
        if not path:
            return target
        if path in PAGES:
            place = place or (self.source.key if self.source and path == "errata.md" else "")
            return f"{self.root}/{PAGES[path]}" + (f"#{place}" if place else "")
        if path.startswith(PUBLISHED):
            return self._published(PurePosixPath(path.removeprefix(PUBLISHED)))
        key = path.removesuffix(".md")
        return f"{self.root}/{key}/index.html" if key in self.keys else None

    def _published(self, path: PurePosixPath) -> str | None:
        source, name = self.source, path.name
        if source is None or path.parts[0] != source.key or len(path.parts) < 2:
            return None
        if path.suffix == ".png" and path.stem in source.outputs("figure"):
            name = f"{path.stem}.svg"
        if name not in source.all_files():
            return None
        return name if self.root == ".." else f"{self.root}/{source.key}/{name}"


def sized(html: str, source: Source) -> str:
    """Give pictures of figures their width and height, and a link to themselves."""

    def with_size(match: re.Match[str]) -> str:
        width, height = source.size(PurePosixPath(match[1]).stem)
        return (
            f'<a class="whole" href="{match[1]}">{match[0][:-3].rstrip()} '
            f'width="{width}" height="{height}" /></a>'
        )

    return re.sub(r'<img src="([^"]+\.svg)"[^>]*/>', with_size, html)


def page(text: str, keys: Sequence[str]) -> tuple[str, str]:
    """Return the title and the HTML of a text that is a page of its own in the site's folder."""
    tokens = markdown.parse(text)
    start = next((k + 1 for k, t in enumerate(tokens) if t.type == "heading_close"), 0)
    title = markdown.plain(tokens[1]) if start else ""
    return title, markdown.render(tokens[start:], Places(tuple(keys), ".").resolve, {})


def _figure(source: Source) -> str:
    """Return the first figure that the text names, else the first of the results."""
    figures = source.outputs("figure")
    named = (name for name in re.findall(r"\bfigure\w+", source.text) if name in figures)
    return next(named, figures[0] if figures else "")


def _split(children: Sequence[Token]) -> tuple[list[Token], list[Token]]:
    """Return what a line has in bold at its start, without the marks, and the rest of it."""
    if not children or not (start := _bold(children)):
        return [], list(children)
    end = next(k for k, token in enumerate(children) if token.type == "strong_close")
    return list(children[start:end]), list(children[end + 1 :])


def _bold(children: Sequence[Token]) -> int:
    """Return the place after the mark that bold starts with; 0 where a line starts otherwise."""
    for k, token in enumerate(children):
        if token.type == "strong_open":
            return k + 1
        if token.content.strip():
            return 0
    return 0


def _inline(children: list[Token]) -> Token:
    return Token("inline", "", 0, children=children)
