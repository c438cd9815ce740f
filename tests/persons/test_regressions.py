"""Regressions of persons who have several rows: what they cost, and what they are worth."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import dpmc
from dpmc.automatic.glm import person_rows
from dpmc.automatic.glm.person_rows import clip_bound, most_rows
from dpmc.privacy.accountants import gaussian
from dpmc.privacy.budgets import GaussianBudget
from dpmc.rng import stream
from dpmc.types import DpmcError
from tests.automatic.glm.searches import LIKELIHOODS, rows_of, search

MU = 0.8
NUM_PERSONS = 300
# Rows of the last person: what each of them is, and how many there are.
HOSTILE = {
    "many": ((2.0, -2.0, 1.0), 1000),
    "huge": ((1e300, -1e300, 1.0), 20),
    "outliers": ((30.0, 45.0, 1.0), 100),
    "nothing": ((np.nan, 1.0, 1.0), 5),
    "one": ((30.0, 30.0, 1.0), 1),
}
# Rows on the line that a Student-t model finds, where its curvature is largest, and so far from it
# that it is least: sqrt(3 nu) of their deviations, which are 0.5.
BENT = (6.0, 6.0, 2.2), (6.0, 6.0, 2.2 + 0.5 * np.sqrt(12))


def with_last(likelihood, row, count):
    """Return rows of persons who have one to three, and of one more."""
    rows = rows_of(likelihood, 2 * NUM_PERSONS)
    ids = np.repeat(np.arange(NUM_PERSONS), np.tile([1, 2, 3], NUM_PERSONS // 3))
    last = np.broadcast_to(row, (count, 3))
    return np.concatenate([rows, last]), np.append(ids, np.full(count, NUM_PERSONS))


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_no_release_moves_by_more_than_its_sensitivity(likelihood, kind):
    pair = with_last(likelihood, (0.1, 0.1, 0.0), 1), with_last(likelihood, *HOSTILE[kind])
    for seed, (first, second) in enumerate((pair, pair[::-1])):
        assert np.all(moves(likelihood, first, second, MU, seed) <= 1 + 1e-9)


def moves(likelihood, first, second, mu, seed=0):
    """Return how far each release moves from rows and persons to others, over its sensitivity."""
    (x, ids), (y, others) = first, second
    seen = search(likelihood, x, mu, seed, None, "zero", robust=True, unit=ids)
    there = search(likelihood, y, mu, seed, seen.transcript, "zero", robust=True, unit=others)
    assert seen.transcript.sensitivities == there.transcript.sensitivities  # the same questions
    assert 0 < seen.transcript.cost(there.transcript) <= mu**2 * (1 + 1e-9)
    assert seen.spent == pytest.approx(mu**2, rel=1e-9)
    exact = zip(seen.transcript.exact, there.transcript.exact, strict=True)
    found = np.array([float(np.linalg.norm(a - b)) for a, b in exact])
    return found / np.array(seen.transcript.sensitivities)


def test_curvatures_of_persons_may_have_either_sign():
    pair = (with_last("student_t", row, 3000) for row in BENT)
    assert 0.99 < moves("student_t", *pair, mu=2.0).max() <= 1 + 1e-9


def test_a_person_who_is_not_clipped_costs_more(monkeypatch):
    original = person_rows.add_persons

    def unclipped(*given):
        numbers = given[8].copy()
        numbers[person_rows.kernels.PERSON] = numbers[person_rows.kernels.PERSON_CURVED] = 1e100
        original(*given[:8], numbers, *given[9:])

    monkeypatch.setattr(person_rows, "add_persons", unclipped)
    x, ids = with_last("logistic", (2.0, 2.0, 0.0), 300)
    y, others = with_last("logistic", (2.0, 2.0, 1.0), 300)
    seen = search("logistic", x, MU, 0, None, "zero", unit=ids)
    there = search("logistic", y, MU, 0, seen.transcript, "zero", unit=others)
    assert seen.transcript.cost(there.transcript) > 10 * MU**2


def simulated(likelihood, seed, num_persons=4000, each=5):
    """Return features, responses with an effect of each person, and identifiers."""
    rng = stream(seed, "persons", "effects", likelihood)
    ids = np.repeat(np.arange(num_persons), each)
    x = np.column_stack([rng.normal(size=len(ids)), rng.normal(size=num_persons)[ids]])
    eta = 0.3 + x @ [0.5, -0.5] + rng.normal(size=num_persons)[ids]
    if likelihood == "linear":
        return x, eta + rng.normal(size=len(ids)), ids
    return x, (rng.random(len(ids)) < 1 / (1 + np.exp(-eta))) * 1.0, ids


def means(x, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        fit = dpmc.regression(x, y, delta=1e-6, progress=False, num_draws=500, **options)
    return fit.draws.mean(axis=(0, 1))[:3]


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["linear", "logistic"])
def test_persons_cost_less_than_groups_of_their_rows(likelihood):
    """Of five rows each: errors are at most 0.8 of those at a fifth of mu, over six fixed seeds."""
    mu = GaussianBudget.of(1.0, 1e-6).mu
    group = gaussian.epsilon_of_loss((mu / 5) ** 2 / 2, 1e-6)
    errors = []
    for seed in range(6):
        x, y, ids = simulated(likelihood, seed)
        exact = means(x, y, likelihood=likelihood, epsilon=1e6, seed=seed)
        of_persons = means(x, y, likelihood=likelihood, epsilon=1.0, seed=seed, unit=ids)
        of_groups = means(x, y, likelihood=likelihood, epsilon=group, seed=seed)
        errors.append([of_persons - exact, of_groups - exact])
    persons, groups = np.sqrt(np.mean(np.square(errors), axis=(0, 2)))
    assert persons < 0.8 * groups


@pytest.mark.parametrize("likelihood", ["linear", "logistic"])
def test_widths_are_those_of_persons_who_are_alike(likelihood):
    """With next to no noise they are those of covariances clustered by person."""
    sm = pytest.importorskip("statsmodels.api")
    x, y, ids = simulated(likelihood, 1)
    family = sm.families.Gaussian() if likelihood == "linear" else sm.families.Binomial()
    exact = sm.GLM(y, sm.add_constant(x), family=family).fit(
        cov_type="cluster", cov_kwds={"groups": ids}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        fit = dpmc.regression(
            x, y, likelihood=likelihood, epsilon=1e4, delta=1e-6, seed=1, progress=False, unit=ids
        )
    found = fit.draws.std(axis=(0, 1))[:3]
    np.testing.assert_allclose(found, exact.bse, rtol=0.12)
    assert np.all(np.abs(fit.draws.mean(axis=(0, 1))[:3] - exact.params) < exact.bse / 2)


def frame_of(likelihood="poisson"):
    rng = stream(0, "persons", "frame")
    ids = np.repeat(np.arange(800), 3)
    frame = pd.DataFrame({"u": rng.normal(size=2400), "patient": [f"p{k}" for k in ids]})
    frame["y"] = rng.poisson(1.0, size=2400) * 1.0
    return frame, ids


@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial"])
def test_ways_to_name_persons_are_one(likelihood):
    frame, ids = frame_of()
    options = {"likelihood": likelihood, "epsilon": 1.0, "delta": 1e-6, "seed": 1, "num_draws": 50}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        column = dpmc.regression(frame[["u", "patient"]], frame["y"], unit="patient", **options)
        array = dpmc.regression(frame[["u"]], frame["y"], unit=ids, **options)
        formula = dpmc.regression("y ~ u", frame, unit="patient", **options)
        zeros = dpmc.regression(frame[["u"]], frame["y"], unit=ids, invalid_rows="zero", **options)
    assert column.draws.tobytes() == array.draws.tobytes()
    assert formula.draws.tobytes() == zeros.draws.tobytes()
    assert column.guarantee.unit == formula.guarantee.unit == "patient"
    assert array.guarantee.unit == "person"
    assert column.names[:2] == ("intercept", "u")


def test_a_likelihood_without_a_search_of_its_own_has_the_bytes_of_rows():
    frame, _ = frame_of()
    options = {"likelihood": "negative_binomial", "epsilon": 1.0, "delta": 1e-6, "seed": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        rows = dpmc.regression(frame[["u"]], frame["y"], **options)
        persons = dpmc.regression(frame[["u"]], frame["y"], unit=np.arange(2400), **options)
    assert rows.draws.tobytes() == persons.draws.tobytes()


def test_series_beside_a_formula_have_the_index_of_its_table():
    frame, ids = frame_of()
    frame["patient"], options = ids, {"epsilon": 1.0, "delta": 1e-6, "seed": 1, "num_draws": 20}
    mixed = frame.sample(frac=1, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        by_name = dpmc.regression("y ~ u", mixed, unit="patient", **options)
        by_series = dpmc.regression("y ~ u", mixed, unit=mixed.patient, **options)
    assert by_name.draws.tobytes() == by_series.draws.tobytes()
    for name in ("unit", "weights"):
        with pytest.raises(DpmcError, match=f"`{name}` must have the index of `x`, label for l"):
            dpmc.regression("y ~ u", mixed, **{name: frame.patient}, **options)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"unit": [1, 2]}, "one identifier of a person for each row, got another number"),
        (
            {"unit": pd.Series(np.arange(2400)[::-1], np.arange(2400)[::-1])},
            "`unit` must have the index of `x`, label for label, got another: align them, or",
        ),
        ({"unit": "doctor"}, "`unit` must name one column of a data frame, got 'doctor'"),
        ({"y": [1.0, 0.0]}, "`y` must have one response for each row of `x`, got another number"),
        ({"y": None}, "`y` must be one response for each row, got None"),
        ({"method": "dp_penalty"}, "`unit` must be None beside a `method`"),
        ({"neighbours": "add_remove"}, "`unit` must be None with `neighbours` 'add_remove'"),
    ],
)
def test_wrong_units_are_refused_and_tell_no_number_of_rows(change, line):
    frame, ids = frame_of()
    given = {"x": frame[["u"]], "y": frame["y"], "unit": ids, "likelihood": "poisson", **change}
    with pytest.raises(DpmcError, match=r"^[^\n]+$") as caught:
        dpmc.regression(**given, epsilon=1.0, delta=1e-6)
    assert line in str(caught.value)
    assert "2400" not in str(caught.value)


def test_bounds_are_for_what_counts_show_through_noise():
    sizes = np.zeros(len(person_rows.SIZES) + 1)
    sizes[[1, 4, 9]] = 4000.0, 1000.0, 10.0  # one row, five to eight, 129 to 256
    noise = 20.0
    assert most_rows(sizes, noise) == 8
    spike = sizes.copy()
    spike[18] = 3 * noise
    assert most_rows(spike, noise) == 8
    lengths = np.zeros(len(person_rows.LENGTHS) + 1)
    lengths[6] = 4000.0
    tight, steady = clip_bound(lengths, 1.0, 10.0, 1.0, 3, 1.0)
    lengths[10] = 400.0
    wide, _ = clip_bound(lengths, 1.0, 10.0, 1.0, 3, 1.0)
    assert tight < wide
    assert 0.9 < steady <= 1
    assert clip_bound(np.zeros_like(lengths), 1.0, 10.0, 2.0, 3, 4.0) == (4.0, 1.0)
