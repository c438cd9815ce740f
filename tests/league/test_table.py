"""The league from end to end: methods, foreign commands, and rows that say what failed."""

from __future__ import annotations

import csv
import math
import time
from pathlib import Path

import numpy as np
import pytest

import dpmc_league
from dpmc.types import DpmcError
from dpmc_league import measures
from dpmc_league.foreign import Foreign, read_draws, read_ledger
from dpmc_league.rivals import exact_draws, noisy_statistic
from dpmc_league.submission import Submission, Terms, rival, rivals
from dpmc_league.table import entry, play, standings, write
from tests.support.languages import has_r

TASK = "gaussian-2-v1"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "league"
GOOD = '[[\\"gaussian(5.0)\\", 1]]'


def shell(script: str, **options) -> Foreign:
    return Foreign(["/bin/sh", "-c", script, "sh"], **options)


def draws(number: int, line: str = "0.5,0.27") -> str:
    return f'for k in $(seq {number}); do echo {line}; done > "$1/draws.csv"; '


def ledger(releases: str = GOOD) -> str:
    return f'echo "{{\\"releases\\": {releases}}}" > "$1/ledger.json"; '


@pytest.fixture(scope="module")
def task():
    return dpmc_league.task(TASK)


@pytest.mark.slow
def test_every_method_is_scored_and_within_its_budget(task) -> None:
    rows = play([TASK], rivals(), [4.0], max_passes=120, num_draws=400, seed=2)
    assert [row.method for row in rows] == list(rivals())
    for row in rows:
        assert row.score.scored, (row.method, row.score.status)
        assert row.score.epsilon <= 4.0 * 1.005
        assert row.score.outside == ("a known seed",)
    by_name = {row.method: row.score for row in rows}
    assert by_name["noisy_statistic"].sliced_wasserstein < 0.3
    again = play([TASK], ["langevin"], [4.0], max_passes=120, num_draws=400, seed=2)
    assert again[0].score == by_name["langevin"]


def test_the_noise_aware_posterior_is_calibrated_and_one_that_forgets_the_noise_is_not(task):
    """Errors of 60 releases, standardised by the noise that the posterior's width admits.

    Their sum of squares is chi-square with 120 degrees of freedom: outside of [70, 190] with
    probability 1e-4.
    """
    exact = task.reference().mean(axis=0)
    root = np.linalg.cholesky([[1, 0.5], [0.5, 1]])
    total = 0.0
    for seed in range(60):
        terms = Terms(0.5, task.delta, num_draws=2000, seed=seed)
        found = noisy_statistic.run(task, terms).draws[:, 0] @ np.linalg.inv(root).T
        errors = found.mean(axis=0) - np.linalg.solve(root, exact)
        widening = found.var(axis=0) - 1 / task.num_rows
        total += float(np.sum(errors**2 / widening))
    assert 70 < total < 190
    statistic = task.statistic
    ignorant = statistic.draw(np.zeros(2), 0.0, 2000, np.random.default_rng(1))
    assert ignorant.var(axis=0).max() - 1.1 / task.num_rows < 0  # all errors, no room for them


def test_coverage_over_releases_is_the_level_where_the_noise_is_known_and_less_elsewhere(task):
    """Means over 60 releases within 4.5 of their standard errors: an error rate of 2e-5."""
    reference = task.reference()
    deviations = reference.std(axis=0)
    known, ignorant = [], []
    for seed in range(60):
        terms = Terms(0.05, task.delta, num_draws=2000, seed=seed)
        draws = noisy_statistic.run(task, terms).draws[:, 0]
        known.append([measures.coverage(draws, reference, level) for level in (0.5, 0.9)])
        mean = draws.mean(axis=0)
        narrow = mean + (draws - mean) * deviations / draws.std(axis=0)
        ignorant.append(measures.coverage(narrow, reference, 0.9))

    def apart(shares, level):
        error = np.std(shares, ddof=1) / math.sqrt(len(shares))
        return abs(np.mean(shares) - level) / error

    for level, shares in zip((0.5, 0.9), np.transpose(known), strict=True):
        assert apart(shares, level) < 4.5
    assert apart(ignorant, 0.9) > 4.5


