"""Regression statistics of rows that are any floats, and releases that floating point betrays."""

from __future__ import annotations

import importlib
import itertools
import math
import warnings

import numpy as np
import pytest
from scipy import stats

from dpmc.linreg import profiles, sufficient_statistics
from dpmc.linreg.methods import adassp
from dpmc.linreg.release import release
from dpmc.linreg.sensitivity import (
    s_sensitivity,
    smallest_eigenvalue_sensitivity,
    statistics_sensitivity,
    z_sensitivity,
)
from dpmc.linreg.sufficient_statistics import node_statistics
from dpmc.linreg.types import NodeStatistics
from dpmc.privacy import discrete
from dpmc.privacy.ledger import Ledger
from dpmc.rng import stream
from dpmc.types import DpmcError

SIZES = [0.0, 5e-324, 1e-310, 1e-200, 1e-8, 0.3, 1.0, 1e17, 1e30, 1e154, 1e200, 1.7e308]
FINITE = [sign * size for size in SIZES for sign in (1, -1)]
HOSTILE = [*FINITE, math.nan, math.inf, -math.inf]
BOUNDS = [(1.0, 1.0), (2.0, 0.3), (1e-3, 1e3)]


def hostile_rows(num, dim, levels=HOSTILE):
    """Return rows (x, y) of every level on its own, and of levels at random."""
    rng = stream(14, "hostile", num, dim, len(levels))
    mixed = rng.choice(levels, (num, dim + 1))
    same = np.repeat(np.array(levels)[:, None], dim + 1, axis=1)
    return np.concatenate([same, mixed])


def ordinary_rows(num, dim):
    return stream(14, "ordinary", num, dim).standard_normal((num, dim + 1))


def entries(found, drop=0):
    """Return (vech S, z, u) of one node, without the first entries."""
    upper = found.s[0][np.triu_indices(found.dim)]
    return np.concatenate([upper, found.z[0], found.u])[drop:]


def sums(rows, bounds, **options):
    given = rows[:, :-1], rows[:, -1]
    return node_statistics(given, 1, len(rows), bounds, invalid_rows="zero", **options)


def bounded(rows, bounds):
    """As `sums`, with the clip alone to deal with NaN and infinity."""
    inside = rows.copy()
    sufficient_statistics.bound_rows(inside, *bounds)
    return of_gram(inside.T @ inside)


def of_gram(gram):
    upper = gram[:-1, :-1][np.triu_indices(len(gram) - 1)]
    return np.concatenate([upper, gram[:-1, -1], gram[-1:, -1]])


def not_clipped(rows, bounds):
    return of_gram(rows.T @ rows)


def not_a_number_passes(rows, bounds):
    x, y = rows[:, :-1], rows[:, -1:]
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    short = x * np.minimum(1.0, bounds[0] / norms)
    inside = np.hstack([short, np.clip(y, -bounds[1], bounds[1])])
    return of_gram(inside.T @ inside)


def products_before_the_clip(rows, bounds):
    """Every product is computed and then scaled down, which is too late for 1e200."""
    total = 0.0
    for row in np.nan_to_num(rows, posinf=1.7e308, neginf=-1.7e308):
        trace = row[:-1] @ row[:-1]
        total = total + np.outer(row, row) * min(1.0, bounds[0] ** 2 / trace if trace else 1.0)
    return of_gram(total)


def excess_taken_off(rows, bounds):
    """Sums of rows as they are, less what is beyond the bounds: other rows are lost."""
    given = np.where(np.isfinite(rows), rows, 0.0)
    given = np.clip(given, -1e150, 1e150)
    inside = given.copy()
    sufficient_statistics.bound_rows(inside, *bounds)
    whole = given.T @ given
    far = (inside != given).any(axis=1)
    return of_gram(whole - given[far].T @ given[far] + inside[far].T @ inside[far])


