"""What tests ask of figures."""

from __future__ import annotations


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


def shown(figure):
    """Draw a figure and return its axes that hold something."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).draw()
    assert figure.get_figwidth() == 6.75
    assert figure.get_figheight() < 9.5
    assert overlaps(figure) == []
    return [axis for axis in figure.axes if axis.axison]


def legend_of(owner):
    legends = owner.legends if hasattr(owner, "legends") else [owner.get_legend()]
    return [text.get_text() for legend in legends for text in legend.get_texts()]
