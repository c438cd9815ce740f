"""The picture of the stages, drawn from the graph of rules that Snakemake prints."""

from __future__ import annotations

import itertools
import re
import runpy
import subprocess
import sys
from pathlib import Path

from tests.workflow.conftest import ROOT, TINY, copy_tiny

PICTURE = ROOT / "docs" / "images" / "rulegraph.svg"
SCRIPT = runpy.run_path(str(ROOT / "docs" / "examples" / "rulegraph.py"))
STORY = ("problem", "chain", "metrics", "figure")


def test_a_way_around_is_not_drawn() -> None:
    edges = {("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("a", "d")}
    assert SCRIPT["without_detours"](edges) == {("a", "b"), ("b", "c"), ("c", "d")}


def test_the_graph_tells_the_story(tmp_path: Path) -> None:
    """Without a number of cores, as the command of the documentation has it."""
    project = copy_tiny(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--rulegraph", "--config", *TINY],
        cwd=project.folder,
        env=project.environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    drawn = SCRIPT["without_detours"](SCRIPT["edges_of"](done.stdout))
    assert set(itertools.pairwise(STORY)) <= drawn
    assert {("metrics", "table"), ("metrics", "verdict"), ("verdict", "page")} <= drawn
    SCRIPT["draw"](drawn, tmp_path / "graph.svg")
    found = names(tmp_path / "graph.svg") - set(SCRIPT["COLUMNS"])
    assert found == {name for edge in drawn for name in edge}


def names(picture: Path) -> set[str]:
    return set(re.findall(r">(\w+)</text>", picture.read_text(encoding="utf-8")))


def test_the_picture_has_every_stage() -> None:
    assert names(PICTURE) - set(SCRIPT["COLUMNS"]) == set(SCRIPT["PLACES"])