def violations(vector, sensitivity, rows, base):
    """Return the largest change over the sensitivity, `inf` for one that is no number."""
    worst = 0.0
    with np.errstate(all="ignore"):
        at = []
        for row in rows:
            data = base.copy()
            data[0] = row
            at.append(vector(data))
        for one, other in itertools.combinations(at, 2):
            change = np.linalg.norm(one - other) / sensitivity
            worst = max(worst, change if change < math.inf else math.inf)
    return worst


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_no_row_of_any_floats_moves_the_sums_beyond_their_sensitivity(dim, bounds):
    rows, base = hostile_rows(60, dim), ordinary_rows(50, dim)
    sensitivity = statistics_sensitivity(*bounds, dim, "replace", with_u=True)
    for vector in (lambda data, of: entries(sums(data, of)), bounded):
        worst = violations(lambda d, f=vector: f(d, bounds), sensitivity, rows, base)
        assert 0.5 < worst <= 1 + 1e-9


@pytest.mark.parametrize(
    "broken", [not_clipped, not_a_number_passes, products_before_the_clip, excess_taken_off]
)
def test_sums_that_clip_too_late_are_found_out(broken):
    rows, base = hostile_rows(60, 2), ordinary_rows(50, 2)
    sensitivity = statistics_sensitivity(1.0, 1.0, 2, "replace", with_u=True)
    assert violations(lambda d: broken(d, (1.0, 1.0)), sensitivity, rows, base) > 1.01


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_every_single_release_has_its_sensitivity(dim, bounds):
    """S alone, z alone and the smallest eigenvalue, as they are released one by one."""
    rows, base = hostile_rows(40, dim), ordinary_rows(30, dim)
    corner = dim * (dim + 1) // 2
    singles = {
        s_sensitivity(bounds[0], dim): lambda f: entries(f)[:corner],
        z_sensitivity(*bounds): lambda f: f.z[0],
        smallest_eigenvalue_sensitivity(bounds[0]): lambda f: np.linalg.eigvalsh(f.s[0])[:1],
    }
    for sensitivity, part in singles.items():
        worst = violations(lambda d, p=part: p(sums(d, bounds)), sensitivity, rows, base)
        assert worst <= 1 + 1e-9


def test_rows_that_are_not_finite_contribute_nothing_where_zero_is_asked_for():
    rows = ordinary_rows(40, 2)
    expected = rows.copy()
    for place, value in ((3, math.nan), (11, math.inf), (29, -math.inf)):
        rows[place, place % 3], expected[place] = value, 0.0
    np.testing.assert_array_equal(
        entries(sums(rows, BOUNDS[0])), entries(sums(expected, BOUNDS[0]))
    )
    ends = np.array([[math.inf, 1.0, math.nan], [-math.inf, math.inf, math.inf]])
    sufficient_statistics.bound_rows(ends, 2.0, 3.0)
    np.testing.assert_allclose(ends[0], [2.0, 0.0, 0.0], rtol=1e-13)
    np.testing.assert_allclose(ends[1], [-math.sqrt(2), math.sqrt(2), 3.0], rtol=1e-13)


def refusal(rows, **options):
    with pytest.raises(DpmcError) as error:
        node_statistics((rows[:, :-1], rows[:, -1]), 1, len(rows), (1.0, 1.0), **options)
    return str(error.value)


def fits(noisy, dim):
    """Return the status of every method that such a release feeds."""
    prior = profiles.make_prior(profiles.profile("correct"), dim, np.random.default_rng(0))
    settings = {
        "bayes_fixed_s_fast": {"noise_variance": 1.0},
        "mcmc_fixed_s": {"num_iterations": 20, "burn_in": 5},
        "mcmc_normal_x": {"num_iterations": 20, "burn_in": 5},
        "mcmc_bs": {"num_iterations": 20, "burn_in": 5},
    }
    for name, params in settings.items():
        module = importlib.import_module(f"dpmc.linreg.methods.{name}")
        fit = module.fit(noisy, prior, module.Params(**params), np.random.default_rng(1))
        yield name, fit


def test_releases_of_any_rows_look_alike_and_raise_nothing():
    """All but the noisy numbers is the same, and estimators see nothing else."""
    dim, shapes, statuses = 2, set(), set()
    ordinary = ordinary_rows(30, dim)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for row in hostile_rows(20, dim):
            data = ordinary.copy()
            data[3] = row
            exact = sums(data, (1.0, 1.0))
            for made in (
                release(exact, 1.0, 1.0, 1.0, 1e-5, with_u=True),
                adassp.release(exact, 1.0, 1.0, 1.0, 1e-5),
            ):
                public = {key: value for key, value in made.extra.items() if value.ndim == 0}
                shapes.add((made.guarantee, made.s_sd, made.z_sd, str(public), made.noise))
        assert len(shapes) == 2
    for row in hostile_rows(0, dim)[[0, 20, -3, -1]]:
        data = ordinary.copy()
        data[3] = row
        noisy = release(sums(data, (1.0, 1.0)), 1.0, 1.0, 1.0, 1e-5, with_u=True)
        statuses |= {fit.status for _, fit in fits(noisy, dim)}
    assert statuses == {"complete"}