def test_exact_draws_are_as_many_as_the_budget_buys_and_have_the_posterior(task) -> None:
    """Means and deviations within 5 standard errors of k draws."""
    terms = Terms(4.0, task.delta, num_draws=10_000, seed=1)
    handed = exact_draws.run(task, terms)
    k = (terms.mu * np.sqrt(task.num_rows) / (2 * task.statistic.bound)) ** 2
    assert len(handed.draws) == int(k)
    reference, found = task.reference(), handed.draws[:, 0]
    errors = (found.mean(axis=0) - reference.mean(axis=0)) / reference.std(axis=0)
    assert np.abs(errors).max() < 5 / np.sqrt(k)
    ratio = found.std(axis=0) / reference.std(axis=0)
    assert np.abs(ratio - 1).max() < 5 / np.sqrt(2 * k)


@pytest.mark.parametrize(
    ("script", "status"),
    [
        (draws(60) + ledger(), "scored"),
        (draws(60), "`ledger` must list releases, got none"),
        (draws(60) + ledger('[[\\"gaussian(0.1)\\", 1]]'), "must come to epsilon 1 at most"),
        (draws(60) + ledger("3"), "failed: `ledger` must be JSON"),
        (draws(60) + ledger("nothing"), "failed: `ledger` must be JSON"),
        (draws(10) + ledger(), "`draws` must be at least 50, got 10"),
        (draws(60, "1,nan") + ledger(), "`draws` must be finite"),
        (draws(60, "1,2,3") + ledger(), "`draws` must have 2 columns"),
        (draws(60, "a,b") + ledger(), "failed: draws must be a file of numbers"),
        (ledger(), "failed: `command` must write draws.npy or draws.csv"),
        (ledger() + 'echo half > "$1/draws.npy"', "failed: draws must be a file of numbers"),
        ("echo went wrong >&2; exit 3", "got 3: went wrong"),
    ],
)
def test_what_a_command_does_wrong_is_a_row_that_says_so(task, script, status) -> None:
    found = entry(task, shell(script), Terms(1.0, task.delta))
    assert status in found.status


def test_a_command_that_hangs_is_stopped_with_its_children(task, tmp_path) -> None:
    sign = tmp_path / "sign"
    script = f"(sleep 4; touch {sign}) & sleep 60"
    found = entry(task, shell(script, time_limit=0.5), Terms(1.0, task.delta))
    assert found.status == "failed: `command` must end within 0.5 s"
    time.sleep(5)
    assert not sign.exists()


def test_a_method_that_raises_is_a_row_and_the_rest_of_the_table_is_there(monkeypatch) -> None:
    module = rival("exact_draws")
    monkeypatch.setattr(module, "run", lambda task, terms: 1 / 0)
    rows = play([TASK], ["exact_draws", "noisy_statistic"], [1.0], num_draws=200)
    assert rows[0].score.status == "failed: division by zero"
    assert rows[1].score.scored


def test_unknown_methods_and_wrong_settings_are_refused_before_anything_runs() -> None:
    with pytest.raises(DpmcError, match=r"did you mean langevin\?"):
        play([TASK], ["langevinn"], [1.0])
    with pytest.raises(DpmcError, match=r"`tasks` must be one of .*did you mean"):
        play([TASK, "gaussian-3-v1"], ["langevin"], [1.0])
    with pytest.raises(DpmcError, match="`max_passes` must be"):
        Terms(1.0, 1e-6, max_passes=1)
    with pytest.raises(DpmcError, match="`command` must be a list of texts"):
        Foreign([])


