"""A person as an attacker sees one: however many rows, no person costs more than the budget."""

from __future__ import annotations

import numpy as np
import pytest

import dpmc
from dpmc.models import gaussian_mean, linear, logistic
from dpmc.privacy.budgets import GaussianBudget
from dpmc.rng import stream
from dpmc.rows import person_gradients
from tests.automatic.replay import search
from tests.support.posteriors import gaussian_model

MU = 0.8
NUM_PERSONS = 300


def visits(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of persons who have one to four, in no order, and identifiers."""
    rng = stream(seed, "persons", "visits")
    ids = np.repeat(np.arange(NUM_PERSONS), rng.integers(1, 5, NUM_PERSONS))
    ids = rng.permutation(ids)
    return rng.standard_normal((len(ids), 2)), ids


def with_last(rows: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and identifiers, with one person behind all others who has so many rows."""
    x, ids = visits()
    own = np.broadcast_to(rows, (count, 2))
    return np.concatenate([x, own]), np.concatenate([ids, np.full(count, NUM_PERSONS)])


HOSTILE = {
    "many": ((3.0, 3.0), 1000),
    "huge": ((1e300, -1e300), 50),
    "cancelling": ([(1e308, 0.0), (-1e308, 0.0)] * 20, 40),
    "one": ((30.0, 30.0), 1),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("seed", range(2))
def test_no_person_costs_more_than_the_budget(kind, seed):
    x, ids = with_last((0.1, -0.1), 1)
    y, others = with_last(*HOSTILE[kind])
    for first, second in (((x, ids), (y, others)), ((y, others), (x, ids))):
        _, seen = search(gaussian_model(), first[0], MU, seed, unit=first[1])
        _, other = search(gaussian_model(), second[0], MU, seed, seen, unit=second[1])
        assert 0 < seen.cost(other) <= MU**2 * (1 + 1e-9)


@pytest.mark.parametrize("model", [logistic, linear], ids=["logistic", "linear"])
def test_curvatures_of_a_person_cost_no_more(model):
    """Of a model with a slope, and of one without, persons have sums of curvatures too."""
    posterior = model.build(model.Params(2))
    pairs = []
    for count in (1, 200):
        x, ids = with_last((5.0, 5.0), count)
        responses = (np.arange(len(x)) % 2).astype(float)
        responses[-count:] = 1.0
        pairs.append((np.column_stack([x, responses]), ids))
    (x, ids), (y, others) = pairs
    _, seen = search(posterior, x, MU, 0, unit=ids)
    _, other = search(posterior, y, MU, 0, seen, unit=others)
    assert 0 < seen.cost(other) <= MU**2 * (1 + 1e-9)


def worst(num_rows: int) -> float:
    """Return the largest cost over some searches, over mu^2, of a person of so many rows."""
    costs = []
    for seed in range(3):
        (x, ids), (y, others) = with_last((9.0, 9.0), num_rows), with_last((-9.0, -9.0), num_rows)
        _, seen = search(gaussian_model(), x, MU, seed, unit=ids)
        _, other = search(gaussian_model(), y, MU, seed, seen, unit=others)
        costs.append(seen.cost(other))
    return max(costs) / MU**2


def test_the_worst_person_comes_near_the_budget():
    # Without power against two opposite persons the tests above would prove little.
    assert 0.4 < worst(50) <= 1 + 1e-9


def test_a_clip_of_each_row_costs_more(monkeypatch):
    """The variant clips rows, and adds up what is left of those of a person."""

    def clipped(self, features, theta, first, last, basis, bound):
        begin, end = int(self.starts[first]), int(self.starts[last])
        features = self.features(self._x[begin:end], False)
        return self.rows.clipped_sum(features, theta, 0, end - begin, basis, bound)

    monkeypatch.setattr(person_gradients.PersonGradients, "clipped_sum", clipped)
    assert worst(50) > 100


EPSILON, DELTA = 4.0, 1e-3


def canary(value: float) -> tuple[np.ndarray, np.ndarray]:
    """Return 60 persons with a row or two, of whom the last has 60 of one value."""
    rows = stream(0, "persons", "canary").standard_normal((90, 1))
    ids = np.concatenate([np.arange(59), np.arange(31)])
    return np.append(rows, np.full((60, 1), value), axis=0), np.append(ids, np.full(60, 59))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("per_row", [False, True])
def test_an_audit_finds_a_person_of_many_rows_where_rows_are_protected(per_row):
    """A correct fit is found guilty with a probability of at most 1e-3; the seed is fixed."""
    model = gaussian_mean.build(gaussian_mean.Params(1, [[1.0]], prior_variance=1.0))

    def mechanism(data, rng):
        rows, ids = data
        options = {"epsilon": EPSILON, "delta": DELTA, "num_draws": 2, "num_chains": 1}
        unit = {} if per_row else {"unit": ids}
        seed = int(rng.integers(2**32))
        return dpmc.fit(model, rows, **options, **unit, seed=seed, progress=False).draws.mean()

    result = dpmc.audit(
        mechanism,
        canary(4.0),
        canary(-4.0),
        mu=GaussianBudget.of(EPSILON, DELTA).mu,
        delta=DELTA,
        confidence=0.999,
        num_runs=200,
        statistic=float,
        seed=1,
    )
    assert result.violates_claim == per_row
