"""What tests ask of figures, and rows to draw."""

from __future__ import annotations

import itertools

from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.text import Text

from dpmc_papers.plots import style

# Of marks that stand for a kind, whatever its colour.
NEUTRAL = {style.GREY, style.INK, "#000000"}


def overlaps(figure):
    """Return pairs of overlapping texts within each axes."""
    renderer = figure.canvas.get_renderer()
    found = []
    for axis in figure.axes:
        labels = [axis.title, axis.xaxis.label, axis.yaxis.label, *axis.texts]
        for side in (axis.xaxis, axis.yaxis):
            low, high = sorted(side.get_view_interval())
            shown = [tick for tick in side.get_major_ticks() if low <= tick.get_loc() <= high]
            labels += [tick.label1 for tick in shown if tick.label1.get_visible()]
        boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in labels if t.get_text()]
        for k, (text, box) in enumerate(boxes):
            found += [(text, other) for other, b in boxes[:k] if box.overlaps(b)]
    return found


def small(figure):
    """Return texts of a figure that are smaller than allowed, super- and subscripts too."""
    texts = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    return [
        (t.get_text(), t.get_fontsize())
        for t in texts
        if t.get_fontsize() < style.SMALLEST
        or (t.get_text().count("$") > 1 and "^" in t.get_text())
    ]


def beyond(figure):
    """Return texts that run off the edge of a figure by more than a pixel."""
    renderer = figure.canvas.get_renderer()
    whole = figure.bbox
    axes = [text for axis in figure.axes if axis.axison for text in (axis.title, *axis.texts)]
    legends = [text for legend in figure.legends for text in legend.get_texts()]
    titles = [legend.get_title() for legend in figure.legends]
    labels = [label for axis in figure.axes for label in (axis.xaxis.label, axis.yaxis.label)]
    boxes = [
        (text.get_text(), text.get_window_extent(renderer))
        for text in (*axes, *legends, *titles, *figure.texts, *labels)
        if text.get_visible() and text.get_text().strip()
    ]
    return [
        words
        for words, box in boxes
        if box.x0 < -1 or box.y0 < -1 or box.x1 > whole.x1 + 1 or box.y1 > whole.y1 + 1
    ]


def crossing(figure):
    """Return pairs of texts of different panels, or of a panel and a legend, that overlap."""
    renderer = figure.canvas.get_renderer()
    owners = []
    for k, axis in enumerate(figure.axes):
        if not axis.axison:
            continue
        texts = [axis.title, axis.xaxis.label, axis.yaxis.label, *axis.texts]
        for side in (axis.xaxis, axis.yaxis):
            low, high = sorted(side.get_view_interval())
            ticks = [tick for tick in side.get_major_ticks() if low <= tick.get_loc() <= high]
            texts += [tick.label1 for tick in ticks if tick.label1.get_visible()]
        owners += [(k, text) for text in texts]
    for k, legend in enumerate(figure.legends):
        owners += [(-1 - k, text) for text in (*legend.get_texts(), legend.get_title())]
    boxes = [
        (owner, text.get_text(), text.get_window_extent(renderer).shrunk(0.98, 0.9))
        for owner, text in owners
        if text.get_visible() and text.get_text().strip()
    ]
    return [
        (one, other)
        for i, (a, one, box) in enumerate(boxes)
        for b, other, against in boxes[:i]
        if a != b and box.overlaps(against)
    ]


def bare(figure):
    """Return the titles of panels that hold nothing."""
    return [
        axis.get_title()
        for axis in figure.axes
        if axis.axison and not (axis.lines or axis.collections or axis.patches or axis.texts)
    ]


def unexplained(figure):
    """Return legend entries of coloured marks that no panel holds."""
    lines = [line for axis in figure.axes for line in axis.lines]
    held = {(to_hex(line.get_color()), line.get_marker()) for line in lines}
    dots = [dots for axis in figure.axes for dots in axis.collections]
    held |= {(to_hex(c), None) for one in dots for c in one.get_facecolor()}
    return [
        line.get_label()
        for line in _entries(figure)
        if line.get_marker() not in ("None", "") and to_hex(line.get_color()) not in NEUTRAL
        if not {(to_hex(line.get_color()), m) for m in (line.get_marker(), None)} & held
    ]


def ambiguous(figure):
    """Return legend entries that look like another one of their figure."""
    looks = {}
    for line in _entries(figure):
        face = str(line.get_markerfacecolor()) if line.get_marker() != "None" else ""
        look = (to_hex(line.get_color()), line.get_marker(), str(line.get_linestyle()), face)
        dashes = getattr(line, "_dash_pattern", None)
        looks.setdefault((*look, str(dashes), line.get_linewidth()), []).append(line.get_label())
    return [names for names in looks.values() if len(names) > 1]


def _entries(figure):
    """Return the lines of the legends of a figure."""
    handles = [handle for legend in figure.legends for handle in legend.legend_handles]
    return [handle for handle in handles if isinstance(handle, Line2D)]


def shown(figure):
    """Draw a figure, check its texts, and return its axes that hold something."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).draw()
    assert figure.get_figwidth() == style.WIDTH == 5.5
    assert figure.get_figheight() < 8.6
    for check in (overlaps, crossing, beyond, small, bare, unexplained, ambiguous):
        found = check(figure)
        assert not found, f"{check.__name__}: {found}"
    return [axis for axis in figure.axes if axis.axison]


def legend_of(owner):
    legends = owner.legends if hasattr(owner, "legends") else [owner.get_legend()]
    return [text.get_text() for legend in legends for text in legend.get_texts()]


def crossed(**axes):
    """Return a row for each combination of values."""
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