def test_the_table_is_written_and_read(tmp_path) -> None:
    rows = play([TASK], ["noisy_statistic"], [1.0, 4.0], num_draws=200, repeats=2)
    write(tmp_path / "league.csv", rows)
    with (tmp_path / "league.csv").open() as file:
        read = list(csv.DictReader(file))
    assert [(one["epsilon"], one["repeat"]) for one in read] == [
        ("1", "0"), ("1", "1"), ("4", "0"), ("4", "1")
    ]  # fmt: skip
    assert float(read[0]["ledger_epsilon"]) == pytest.approx(1.0, rel=0.005)
    squares = [row.score.mean_error**2 for row in rows[:2]]
    assert standings(rows)["effective_draws"][0] == pytest.approx(2 / sum(squares))
    assert not list(tmp_path.glob("*.part"))


def test_awk_takes_part(task) -> None:
    """A foreign method in another language, near the exact posterior at epsilon 4."""
    one = Foreign(["awk", "-f", "noisy_mean.awk"], 60, EXAMPLES)
    found = entry(task, one, Terms(4.0, task.delta, num_draws=1000))
    assert found.scored, found.status
    assert found.epsilon == pytest.approx(4.0, rel=0.005)
    assert found.sliced_wasserstein < 0.5


def test_a_sampler_of_another_package_takes_part() -> None:
    import sys

    pytest.importorskip("emcee", reason="a development dependency")
    one = Foreign([sys.executable, "noisy_gradients.py"], 120, EXAMPLES)
    task = dpmc_league.task("logistic-3-v1")
    found = entry(task, one, Terms(4.0, task.delta))
    assert found.scored, found.status
    assert found.sliced_wasserstein < 0.5
    other = entry(dpmc_league.task(TASK), one, Terms(4.0, 1e-6))
    assert "only logistic regression" in other.status


def test_files_of_draws_are_not_unpickled(tmp_path) -> None:
    np.save(tmp_path / "draws.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DpmcError, match="file of numbers"):
        read_draws(tmp_path)
    assert read_ledger(tmp_path) == (None, ())
    assert Submission(np.zeros((2, 2)), None).outside == ()


def test_r_takes_part_and_a_seed_makes_its_draws_again(task) -> None:
    if not has_r():
        pytest.skip("needs R with jsonlite: apt-get install r-base-core r-cran-jsonlite")
    one = Foreign(["Rscript", "--vanilla", "noisy_mean.R"], 60, EXAMPLES)
    terms = Terms(4.0, task.delta, num_draws=1000, seed=3)
    found = entry(task, one, terms)
    assert found.scored, found.status
    assert found.epsilon == pytest.approx(4.0, rel=0.005)
    assert found.sliced_wasserstein < 0.5
    assert found.outside == ("a known seed",)
    assert entry(task, one, terms) == found
    other = entry(dpmc_league.task("logistic-3-v1"), one, Terms(4.0, 1e-6))
    assert "failed: `command` must end with code 0, got 1" in other.status


def test_a_task_with_fewer_rows_has_a_posterior_of_its_own() -> None:
    whole = dpmc_league.task("student-location-v1")
    part = whole.first(500)
    assert part.num_rows == 500
    assert part.digest != whole.digest
    ratio = part.reference(2000).std(axis=0) / whole.reference(2000).std(axis=0)
    assert ratio == pytest.approx([10.0, 10.0], rel=0.2)
    with pytest.raises(DpmcError, match="`num_rows` must be at most 50000, got 50001"):
        whole.first(50_001)
    with pytest.raises(DpmcError, match="gaussian-2-v1 has closed forms"):
        dpmc_league.task(TASK).first(10)


def test_a_task_may_be_rounded_otherwise_and_keeps_its_reference() -> None:
    one = dpmc_league.task(TASK)
    moved = np.nextafter(one.rows, np.inf)
    other = one.rounded(moved)
    assert np.array_equal(other.dataset.x, moved)
    assert other.digest == one.digest
    assert np.array_equal(other.reference(100), one.reference(100))
    for rows in (one.rows[:-1], one.rows * (1 + 1e-9), one.rows[::-1]):
        with pytest.raises(DpmcError, match=f"must be those of {TASK} but for their last digits"):
            one.rounded(rows)
