"""Picture of the stages of the workflow, from the graph of rules that Snakemake prints.

uv run snakemake --rulegraph --config scale=smoke | uv run python docs/examples/rulegraph.py
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.patches import Patch

Edge = tuple[str, str]
NODE = re.compile(r'^\s*(\d+)\[label = "(\w+)"', re.MULTILINE)
EDGE = re.compile(r"^\s*(\d+) -> (\d+)", re.MULTILINE)
# Rules that hold together what others make, and tables that have files of their own.
WITHOUT_NUMBERS = {"all", "default", "provenance"}
SAME = {"numbered_table": "table", "rows": "problem"}
# Where each stage stands: column and row.
PLACES = {
    "raw": (0, 1),
    "problem": (1.3, 1),
    "chain": (2.7, 1),
    "metrics": (4, 1),
    "study": (4, 0),
    "accounting": (4, -1),
    "figure": (5.2, 1),
    "table": (5.2, 0),
    "verdict": (5.2, -1),
    "guarantees": (5.2, -2),
    "page": (6.4, 1),
    "site": (7.4, 1),
}
# What the stages of a column are, with its colour: from the left.
COLUMNS = {
    "data": "#dceaf7",
    "chains": "#fbe3cf",
    "measured": "#e4f0dc",
    "judged and shown": "#f4e6f3",
    "pages": "#ffffff",
}
BEGINS = (0, 2, 3.5, 4.8, 6)
# From the box to the ends of its arrows, in points.
GAP = 2


def edges_of(text: str) -> set[Edge]:
    """Return which stage is read by which, in the dot language of Snakemake's rule graph."""
    names = {number: SAME.get(name, name) for number, name in NODE.findall(text)}
    pairs = {(names[a], names[b]) for a, b in EDGE.findall(text)}
    return {(a, b) for a, b in pairs if a != b and not WITHOUT_NUMBERS & {a, b}}


def without_detours(edges: set[Edge]) -> set[Edge]:
    """Return the edges that no longer way says already."""

    def reached(start: str, left_out: Edge | None = None) -> set[str]:
        nexts = {b for a, b in edges if a == start and (a, b) != left_out}
        return nexts.union(*(reached(name) for name in nexts))

    return {edge for edge in edges if edge[1] not in reached(edge[0], edge)}


def draw(edges: set[Edge], path: Path) -> None:
    """Draw stages as boxes, from left to right."""
    names = sorted({name for edge in edges for name in edge})
    plt.rcParams.update({"svg.hashsalt": "dpmc", "svg.fonttype": "none", "font.size": 9})
    figure, axes = plt.subplots(figsize=(8.5, 3.2), layout="constrained")
    boxes = {}
    for name in names:
        x, y = PLACES[name]
        colour = list(COLUMNS.values())[sum(x >= begin for begin in BEGINS) - 1]
        box = {"boxstyle": "round,pad=0.35", "fc": colour, "ec": "#555555"}
        text = axes.text(x, y, name, ha="center", va="center", bbox=box, zorder=2)
        boxes[name] = text.get_bbox_patch()
    for first, second in sorted(edges):
        style = {"arrowstyle": "-|>", "color": "#8a8a8a", "shrinkA": GAP, "shrinkB": GAP}
        ends = {"patchA": boxes[first], "patchB": boxes[second]}
        axes.annotate("", PLACES[second], PLACES[first], arrowprops=style | ends, zorder=1)
    handles = [Patch(fc=colour, ec="#555555", label=name) for name, colour in COLUMNS.items()]
    axes.legend(handles=handles, loc="lower left", frameon=False)
    axes.set(xlim=(-0.5, 7.9), ylim=(-2.5, 1.5))
    axes.axis("off")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    draw(without_detours(edges_of(sys.stdin.read())), Path("docs/images/rulegraph.svg"))
