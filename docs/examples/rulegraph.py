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

Edge = tuple[str, str]
NODE = re.compile(r'^\s*(\d+)\[label = "(\w+)"', re.MULTILINE)
EDGE = re.compile(r"^\s*(\d+) -> (\d+)", re.MULTILINE)
# Rules that hold together what others make, and tables that have files of their own.
WITHOUT_NUMBERS = {"all", "default", "provenance", "site"}
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
    "page": (6.3, 1),
}
COLOURS = {0: "#dceaf7", 1.3: "#dceaf7", 2.7: "#fbe3cf", 4: "#e4f0dc", 5.2: "#f4e6f3"}
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
    figure, axes = plt.subplots(figsize=(8.5, 3.6), layout="constrained")
    boxes = {}
    for name in names:
        x, y = PLACES[name]
        box = {"boxstyle": "round,pad=0.35", "fc": COLOURS.get(x, "white"), "ec": "#555555"}
        text = axes.text(x, y, name, ha="center", va="center", bbox=box, zorder=2)
        boxes[name] = text.get_bbox_patch()
    for first, second in sorted(edges):
        style = {"arrowstyle": "-|>", "color": "#8a8a8a", "shrinkA": GAP, "shrinkB": GAP}
        ends = {"patchA": boxes[first], "patchB": boxes[second]}
        axes.annotate("", PLACES[second], PLACES[first], arrowprops=style | ends, zorder=1)
    axes.set(xlim=(-0.5, 6.8), ylim=(-2.5, 2.5))
    axes.axis("off")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    draw(without_detours(edges_of(sys.stdin.read())), Path("docs/images/rulegraph.svg"))
