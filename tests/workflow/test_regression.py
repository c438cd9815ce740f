"""Private regression at scale smoke on a machine that has none of its files, and then some."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

from dpmc.data import uci
from dpmc.evidence import UNAVAILABLE
from tests.workflow.conftest import SMOKE, Project

CONFIG = (*SMOKE, "papers=alparslan2023thesis")
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hide raw files and the network: nothing is found, and no download works."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, NOWHERE)
    monkeypatch.setenv("DPMC_UCI_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_without_files_all_else_runs_and_they_are_looked_for_again(
    fresh: Project, no_data: Path
) -> None:
    done = fresh.snakemake(config=CONFIG)
    assert done.returncode == 0, done.stdout[-5000:]
    folder = fresh.of_paper("alparslan2023thesis")
    table = pd.read_csv(folder / "table7_1.csv")
    assert set(table["status"]) == {UNAVAILABLE}
    assert table[["adassp", "bayes_fixed_s_fast"]].isna().all(axis=None)
    verdicts = pd.read_csv(folder / "verdict.csv")
    cells = verdicts[verdicts["id"].str.startswith("T-7.1/power_plant/adassp")]
    assert cells["reason"].str.startswith(UNAVAILABLE).all()
    assert (folder / "figure7_1.png").stat().st_size > 10_000
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "addition or removal of one row" in page
    assert fresh.planned(config=CONFIG) == []
    # A file appears: its rows, and only what is made from them, are asked for again.
    name = "power_plant"
    (no_data / name).mkdir()
    (no_data / name / uci.TABLES[name].file).touch()
    jobs = fresh.planned(config=CONFIG)
    assert [job for job in jobs if job.startswith("rows of")] == [
        "rows of power_plant",
        "rows of power_plant_public",
    ]
    studies = [job for job in jobs if "replicates" in job]
    assert studies
    assert all(" on power_plant" in job for job in studies)
    shutil.rmtree(no_data / name)
