"""DP-HMC with gradients of batches: the law that it leaves alone, its batches, and what it spends.

Limits of laws are 4.5 standard errors, 7e-6 for each check by the normal approximation.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import dpmc_league
from dpmc.mcmc import moves
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams, stream
from dpmc.types import DpmcError
from dpmc_league import families, footing, gate
from dpmc_league.rivals import hmc_batches
from dpmc_league.rivals.hmc_batches import Params, Plan
from dpmc_league.submission import Terms
from dpmc_league.trajectories import steps

LIMIT = 4.5
ROWS, BATCH, CHAINS, LENGTH = 200, 40, 120, 80
QUIET = 1e-9  # of a noise multiplier: no noise to speak of


@pytest.fixture(scope="module")
def task():
    return families.gaussian("test-batches-2", 2, ROWS)


@pytest.fixture(scope="module")
def found(task):
    """Return whitened coordinates in which no row is clipped."""
    place = footing.find(task, Terms(10.0, 1e-6, seed=1), "hmc_batches")
    return replace(place, bound=1e3)


def chains(found, task, for_ratios, ratio=None):
    """Return the mean square of each chain about the exact mean, begun at exact draws."""
    planned = Plan(LENGTH, (BATCH, ROWS), QUIET, for_ratios)
    exact = task.sample(task.rows, CHAINS + 10_000, stream(1, "test", "batches"))
    white = np.linalg.solve(found.basis, (exact - found.theta).T).T
    centre = white[CHAINS:].mean(axis=0)
    squares = []
    for k in range(CHAINS):
        streams = Streams.of(5, "test", "batches", k)
        one = replace(found, start=white[k], streams=streams)
        if ratio is None:
            states = hmc_batches.chain(one, task, planned, Ledger()).states
        else:
            gradient = hmc_batches.batch_gradient(one, task, planned.batch)
            ground = hmc_batches.Batched(one, gradient)
            ground.ratio = ratio(one)
            states = steps(ground, Ledger(), LENGTH, 0.8, QUIET, for_ratios).states
        squares.append(np.mean((states - centre) ** 2))
    return np.array(squares)


def deviation(values) -> float:
    return float(abs(values.mean() - 1) / (values.std(ddof=1) / math.sqrt(len(values))))


def test_the_posterior_is_left_invariant_with_batches_and_no_noise(found, task) -> None:
    assert deviation(chains(found, task, QUIET)) < LIMIT


def test_and_with_noise_of_the_ratio_whose_penalty_it_needs(found, task, monkeypatch) -> None:
    """Noise of standard deviation 2 or so at a decision."""
    noise = 1 / 1e3
    assert deviation(chains(found, task, noise)) < LIMIT
    monkeypatch.setattr(moves, "penalty", lambda noise: 0.0)
    assert deviation(chains(found, task, noise)) > LIMIT


def test_a_ratio_of_the_batch_without_its_penalty_has_another_law(found, task) -> None:
    """Which is why the accept test is over all rows."""

    def of_batch(one):
        def ratio(z, z_new, ledger, multiplier):
            chosen = one.streams.batches.choice(ROWS, BATCH, replace=False)
            off = [task.rows[chosen] - one.thetas(point) for point in (z, z_new)]
            inverse = np.linalg.inv(one.basis @ one.basis.T) / ROWS
            old, new = (np.einsum("ij,jk,ik->", x, inverse, x) for x in off)
            return 0.5 * ROWS / BATCH * (old - new)

        return ratio

    assert deviation(chains(found, task, QUIET, of_batch)) > LIMIT


def test_gradients_of_batches_have_the_mean_of_that_of_all_rows(found, task) -> None:
    """Over 4,000 batches; without the factor n / b the mean is another."""
    z = np.array([3.0, -2.0])
    gradient = hmc_batches.batch_gradient(found, task, (BATCH, ROWS))
    values = np.array([gradient(z, Ledger(), QUIET) for _ in range(4000)])
    whole = found.gradient(z, Ledger(), QUIET)
    error = values.std(axis=0) / math.sqrt(len(values))
    assert np.all(np.abs(values.mean(axis=0) - whole) < LIMIT * error)
    assert np.any(np.abs(BATCH / ROWS * values.mean(axis=0) - whole) > LIMIT * error)
    # Of 40 of 200 rows the variance is n / b - 1 = 4, as the rule for the step has it.
    assert values.var(axis=0) == pytest.approx([4, 4], rel=0.35)


def test_batches_are_drawn_afresh_without_replacement(found, task, monkeypatch) -> None:
    """Each row is in a fifth of 2,000 batches, within 5 standard errors: 1e-4 for 200 rows."""
    counts, marked = np.zeros(ROWS), {row.tobytes(): k for k, row in enumerate(task.rows)}
    original = hmc_batches.WhitenedRows

    def seen(model, data):
        chosen = [marked[row.tobytes()] for row in np.ascontiguousarray(data.x)]
        assert len(set(chosen)) == BATCH
        counts[chosen] += 1
        return original(model, data)

    monkeypatch.setattr(hmc_batches, "WhitenedRows", seen)
    gradient = hmc_batches.batch_gradient(found, task, (BATCH, ROWS))
    for _ in range(2000):
        gradient(found.start, Ledger(), QUIET)
    share = BATCH / ROWS
    assert np.abs(counts - 2000 * share).max() < 5 * math.sqrt(2000 * share * (1 - share))


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_budget_is_spent_by_a_second_accountant_and_only_with_amplification(epsilon) -> None:
    task = dpmc_league.task("gaussian-2-v1")
    terms = Terms(epsilon, task.delta, 120, 200, seed=1)
    handed = hmc_batches.run(task, terms)
    passed = gate.ledger(handed.ledger, task.delta, epsilon)
    assert 0.99 * epsilon < passed.epsilon <= epsilon * 1.005
    assert math.isnan(passed.mu)
    rows = sum(n * (0.1 if "sampled" in text else 1) for text, n in handed.ledger)
    assert passed.passes == pytest.approx(rows)
    assert rows <= terms.max_passes + 1  # the mean that finds the place is one more
    plain = [(_unsampled(text), count) for text, count in handed.ledger]
    with pytest.raises(DpmcError, match="`ledger` must come to epsilon"):
        gate.ledger(plain, task.delta, epsilon)


def _unsampled(text: str) -> str:
    return text.partition(", batch_size")[0].replace("sampled_", "").rstrip(")") + ")"


def test_a_plan_depends_on_public_numbers_alone_and_wrong_rates_are_refused() -> None:
    mu = Terms(1.0, 1e-6).mu
    one = hmc_batches.plan(1000, 0.1, 120, mu, 0.3, 1.0, 1e-6)
    assert one.batch == (100, 1000)
    assert one.number == 108
    tighter = hmc_batches.plan(1000, 0.1, 120, Terms(0.5, 1e-6).mu, 0.3, 0.5, 1e-6)
    assert tighter.for_ratios > 1.5 * one.for_ratios
    for rate in (0.0, 1.5):
        with pytest.raises(DpmcError, match="`rate` must be"):
            Params(rate)
