"""Figures drawn again from published runs by ``python -m dpmc_papers redraw``."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

from dpmc_papers.__main__ import main
from dpmc_papers.pipeline import files, results

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "results" / "published"


def folder_of(paper: str, tmp_path: Path) -> Path:
    """A folder that holds the published runs of a document, and no figure."""
    folder = tmp_path / paper
    folder.mkdir()
    shutil.copy(PUBLISHED / paper / results.RUNS, folder)
    return folder


def test_a_figure_is_drawn_from_the_runs_of_the_folder(tmp_path, capsys):
    folder = folder_of("raisa2021dphmc", tmp_path)
    asked = ["redraw", str(folder), "figure3", "figure2", "--root", str(ROOT)]
    assert main(asked) == 0
    told = capsys.readouterr().out
    assert "raisa2021dphmc: figure3 drawn" in told
    assert "figure2 stays as it is, because it shows chains" in told
    names = {f"figure3.{ending}" for ending in files.FIGURE_ENDINGS}
    assert {path.name for path in folder.iterdir()} == {results.RUNS, *names}
    runs = results.read_runs(folder / results.RUNS).metrics
    expected = runs.loc[runs["experiment"] == "clipping", "mmd"]
    shown = pd.read_csv(folder / "figure3.data.csv")
    by_bound = shown[
        shown["panel"].str.endswith("clip bound") & shown["series"].isin(["RWMH", "HMC"])
    ]
    assert sorted(by_bound["y"]) == pytest.approx(sorted(expected), rel=1e-5)


def test_a_name_that_is_no_figure_is_refused_before_anything_is_drawn(tmp_path, capsys):
    folder = folder_of("raisa2021dphmc", tmp_path)
    assert main(["redraw", str(folder), "figure1", "budget", "--root", str(ROOT)]) == 1
    told = capsys.readouterr().err
    assert "figures of raisa2021dphmc must be among figure1" in told
    assert told.rstrip().endswith("got budget")
    assert {path.name for path in folder.iterdir()} == {results.RUNS}
