"""Tables 6.1 and 6.2 in the layout of the document [alparslan2023thesis]."""

from __future__ import annotations

import math

from dpmc_papers.outputs import _printed, _statsel_tables
from dpmc_papers.outputs._layout import Cell, Layout, block
from dpmc_papers.outputs._printed import Printed
from dpmc_papers.pipeline.results import Context

TITLE = "Alparslan 2023, Table {}: {}. Ours, and in parentheses the printed number"
# Blocks of Table 6.1: the label of each column.
CHAINS = {
    "As printed": {"pmmh": "pmmh-as_published", "mhaar": "mhaar-as_published"},
    "Algorithm 10 with the right weights": {"pmmh": "pmmh-corrected"},
    "Proposals as wide as serves mixing": {"pmmh": "pmmh-tuned", "mhaar": "mhaar-tuned"},
}
UNRELIABLE = "†"
# Blocks of Table 6.2.
ESTIMATES = {"As published, Algorithm 12": "exact", "By quadrature": "quadrature"}


def table6_1(context: Context) -> Layout:
    """Table 6.1: integrated autocorrelation times by the number of particles."""
    long = _statsel_tables.table6_1(context)
    times = _printed.numbers(long, ["label", "num_particles"], "iac")
    reliable = _printed.numbers(long, ["label", "num_particles"], "reliable")
    printed = Printed(context.published, "T-6.1")
    counts = printed.values("num_particles") or sorted(set(long["num_particles"]))
    blocks = []
    for title, labels in CHAINS.items():

        def cell(count: int, method: str, labels: dict[str, str] = labels) -> Cell:
            if method not in labels:
                return Cell()
            number = printed.find(label=f"{method}-as_published", num_particles=count)
            at = (labels[method], count)
            mark = UNRELIABLE if reliable.get(at) == 0 else ""
            return _printed.cell(times.get(at, math.nan), number, 2, mark)

        chosen = context.metrics[context.metrics["label"].isin(labels.values())]
        if len(chosen):
            rows = {count: [f"{count:g}"] for count in counts}
            blocks.append(block(_printed.titled(title, chosen), rows, ("pmmh", "mhaar"), cell))
    marks = [c.mark for body in blocks for row in body.cells for c in row]
    note = f"{UNRELIABLE} No chain is a hundred times as long as this time: too short to tell it."
    return Layout(
        TITLE.format("6.1", "integrated autocorrelation times"),
        ("N",),
        ("Algorithm 10", "Algorithm 11"),
        tuple(blocks),
        notes=(note,) if any(marks) else (),
    )


def table6_2(context: Context) -> Layout:
    """Table 6.2: mean squared errors from the median and from the maximum."""
    long = _statsel_tables.table6_2(context)
    errors = _printed.numbers(long, ["method", "statistic", "theta"], "mse")
    printed = Printed(context.published, "T-6.2")
    thetas = printed.values("theta") or sorted(set(long["theta"]))
    rows = {name: [name] for name in ("median", "max")}
    blocks = []
    for title, method in ESTIMATES.items():

        def cell(statistic: str, theta: float, method: str = method) -> Cell:
            ours = errors.get((method, statistic, theta), math.nan)
            return _printed.cell(ours, printed.find(statistic=statistic, theta=theta), 3)

        chosen = context.metrics[context.metrics["method"].eq(method)]
        if len(chosen):
            blocks.append(block(_printed.titled(title, chosen), rows, thetas, cell))
    return Layout(
        TITLE.format("6.2", "mean squared error for median and maximum"),
        ("Statistic",),
        tuple(f"θ = {theta:g}" for theta in thetas),
        tuple(blocks),
    )
