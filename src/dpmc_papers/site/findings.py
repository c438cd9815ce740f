"""Cards of the front page: of each document a sentence, a picture and two marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmc_papers.site import strip, texts
from dpmc_papers.site.sources import Source
from dpmc_papers.verdicts.privacy_mark import ROUNDING

AS_PUBLISHED = "as_published"


@dataclass(frozen=True)
class Finding:
    """What a card of the front page says of a document.

    Parameters
    ----------
    source : Source
    text : Text
    picture : str
        Address of a picture of the document; empty if there is none.
    width, height : int
        Of the picture, in pixels.
    cells : list of Cell
        Its claims.
    held, asked : int
        At how many settings, published and with an epsilon that was asked for, it holds.
    """

    source: Source
    text: texts.Text
    picture: str
    width: int
    height: int
    cells: list[strip.Cell]
    held: int
    asked: int

    @property
    def out(self) -> dict[str, int]:
        """Return how many claims come out or not."""
        return strip.out(self.cells)

    @property
    def numbers(self) -> dict[str, int]:
        """Return how many printed numbers come out or not."""
        return strip.numbers(self.source.verdicts)


def findings(sources: Sequence[Source]) -> list[Finding]:
    """Return the cards of the front page, one per document."""
    keys = [source.key for source in sources]
    return [_finding(source, keys) for source in sources]


def _finding(source: Source, keys: Sequence[str]) -> Finding:
    text = texts.read(source, keys, ".", {})
    width, height = source.size(text.figure) if text.figure else (0, 0)
    held, asked = private_settings(source)
    return Finding(
        source=source,
        text=text,
        picture=f"{source.key}/{smaller(source, text.figure)}" if text.figure else "",
        width=width,
        height=height,
        cells=strip.cells(source.verdicts),
        held=held,
        asked=asked,
    )


def smaller(source: Source, figure: str) -> str:
    """Return the file of a figure that takes less to load."""
    files = [f"{figure}.{ending}" for ending in ("svg", "png")]
    return min(files, key=lambda name: (source.folder / name).stat().st_size)


def private_settings(source: Source) -> tuple[int, int]:
    """Return at how many published settings the epsilon that was asked for holds, and of how many.

    A setting is a method on a problem at a finite epsilon, as published.
    """
    table = source.facts.table
    asked = table[(table["variant"] == AS_PUBLISHED) & np.isfinite(table["epsilon"])]
    held = asked["guarantee_epsilon"] <= asked["epsilon"] * (1 + ROUNDING)
    return int(held.sum()), len(asked)
