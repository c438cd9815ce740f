"""Numbers behind a figure, as one table of what its panels show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection, PathCollection
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

COLUMNS = ["panel", "series", "x_label", "y_label", "x", "y", "x_tick", "y_tick"]

# Of an outline, such as that of a region of a density, at most so many points are recorded.
OUTLINE = 400

_recorded: WeakKeyDictionary[Axes, list[pd.DataFrame]] = WeakKeyDictionary()


def record(axis: Axes, series: str, x: Any, y: Any) -> None:
    """Record the numbers of a panel where its lines and boxes do not show them.

    Of such a panel, no line without a label counts. `x` and `y`, in the units of the data, are
    values or one of shape (m,) and one value.
    """
    values = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
    columns = dict(zip(("x", "y"), map(np.ravel, values), strict=True))
    _recorded.setdefault(axis, []).append(pd.DataFrame({"series": series, **columns}))


def table(figure: Figure) -> pd.DataFrame:
    """Numbers that a figure shows: a table with the columns ``COLUMNS``, one row per point.

    These are the title of its panel (the place of a panel without one), the series, and where
    categories are drawn the words at the ticks. Outlines of densities are thinned to ``OUTLINE``
    points.
    """
    axes = [axis for axis in figure.axes if axis.get_label() != "<colorbar>"]
    parts = [_panel(axis, f"panel {k + 1}") for k, axis in enumerate(axes)]
    whole = pd.concat([part for part in parts if not part.empty] or [_empty()], ignore_index=True)
    return whole[COLUMNS]


def _empty() -> pd.DataFrame:
    return pd.DataFrame(columns=COLUMNS)


def _panel(axis: Axes, place: str) -> pd.DataFrame:
    recorded = _recorded.get(axis, [])
    drawn = [
        pd.DataFrame({"series": name, "x": points[:, 0], "y": points[:, 1]})
        for name, points in _artists(axis, labelled=bool(recorded))
        if len(points)
    ]
    if not recorded and not drawn:
        return _empty()
    points = pd.concat([*recorded, *drawn], ignore_index=True)
    title = " ".join(axis.get_title().split())
    return points.assign(
        panel=title or place,
        x_label=axis.get_xlabel(),
        y_label=axis.get_ylabel(),
        x_tick="" if recorded else _ticks(axis.xaxis, points["x"]),
        y_tick="" if recorded else _ticks(axis.yaxis, points["y"]),
    )


def _artists(axis: Axes, labelled: bool) -> Iterator[tuple[str, Any]]:
    counts: dict[str, int] = {}
    for artist in axis.get_children():
        kind, points = _points(artist)
        if kind and not (labelled and _label(artist) is None):
            counts[kind] = counts.get(kind, 0) + 1
            yield _label(artist) or f"{kind} {counts[kind]}", points


def _points(artist: Artist) -> tuple[str, Any]:
    if isinstance(artist, Line2D):
        # A line across the whole panel has one of its coordinates in shares of the panel.
        axis = artist.axes
        whole = isinstance(axis, Axes) and artist.get_transform() == axis.transData
        return ("line", np.column_stack(artist.get_data())) if whole else ("", ())
    if isinstance(artist, PathCollection):
        return "points", np.asarray(artist.get_offsets(), float)
    if isinstance(artist, ContourSet):
        return "contour", _vertices(artist)
    if isinstance(artist, Collection):
        return "area", _vertices(artist)
    return "", ()


def _vertices(artist: Collection) -> Any:
    outlines = [np.asarray(path.vertices, float) for path in artist.get_paths()]
    whole = np.concatenate(outlines) if outlines else np.empty((0, 2))
    return whole[:: 1 + len(whole) // OUTLINE]


def _label(artist: Artist) -> str | None:
    name = str(artist.get_label())
    return None if name.startswith("_") or not name else name


def _ticks(side: Any, values: pd.Series) -> list[str]:
    """Words at the ticks nearest to values, where ticks are words."""
    places = side.get_ticklocs()
    words = [text.get_text().replace("\n", " ") for text in side.get_ticklabels()]
    letters = "".join(words)
    if "$" in letters or not any(letter.isalpha() for letter in letters):
        return [""] * len(values)
    nearest = np.abs(np.asarray(values, float)[:, None] - places).argmin(axis=1)
    return [words[k] for k in nearest]
