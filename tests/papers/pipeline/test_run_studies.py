"""Replicates of a study: in the order of points whatever its batches, and told where data lack."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dpmc.progress import silent
from dpmc.types import UNAVAILABLE, UnavailableError
from dpmc_papers.pipeline import results, run_studies, store
from dpmc_papers.pipeline.workload import Workload
from tests.support.papers import load

PAPER, NAME, PROBLEM = "alparslan2023thesis", "information_normal_mean", "normal_mean"


def settings(study: str, problem: str, **seeds: list[int]) -> dict:
    work = Workload(load("smoke", PAPER), PAPER)
    path = next(p for p in work.studies(study) if f"/{problem}/" in p)
    given = dict(work.files[path].settings)
    return {**given, "seeds": {**given["seeds"], **seeds}}


def table(given: dict) -> pd.DataFrame:
    parts = run_studies.parts(given)
    rows = [run_studies.measured(part, lambda: None, silent) for part in parts]  # type: ignore[arg-type, return-value]
    return pd.concat(rows, ignore_index=True)


def test_runs_have_one_order_however_they_are_divided(tmp_path: Path) -> None:
    given = settings(NAME, PROBLEM)
    given["seeds"] = {label: [0, 3] for label in given["seeds"]}
    whole = table(given)
    assert len(whole) == 4 * len(whole[whole["replicate"] == 0])
    for _, rows in whole.groupby(["label", "point"]):
        assert list(rows["replicate"]) == [0, 1, 2, 3]
    paths = []
    for first, last in ((0, 1), (2, 3)):
        given["seeds"] = {label: [first, last] for label in given["seeds"]}
        paths.append(str(tmp_path / f"seeds={first}-{last}.parquet"))
        store.write_table(paths[-1], table(given))
    read = results.read({}, {"metrics": paths}).metrics
    pd.testing.assert_frame_equal(read, whole, check_dtype=False)


def test_where_data_cannot_be_had_the_table_says_so() -> None:
    def rows():
        raise UnavailableError("no way")

    part = next(run_studies.parts(settings("real_data", "power_plant")))
    found = run_studies.measured(part, rows, silent)
    assert set(found["status"]) == {f"{UNAVAILABLE}: no way"}
    assert len(found) == len(part.replicates) * len(part.setup.points)
