"""Tables in the layout of their document, as a page shows them: their Markdown as HTML."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup, escape

from dpmc_papers.site import captions, markdown

# Of cells: what the parser writes, and how the tables of a page have it.
HEADS = {
    '<th style="text-align:right"': '<th scope="col" class="number"',
    '<td style="text-align:right"': '<td class="number"',
    "<th>": '<th scope="col">',
}


def html(folder: Path, name: str, files: Sequence[str]) -> Markup:
    """Return a table in the layout of its document as HTML.

    Parameters
    ----------
    folder : Path
    name : str
        The table.
    files : sequence of str
        Its files in this layout; one of them is Markdown.

    Returns
    -------
    markupsafe.Markup
        Empty without files.
    """
    texts = [folder / file for file in files if file.endswith(".md")]
    if not texts:
        return Markup()
    body = markdown.html(markdown.parse(texts[0].read_text(encoding="utf-8")))
    for plain, ours in HEADS.items():
        body = body.replace(plain, ours)
    places = itertools.count(1)
    body = re.sub("<table>", lambda _: _opened(name, next(places)), body)
    return Markup(body.replace("</table>", "</table></div>"))


def _opened(name: str, place: int) -> str:
    label = escape(f"{captions.title(name)}, part {place}")
    start = f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
    return f'{start}<table class="grid">'
