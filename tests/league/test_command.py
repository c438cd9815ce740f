"""``python -m dpmc_league``: what they print, write and refuse."""

from __future__ import annotations

import pytest

import dpmc_league
from dpmc_league.__main__ import main

YAML = """\
methods:
  mine:
    command: [/bin/sh, -c, 'for k in $(seq 60); do echo 0.5,0.27; done > "$1/draws.csv"', sh]
"""


def test_tasks_are_listed_without_making_their_rows(capsys) -> None:
    assert main(["tasks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(dpmc_league.tasks())
    assert all(len(line.split()) > 4 for line in lines)


def test_a_league_is_run_and_written(tmp_path, capsys) -> None:
    (tmp_path / "mine.yaml").write_text(YAML)
    asked = ["run", "--tasks", "gaussian-2-v1", "--methods", "noisy_statistic", "exact_draws"]
    asked += ["--epsilon", "4", "--repeats", "1", "--foreign", str(tmp_path / "mine.yaml")]
    assert main([*asked, "--output", str(tmp_path / "out" / "league.csv")]) == 0
    told = capsys.readouterr().out
    assert "noisy_statistic" in told
    (mine,) = (line for line in told.splitlines() if " mine " in line)
    assert mine.endswith("`ledger` must list releases, got none")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"league.csv"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--tasks", "gaussian-3-v1"], "`tasks` must be one of"),
        (["--tasks", "gaussian-2-v1", "--methods", "langevine"], "did you mean langevin?"),
        (["--tasks", "circle-v1", "--methods", "langevin", "--epsilon", "-1"], "`epsilon` must be"),
    ],
)
def test_wrong_arguments_are_one_line(given, message, tmp_path, capsys) -> None:
    assert main(["run", *given, "--output", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
