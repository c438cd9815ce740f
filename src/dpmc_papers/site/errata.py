"""Page of the errata: Markdown to HTML, with an address for each point and links to outputs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from dpmc.types import DpmcError
from dpmc_papers.site import markdown

# What the list below the title of a point says, in this order.
PARTS = ["Claim", "Correction", "Evidence"]


@dataclass(frozen=True)
class Point:
    """One point of the errata.

    Parameters
    ----------
    anchor : str
        Its address on the page, the same as that of its heading on GitHub.
    title : str
    """

    anchor: str
    title: str


@dataclass(frozen=True)
class Chapter:
    """A section of the errata.

    Parameters
    ----------
    anchor : str
        Its address on the page: the key of the document, if it is about one.
    title : str
    body : str
        HTML below the title.
    points : tuple of Point
        In the order in which they stand.
    """

    anchor: str
    title: str
    body: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Errata:
    """Errata of all documents.

    Parameters
    ----------
    title : str
        Heading of the page.
    body : str
        HTML below it, before the first chapter.
    chapters : tuple of Chapter
    """

    title: str
    body: str
    chapters: tuple[Chapter, ...]

    @property
    def points(self) -> dict[str, int]:
        """Return how many points each chapter has."""
        return {chapter.anchor: len(chapter.points) for chapter in self.chapters}


def read(text: str, links: Mapping[str, Mapping[str, str]]) -> Errata:
    """Return the page of the errata.

    Parameters
    ----------
    text : str
        Markdown. A chapter about a document is headed by its title and, as code in parentheses,
        its key. A point is a heading of the fourth level, above a list of ``PARTS``.
    links : mapping of str to mapping of str to str
        For each document, the address of what may stand in its chapter as code.

    Returns
    -------
    Errata

    Raises
    ------
    DpmcError
        If a point lacks one of its parts, or two headings have the same address.
    """
    first, *others = _split(markdown.parse(text), "h2")
    title = first[1].content if first else ""
    chapters = tuple(_chapter(tokens, links) for tokens in others)
    headings = [*(chapter.anchor for chapter in chapters), *_headings(others)]
    if twice := sorted(name for name, number in Counter(headings).items() if number > 1):
        raise DpmcError(f"errata: several headings have the address {', '.join(twice)}")
    return Errata(title, markdown.html(first[3:]), chapters)


def _split(tokens: Sequence[Token], *tags: str) -> list[list[Token]]:
    """Return what stands before the first heading of these levels, and from each of them on."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.type == "heading_open" and token.tag in tags:
            parts.append([])
        parts[-1].append(token)
    return parts


def _headings(chapters: Iterable[Sequence[Token]]) -> Iterator[str]:
    """Return the addresses of all headings inside of chapters."""
    for tokens in chapters:
        for part in _split(tokens, "h3", "h4")[1:]:
            yield markdown.address(part[1].content)


def _chapter(tokens: list[Token], links: Mapping[str, Mapping[str, str]]) -> Chapter:
    title = tokens[1].content
    key = re.search(r"\s*\(`(\w+)`\)$", title)
    anchor = key[1] if key else markdown.address(title)
    for token in tokens:
        if token.children is not None:
            token.children = markdown.linked(token.children, str, links.get(anchor, {}))
    introduction, *parts = _split(tokens[3:], "h3", "h4")
    body, points = [markdown.html(introduction)], []
    for part in parts:
        name = part[1].content
        place = markdown.address(name)
        part[0].attrSet("id", place)
        if part[0].tag == "h4":
            _check(name, part)
            points.append(Point(place, name))
            _point_at(part, name)
        shown = markdown.html(part)
        body.append(f'<div class="point">\n{shown}</div>\n' if part[0].tag == "h4" else shown)
    return Chapter(anchor, title[: key.start()] if key else title, "".join(body), tuple(points))


def _check(name: str, tokens: Sequence[Token]) -> None:
    """Refuse a point that is no list of its parts."""
    items = [
        re.match(r"\*\*(\w+)\.\*\*\s+\S", tokens[k + 2].content)
        for k, token in enumerate(tokens)
        if token.type == "list_item_open" and token.level == 1
    ]
    found = [item[1] if item else "none" for item in items]
    if found != PARTS:
        raise DpmcError(f"errata: {name!r} must be a list of {PARTS}, got {found}")


def _point_at(tokens: Sequence[Token], name: str) -> None:
    """Let the heading of a point link to itself, and mark the list of its parts."""
    opening = Token("link_open", "a", 1)
    opening.attrs = {
        "class": "here",
        "href": f"#{markdown.address(name)}",
        "aria-label": f"Link to: {name}",
    }
    sign = Token("text", "", 0)
    sign.content = "#"
    space = Token("text", "", 0)
    space.content = "\N{NO-BREAK SPACE}"
    children = tokens[1].children or []
    tokens[1].children = [*children, space, opening, sign, Token("link_close", "a", -1)]
    next(token for token in tokens if token.type == "bullet_list_open").attrSet("class", "parts")