@pytest.mark.parametrize("scale", [1e-75, 1e-20, 1e20, 1e75])
def test_bounds_of_any_allowed_size_keep_their_sensitivity(scale):
    rows, base = hostile_rows(30, 2), ordinary_rows(20, 2) * scale
    sensitivity = statistics_sensitivity(scale, scale, 2, with_u=True)
    assert 0 < sensitivity < math.inf
    worst = violations(lambda d: entries(sums(d, (scale, scale))), sensitivity, rows, base)
    assert worst <= 1 + 1e-9
    noisy = release(sums(base, (scale, scale)), scale, scale, 1.0, 1e-5, noise="discrete")
    assert np.isfinite(noisy.s).all()


def test_bounds_without_a_sensitivity_in_floating_point_are_refused():
    """At 1e-200 the sensitivity would be 0, and nothing would be noised."""
    assert statistics_sensitivity(1e-200, 1e-200, 2) == 0
    for bounds in ((1e-200, 1.0), (1.0, 1e80)):
        with pytest.raises(DpmcError, match="must be from 1e-75 to 1e\\+75, got"):
            sums(ordinary_rows(9, 2), bounds)
        exact = NodeStatistics(np.ones(1), np.ones((1, 1, 1)), np.ones((1, 1)), np.ones(1))
        with pytest.raises(DpmcError, match="must be from 1e-75 to 1e\\+75, got"):
            release(exact, *bounds, 1.0, 1e-5)
    with pytest.raises(DpmcError, match="`statistics` must name the bounds that every row was"):
        release(exact, 1.0, 1.0, 1.0, 1e-5)


# --- discrete noise

CLAIM = 1.0, 1e-6


def releases_of(value, noise, nodes):
    """Release S and z of many nodes with one row (x, y), x = y = value: all of them alike."""
    exact = NodeStatistics(
        np.ones(nodes, dtype=np.int64),
        np.full((nodes, 1, 1), value**2),
        np.full((nodes, 1), value**2),
        np.full(nodes, value**2),
        bounds=(1.0, 1.0),
    )
    noisy = release(exact, 1.0, 1.0, *CLAIM, noise=noise)
    assert noisy.noise == noise
    return np.column_stack([noisy.s[:, 0, 0], noisy.z[:, 0]]), noisy.s_sd


def test_discrete_releases_lie_on_a_grid_that_is_public():
    for value in (0.0, 0.7):
        y, scale = releases_of(value, "discrete", 200)
        steps = y / discrete.grid_of(scale)
        assert np.array_equal(steps, np.rint(steps))
        y, scale = releases_of(value, "continuous", 200)
        steps = y / discrete.grid_of(scale)
        assert not np.array_equal(steps, np.rint(steps))


@pytest.mark.parametrize("settings", [{"with_u": True}, {"split": "separate"}])
def test_discrete_noise_has_the_law_of_the_release(settings):
    """Error rate 1e-6 for each of two tests; half the noise fails."""
    exact = sums(ordinary_rows(200, 2), (1.0, 1.0))
    many = NodeStatistics(
        *(np.repeat(part, 3000, axis=0) for part in (exact.num_rows, exact.s, exact.z, exact.u)),
        bounds=exact.bounds,
    )
    ledgers = [Ledger() for _ in range(3000)]
    noisy = release(many, 1.0, 1.0, 1.0, 1e-5, noise="discrete", ledgers=ledgers, **settings)
    assert all(len(ledger.records()) == 1 for ledger in ledgers)
    i, j = np.triu_indices(2)
    noise = np.concatenate(
        [
            ((noisy.s - many.s)[:, i, j] / noisy.s_sd).ravel(),
            ((noisy.z - many.z) / noisy.z_sd).ravel(),
        ]
    )
    assert stats.kstest(noise, "norm").pvalue > 1e-6
    assert stats.kstest(0.5 * noise, "norm").pvalue < 1e-6
