"""The attack of the gate: honest methods stand it, and methods with less noise do not.

Seeds are fixed. An honest method is found out with probability 5e-5 at most over seeds; what a
broken one passes with stands at its test.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, norm

import dpmc_league
from dpmc.privacy.clipped import row_mean
from dpmc.privacy.empirical import mu_by_accuracy
from dpmc.privacy.ledger import Ledger
from dpmc.types import DpmcError
from dpmc_league import attack, neighbours
from dpmc_league.attack import Attacked, guesses
from dpmc_league.foreign import Foreign
from dpmc_league.rivals import noisy_statistic
from dpmc_league.submission import Submission, Terms, rival, rivals
from dpmc_league.table import entry, play
from tests.support.clipped import less

TASK = "gaussian-2-v1"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "league"
RUNS, FEW = 300, 60
# Methods of whose noise the mean of the draws has all, and runs of those that take long.
WHOLE = ("noisy_statistic", "exact_draws", "langevin", "kinetic_langevin")
SLOW = {"automatic": FEW}
LONG = ("automatic", "hmc_batches")
HONEST = [pytest.param(n, marks=pytest.mark.slow if n in LONG else ()) for n in rivals()]


@pytest.mark.parametrize("name", HONEST)
def test_honest_methods_stand_the_attack(name) -> None:
    found = attack.attack(rival(name), neighbours.gaussian(), SLOW.get(name, RUNS))
    assert found.reason == ""
    assert 0 <= found.epsilon < found.claim <= attack.EPSILON * 1.005
    if name in WHOLE:  # 0.82 of the guesses are right: five standard errors below it
        assert found.right > (0.82 - 5 * 0.022) * RUNS


@pytest.mark.parametrize("name", WHOLE)
def test_half_of_the_noise_is_found_out(name, monkeypatch) -> None:
    """Right guesses are binomial of probability 0.96, and 272 of 300 are needed: power 0.9999."""
    halve(monkeypatch)
    found = attack.attack(rival(name), neighbours.gaussian(), RUNS)
    assert found.epsilon > found.claim
    assert "`ledger` must hold under attack: it has epsilon" in found.reason


def test_the_power_that_is_told_is_that_of_the_binomial() -> None:
    mu = Terms(attack.EPSILON, 1e-6).mu
    for runs, accuracy, power in ((RUNS, norm.cdf(mu), 0.9999), (FEW, 1.0, 1.0)):
        needed = next(r for r in range(runs + 1) if mu_by_accuracy(r, runs, 1 - attack.ERROR) > mu)
        assert binom.sf(needed - 1, runs, accuracy) >= power
    # With few runs a method that is half right about its noise passes.
    assert mu_by_accuracy(FEW - 1, FEW, 1 - attack.ERROR) < mu


def halve(monkeypatch) -> None:
    """Let every ledger add half of the noise that it records."""
    release = Ledger.release

    def quieter(self, clipped, noise_multiplier, rng, batch=None):
        return release(self, less(clipped), noise_multiplier, rng, batch)

    monkeypatch.setattr(Ledger, "release", quieter)


def test_rows_that_are_not_clipped_are_found_out(monkeypatch) -> None:
    monkeypatch.setattr(
        noisy_statistic,
        "clipped_mean",
        lambda rows, bound: row_mean(rows.mean(axis=0), bound, len(rows)),
    )
    found = attack.attack(noisy_statistic, neighbours.gaussian(), FEW)
    assert found.right == FEW
    assert found.reason


class Claims:
    """One noisy statistic that tells another ledger."""

    def __init__(self, records) -> None:
        self.records = records

    def run(self, task, terms) -> Submission:
        handed = noisy_statistic.run(task, terms)
        return Submission(handed.draws, self.records, handed.outside)


def test_a_ledger_that_tells_too_little_is_found_out_and_one_beyond_the_budget_refused() -> None:
    pair = neighbours.gaussian()
    less = attack.attack(Claims([("gaussian(2.0)", 1)]), pair, RUNS)
    assert less.claim_mu == 0.5
    assert less.reason.startswith("`ledger` must hold under attack")
    # As if only a tenth of the rows had been looked at.
    sampled = attack.attack(
        Claims([("sampled_gaussian(0.6, batch_size=40, num_rows=400)", 1)]), pair, RUNS
    )
    assert sampled.claim_mu < 0.3
    assert sampled.reason.startswith("`ledger` must hold under attack")
    over = attack.attack(Claims([("gaussian(0.1)", 1)]), pair, 4)
    assert "`ledger` must come to epsilon 10 at most" in over.reason
    assert "`ledger` must list pairs" in attack.attack(Claims([3]), pair, 4).reason
    assert "`ledger` must list releases, got none" in attack.attack(Claims(None), pair, 4).reason


def test_the_claim_of_batches_is_that_of_all_rows_where_a_batch_has_all_and_less_elsewhere() -> (
    None
):
    terms = Terms(10.0, 1e-6)
    whole = attack.claimed([[("sampled_gaussian(2.0, batch_size=400, num_rows=400)", 4)]], terms)
    part = attack.claimed([[("sampled_gaussian(2.0, batch_size=40, num_rows=400)", 4)]], terms)
    assert whole == pytest.approx(1.0, rel=0.01)
    assert 0.1 < part < 0.13  # a tenth for much noise, more for less
    both = [[("gaussian(2.0)", 1)], [("gaussian(1.0)", 1)]]
    assert attack.claimed(both, terms) == 1.0


def test_no_more_honest_methods_are_found_out_than_the_error_rate() -> None:
    """Of 600 attacks at an error of 5 %, by normal statistics of exactly mu: 53 has chance 1e-4."""
    rng, mu, runs = np.random.default_rng(3), 1.0, 100
    beaten = 0
    for _ in range(600):
        coins = rng.random(runs) < 0.5
        values = mu * coins + rng.standard_normal(runs)
        right = int(np.count_nonzero(guesses(values) == coins))
        beaten += mu_by_accuracy(right, runs, 0.95) > mu
    assert beaten <= binom.isf(1e-4, 600, 0.05)


def awk(folder: Path, old: str, new: str) -> Foreign:
    """Return the example in awk with a part of it exchanged."""
    text = (EXAMPLES / "noisy_mean.awk").read_text()
    assert old in text
    (folder / "mine.awk").write_text(text.replace(old, new))
    return Foreign(["awk", "-f", "mine.awk"], 60, folder, many=True)


def test_a_command_that_tells_a_ledger_and_adds_no_noise_is_found_out(tmp_path) -> None:
    pair = neighbours.gaussian()
    honest = attack.attack(Foreign(["awk", "-f", "noisy_mean.awk"], 60, EXAMPLES, True), pair, FEW)
    assert (honest.reason, honest.runs) == ("", FEW)
    exact = awk(tmp_path, "u = u / n + sd * normal(); v = v / n + sd * normal()", "u /= n; v /= n")
    found = attack.attack(exact, pair, FEW)
    assert found.right == FEW
    assert "must hold under attack" in found.reason
    half = awk(tmp_path, "sd = 2 * radius / n * z", "sd = radius / n * z")
    assert "must hold under attack" in attack.attack(half, pair, RUNS).reason


def test_a_method_that_is_found_out_has_no_scores_and_says_why(monkeypatch) -> None:
    halve(monkeypatch)
    module = rival("noisy_statistic")
    monkeypatch.setattr(attack, "identity", lambda method: None)  # nothing is kept of this
    rows = play([TASK], ["noisy_statistic"], [1.0, 4.0], num_draws=200, attack_runs=RUNS)
    for row in rows:
        assert row.score.status.startswith("`ledger` must hold under attack: it has epsilon 10")
        assert not np.isfinite(row.score.mmd)
        assert row.score.attack_epsilon > row.score.attack_claim
    assert entry(dpmc_league.task(TASK), module, Terms(1.0, 1e-6, num_draws=200)).scored


@pytest.mark.slow
def test_a_method_for_other_tasks_is_attacked_on_theirs(tmp_path) -> None:
    pytest.importorskip("emcee", reason="a development dependency")
    task = dpmc_league.task("logistic-3-v1")
    text = (EXAMPLES / "noisy_gradients.py").read_text()
    changed = text.replace("+ sd * rng", "+ 0 * rng").replace("5_000", "2_000")
    changed = changed.replace("run_mcmc(start, 600)", "run_mcmc(start, 200)")
    (tmp_path / "exact.py").write_text(changed)
    short = {"time_limit": 120, "folder": tmp_path, "many": True}
    broken = Foreign([sys.executable, "exact.py"], **short)
    found = attack.of(broken, task, FEW)
    assert found.right == FEW
    assert found.reason
    refused = attack.attack(broken, neighbours.gaussian(), FEW)
    assert refused.runs == 0
    assert "only logistic regression" in refused.reason


def test_a_method_that_cannot_be_attacked_has_no_scores() -> None:
    class Fails:
        def run(self, task, terms):
            if task.num_rows < 10_000:
                raise DpmcError("too few rows")
            return noisy_statistic.run(task, terms)

    task = dpmc_league.task(TASK)
    terms = Terms(1.0, 1e-6, num_draws=200)
    found = entry(task, Fails(), terms, lambda: attack.of(Fails(), task, FEW))
    assert found.status == "failed under attack: too few rows"


def test_pairs_differ_in_one_row_alone_and_directions_point_to_the_neighbour() -> None:
    for pair in (
        neighbours.gaussian(),
        *map(neighbours.of, map(dpmc_league.task, ("poisson-3-v1", "mixture-2-v1"))),
    ):
        differ = np.any(pair.data.rows != pair.neighbour.rows, axis=1)
        assert list(np.flatnonzero(differ)) == [0]
        assert np.linalg.norm(pair.direction) > 0
    task = dpmc_league.task("logistic-3-v1")
    theta, rows = np.array([0.3, -0.2, 0.1]), task.rows[:5]
    p = 1 / (1 + np.exp(-rows[:, :3] @ theta))
    expected = rows[:, :3] * (rows[:, 3] - p)[:, None]
    assert np.allclose(neighbours.row_gradients(task, theta, rows), expected)


def test_what_is_known_of_a_method_goes_with_its_code_and_settings(tmp_path) -> None:
    module = rival("langevin")
    assert attack.identity(module) != attack.identity(rival("penalty"))
    assert attack.identity(Claims([])) is None
    first = awk(tmp_path, "normal()", "normal()").identity()
    assert first != awk(tmp_path, "sd * normal()", "normal() * sd").identity()
    assert Attacked().reason == ""
