"""Private regression at scale smoke on a machine that has none of its files, and then some."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from dpmc.types import UNAVAILABLE
from dpmc_papers.data import uci
from tests.workflow.conftest import SMOKE, Project

pytestmark = pytest.mark.slow

CONFIG = (*SMOKE, "papers=alparslan2023thesis")


def test_without_files_all_else_runs_and_they_are_looked_for_again(
    finished: Project, no_raw_files: Path
) -> None:
    folder = finished.of_paper("alparslan2023thesis")
    table = pd.read_csv(folder / "table7_1.csv")
    assert set(table["status"]) == {UNAVAILABLE}
    assert table[["adassp", "bayes_fixed_s_fast"]].isna().all(axis=None)
    verdicts = pd.read_csv(folder / "verdict.csv")
    cells = verdicts[verdicts["id"].str.startswith("T-7.1/power_plant/adassp")]
    assert cells["reason"].str.startswith(UNAVAILABLE).all()
    assert (folder / "figure7_1.png").stat().st_size > 10_000
    site = finished.folder / "results" / "smoke" / "site"
    page = (site / "results" / "alparslan2023thesis" / "settings.html").read_text(encoding="utf-8")
    assert "addition or removal of one row" in page
    assert finished.planned(config=CONFIG) == []
    # A file appears: its rows, and only what is made from them, are asked for again.
    name = "power_plant"
    raw = no_raw_files / name
    raw.mkdir()
    (raw / uci.TABLES[name].file).touch()
    try:
        jobs = finished.planned(config=CONFIG)
    finally:
        shutil.rmtree(raw)
    assert [job for job in jobs if job.startswith("rows of")] == [
        "rows of power_plant",
        "rows of power_plant_public",
    ]
    studies = [job for job in jobs if re.search(r" on \w+, seeds=", job)]
    assert studies
    assert all(" on power_plant" in job for job in studies)
