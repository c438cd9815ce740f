"""The league as a real run, with commands of somebody: rows that say what failed, and reruns."""

from __future__ import annotations

import csv

import pytest

from tests.support.languages import has_r
from tests.workflow.conftest import Project, copy_project, run_once

pytestmark = pytest.mark.slow

LEAGUE = ("scale=smoke", "papers=league", "methods=mine.yaml")
# What each command writes: a ledger beyond its budget, too few draws, and nothing.
WRITES = 'for k in $(seq {draws}); do echo 0.5,0.27; done > "$1/draws.csv"; '
LEDGER = 'echo "{{\\"releases\\": [[\\"gaussian({noise})\\", 1]]}}" > "$1/ledger.json"'
R = "  mean_in_r: {command: [Rscript, --vanilla, docs/examples/league/noisy_mean.R]}\n"


def methods() -> str:
    """Return a file of commands, most of which are at fault."""
    over = WRITES.format(draws=60) + LEDGER.format(noise=0.1)
    few = WRITES.format(draws=10) + LEDGER.format(noise=9)
    shell = "    command: [/bin/sh, -c, '{}', sh]\n"
    return (
        "methods:\n"
        "  hangs: {command: [/bin/sh, -c, 'sleep 60', sh], time_limit: 0.5}\n"
        "  absent: {command: [no-such-program]}\n"
        "  crashes:\n" + shell.format("echo went wrong >&2; exit 3") + "  overspends:\n"
        f"{shell.format(over)}  few_draws:\n{shell.format(few)}" + (R if has_r() else "")
    )


def make(folder) -> Project:
    project = copy_project(folder)
    (folder / "mine.yaml").write_text(methods(), encoding="utf-8")
    return project


@pytest.fixture(scope="module")
def league(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy in which the league has run at scale smoke with a file of commands."""
    return run_once("league", make, LEAGUE, tmp_path_factory)


def standings(project: Project) -> dict[tuple[str, str], dict[str, str]]:
    path = project.of_paper("league") / "standings.csv"
    with path.open(encoding="utf-8") as file:
        return {(row["method"], row["epsilon"]): row for row in csv.DictReader(file)}


def test_what_is_wrong_with_a_command_is_its_row_and_the_rest_is_there(league: Project) -> None:
    table = standings(league)
    for epsilon in ("1", "4"):
        said = {name: table[name, epsilon]["status"] for name, e in table if e == epsilon}
        assert said["hangs"] == "failed: `command` must end within 0.5 s"
        assert said["absent"].startswith("failed: `command` must start, got No such file")
        assert said["crashes"] == "failed: `command` must end with code 0, got 3: went wrong"
        assert said["overspends"].startswith(f"`ledger` must come to epsilon {epsilon} at most")
        assert said["few_draws"] == "`draws` must be at least 50, got 10"
        for name in ("noisy_statistic", "langevin", "penalty", "hmc", "awk_mean"):
            assert said[name] == ""
            assert float(table[name, epsilon]["median"]) > 0
    for name in ("winners.pdf", "price.png", "rows.svg", "verdict.csv", "guarantees.csv"):
        assert (league.of_paper("league") / name).stat().st_size > 0
    page = league.folder / "results" / "smoke" / "site" / "results" / "league" / "standings.html"
    assert "overspends" in page.read_text(encoding="utf-8")


def test_a_method_in_r_is_in_the_table(league: Project) -> None:
    if not has_r():
        pytest.skip("needs R with jsonlite: apt-get install r-base-core r-cran-jsonlite")
    row = standings(league)["mean_in_r", "4"]
    assert row["status"] == ""
    assert float(row["guarantee_epsilon"]) == pytest.approx(4, rel=1e-6)
    assert float(row["median"]) < 0.5


def test_the_key_of_a_document_may_be_a_list_or_a_text(league: Project) -> None:
    listed = ("scale=smoke", "papers=[league]", "methods=mine.yaml")
    assert league.planned(config=LEAGUE) == []
    assert league.planned(config=listed) == []


def test_a_changed_command_is_run_again_and_no_study_of_ours(league: Project) -> None:
    with league.edited("mine.yaml", "time_limit: 0.5", "time_limit: 0.6"):
        planned = league.planned(config=LEAGUE)
        studies = [job for job in planned if " on gaussian_2, seeds=" in job]
        assert studies == ["yours on gaussian_2, seeds=0-0"]
        league.made(config=LEAGUE)
        assert standings(league)["hangs", "1"]["status"].endswith("within 0.6 s")


def test_a_file_of_commands_at_fault_stops_before_any_work(league: Project) -> None:
    with league.edited("mine.yaml", "crashes:", "hmc:"):
        line = league.refused("-n", config=LEAGUE)
    assert "`methods.hmc` must be a name that no method of the league has" in line
