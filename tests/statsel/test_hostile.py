"""Released statistics of records that are any floats, and noise that floating point betrays."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy import stats

from dpmc.privacy import discrete, single_releases
from dpmc.rng import stream
from dpmc.statsel import lookup, records, releases, smooth
from dpmc.statsel.selection import planning, two_stage
from dpmc.types import DpmcError

SIZES = [0.0, 5e-324, 1e-310, 1e-200, 1e-8, 0.3, 1.0, 1e17, 1e30, 1e154, 1e200, 1.7e308]
HOSTILE = [*(sign * size for size in SIZES for sign in (1, -1)), math.nan, math.inf, -math.inf]
GAUSSIAN, LAPLACE = lookup.mechanism("gaussian"), lookup.mechanism("laplace")
SMOOTH = lookup.mechanism("smooth_laplace")
POPULATIONS = [
    lookup.population("normal_variance", bound=2.0),
    lookup.population("normal_mean", bound=3.0),
    lookup.population("normal_mean", bound=0.1, symmetric=True),
    lookup.population("uniform_width", bound=1e6),
]
TEXTS = ["abs_0.5", "abs_1", "abs_3", "pow_1", "pow_2", "pow_3", "median", "max"]


def value_of(population, statistic, x):
    return releases.before_noise(population, statistic, GAUSSIAN, x, 1.0, invalid_rows="zero").value


def clip_alone(population, statistic, x):
    """With the clip alone to deal with NaN."""
    s = statistic.transform(records.clip(x, population.support))
    return smooth.released(s, statistic) if statistic.kind == "order" else float(np.mean(s))


def not_clipped(population, statistic, x):
    return float(np.mean(statistic.transform(x)))


def not_a_number_passes(population, statistic, x):
    return float(np.mean(statistic.transform(np.clip(x, *population.support))))


def mean_before_the_clip(population, statistic, x):
    return float(np.clip(np.mean(statistic.transform(x)), *statistic.range(population.support)))


def largest_change(value, population, statistic, n):
    """Return the largest change by one record over the sensitivity; `inf` if it is no number."""
    rng, changes = stream(15, "hostile", statistic.name, n), []
    bases = [rng.choice(HOSTILE, n), rng.uniform(-1, 1, n), np.full(n, population.support[1])]
    with np.errstate(all="ignore"):
        for base in bases:
            found = []
            for record in (*HOSTILE, *population.support):
                x = np.array(base)
                x[n // 2] = record
                found.append(value(population, statistic, x))
            changes += [abs(one - other) for one, other in itertools.combinations(found, 2)]
    moved = statistic.sensitivity(population.support) / (n if statistic.kind == "mean" else 1)
    return max(change / moved if change < math.inf else math.inf for change in changes)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("population", POPULATIONS, ids=lambda one: f"{one.name}{one.support}")
def test_no_record_of_any_floats_moves_a_statistic_beyond_its_sensitivity(population, text):
    statistic = lookup.statistic(text)
    for n in (1, 40):
        for value in (value_of, clip_alone):
            worst = largest_change(value, population, statistic, n)
            assert worst <= 1 + 1e-9
        assert worst > 0.4 or statistic.kind == "order"


@pytest.mark.parametrize("broken", [not_clipped, not_a_number_passes, mean_before_the_clip])
def test_statistics_that_clip_too_late_are_found_out(broken):
    assert largest_change(broken, POPULATIONS[0], lookup.statistic("abs_1"), 40) > 1.1


@pytest.mark.parametrize("text", ["median", "max"])
@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_no_record_changes_the_scale_of_smooth_noise_by_more_than_beta(text, epsilon):
    """At epsilon = 5 the smooth sensitivity of ties underflows, and without a floor is 0."""
    population, statistic = POPULATIONS[0], lookup.statistic(text)
    _, beta = SMOOTH.constants(epsilon, 1e-4)
    for ties in (6001, 3001, 2950, 2600):
        x, logs, without = np.full(6001, 0.25), [], []
        x[ties:] = 2.0
        for record in (0.25, *HOSTILE[::3], *HOSTILE[-3:]):
            x[0] = record
            exact = releases.before_noise(
                population, statistic, SMOOTH, x, epsilon, 1e-4, invalid_rows="zero"
            )
            logs.append(math.log(exact.scale))
            s = statistic.transform(records.clip(x, population.support))
            without.append(smooth.of(s, statistic, population.support, beta))
        assert max(logs) - min(logs) <= beta * (1 + 1e-9)
        if (text, epsilon, ties) == ("median", 5.0, 6001):
            assert min(without) == 0.0


NOISES = ["continuous", "discrete"]
RELEASED = [
    ("normal_variance", "abs_1", "laplace"),
    ("normal_variance", "pow_2", "gaussian"),
    ("normal_variance", "abs_1", "per_record_laplace"),
    ("normal_variance", "abs_1", "per_record_gaussian"),
    ("normal_variance", "median", "smooth_laplace"),
    ("bernoulli", "bit", "randomised_response"),
]


def settings(population, text, mechanism):
    bound = {} if population == "bernoulli" else {"bound": 2.0}
    chosen = lookup.mechanism(mechanism)
    given = lookup.population(population, **bound), lookup.statistic(text), chosen
    return given, {"delta": 1e-4} if chosen.needs_delta else {}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("names", RELEASED, ids=lambda names: names[2])
def test_records_of_any_floats_raise_and_warn_of_nothing(names, noise):
    given, options = settings(*names)
    outputs = set()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for record in (*HOSTILE, 0.5, np.longdouble("1e4000")):
            x = np.array([record, 0.0, 1.0, 1.0, 1.0], dtype=np.longdouble)
            found = releases.release(*given, x, 1.0, noise=noise, invalid_rows="zero", **options)
            assert np.isfinite(found.y).all()
            outputs.add((str(found.scale), found.guarantee, found.n, found.noise))
    assert len(outputs) == 1
    assert next(iter(outputs))[-1] == noise


def test_records_that_are_not_finite_count_as_zero_where_that_is_asked_for():
    x, zeros = np.linspace(-1, 1, 30), np.linspace(-1, 1, 30)
    x[[3, 9, 20]], zeros[[3, 9, 20]] = (math.nan, math.inf, -math.inf), 0.0
    for population in POPULATIONS:
        for text in TEXTS:
            statistic = lookup.statistic(text)
            assert value_of(population, statistic, x) == value_of(population, statistic, zeros)
    plan = first_selected()
    x, zeros = np.tile(x, 4)[:100], np.tile(zeros, 4)[:100]
    ours, theirs = (
        two_stage.release(plan, one, np.random.default_rng(3), invalid_rows="zero")[0]
        for one in (x, zeros)
    )
    assert ours.first == theirs.first
    assert ours.second == theirs.second


def first_selected(mechanism=LAPLACE):
    candidates = [lookup.statistic(f"abs_{a}") for a in (0.5, 1, 2)]
    first = lookup.statistic("abs_1")
    population = lookup.population("uniform_width", bound=1.0)
    return planning.plan(population, candidates, mechanism, 1.0, (10, 90), first, num_points=40)


def test_no_record_moves_either_mean_of_a_selection_beyond_its_sensitivity():
    """Records that are not clipped, or NaN that passes, fail."""
    plan = first_selected()
    index, population = np.zeros(1, np.int64), plan.population
    means = [(plan.first, 10), *((one, 90) for one in plan.candidates)]
    for statistic, n in means:

        def value(_, one, x):
            return float(two_stage.exact_means([one], plan, x[None], index)[0])

        assert largest_change(value, population, statistic, n) <= 1 + 1e-9
        for broken in (not_clipped, not_a_number_passes):
            assert largest_change(broken, population, statistic, n) > 1.1


def test_the_sign_of_a_zero_is_no_part_of_a_bit():
    """-0.0 would be distinguished from 0.0 by every bit that is kept."""
    (population, statistic, mechanism), _ = settings("bernoulli", "bit", "randomised_response")
    for noise in NOISES:
        found = releases.release(
            population, statistic, mechanism, np.full(200, -0.0), 1.0, noise=noise
        )
        assert not np.signbit(found.y).any()
        assert 0 < found.y.mean() < 1


def test_noise_that_floats_do_not_resolve_is_refused():
    (population, statistic, mechanism), _ = settings("bernoulli", "bit", "randomised_response")
    assert mechanism.scale(1.0, 1, 40.0) == 1.0  # no bit would ever be flipped
    with pytest.raises(DpmcError, match=r"`epsilon` must be at most 29\.9 for randomised response"):
        releases.release(population, statistic, mechanism, [0.0, 1.0], 40.0)
    for bound in (1e-200, 1e200):
        wide = lookup.population("normal_variance", bound=bound)
        for text in ("abs_1", "abs_3"):
            with pytest.raises(DpmcError, match=r"^`support` must give .* a range within"):
                releases.release(wide, lookup.statistic(text), LAPLACE, [0.0, 1.0], 1.0)


# --- discrete noise


@pytest.mark.parametrize("names", RELEASED[:5], ids=lambda names: names[2])
def test_discrete_releases_lie_on_a_grid_that_is_public(names):
    """Of a scale that no data change: that of smooth noise is of the largest one."""
    given, options = settings(*names)
    population, statistic, mechanism = given
    n = 1 if statistic.kind == "order" else 9
    step = discrete.grid_of(mechanism.scale(statistic.sensitivity(population.support), n, 1.0))
    step *= 2.0**-11 if mechanism.constants else 1.0
    for x, noise in itertools.product((np.zeros(9), np.linspace(0, 1, 9)), NOISES):
        found = [releases.release(*given, x, 1.0, noise=noise, **options).y for _ in range(20)]
        whole = np.ravel(found) / step % 1 == 0
        assert whole.all() == (noise == "discrete")


@pytest.mark.parametrize("names", RELEASED[:2], ids=lambda names: names[2])
def test_discrete_noise_has_the_distribution_of_the_mechanism(names):
    """Error rate 1e-6; noise of half the scale fails."""
    given, options = settings(*names)
    x = np.linspace(-1, 1, 50)
    exact = releases.before_noise(*given, x, 1.0, **options)
    y = [releases.release(*given, x, 1.0, noise="discrete", **options).y for _ in range(2000)]
    standard = (np.array(y) - exact.value) / exact.scale
    distribution = (
        "norm" if given[2] is lookup.mechanism("gaussian") or names[2] == "gaussian" else "laplace"
    )
    assert stats.kstest(standard, distribution).pvalue > 1e-6
    assert stats.kstest(0.5 * standard, distribution).pvalue < 1e-6


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])
def test_a_selection_can_have_discrete_noise(mechanism):
    """Both releases on their grids, with noise of their scales: error rate 1e-6 for each."""
    plan, x = first_selected(mechanism), np.linspace(-0.9, 0.9, 100)
    index, parts = np.zeros(1, np.int64), (x[None, :10], x[None, 10:])
    noise = []
    for _ in range(400):
        outcome, guarantee = two_stage.release(plan, x, noise="discrete")
        assert (outcome.noise, guarantee) == ("discrete", plan.guarantee)
        assert outcome.first[0] % discrete.grid_of(float(plan.first_distributions.scale[0])) == 0
        chosen = int(outcome.selected[0])
        assert outcome.second[0] % discrete.grid_of(float(plan.distributions.scale[chosen])) == 0
        for y, statistic, part, scale in (
            (outcome.first[0], plan.first, parts[0], plan.first_distributions.scale[0]),
            (
                outcome.second[0],
                plan.candidates[chosen],
                parts[1],
                plan.distributions.scale[chosen],
            ),
        ):
            exact = two_stage.exact_means([statistic], plan, part, index)[0]
            noise.append((y - exact) / scale)
    distribution = "laplace" if mechanism is LAPLACE else "norm"
    for column in np.reshape(noise, (-1, 2)).T:
        assert stats.kstest(column, distribution).pvalue > 1e-6
        assert stats.kstest(3 * column, distribution).pvalue < 1e-6
    assert two_stage.release(plan, x)[0].noise == "discrete"


def test_bits_without_a_seed_come_from_the_operating_system():
    """Of randomised response; error rate 1e-6, and another probability is found out."""
    bits, keep = np.repeat([0.0, 1.0], 4000), math.e / (1 + math.e)
    found = single_releases.randomised_response(bits, keep, None, "discrete")
    for half in (slice(0, 4000), slice(4000, 8000)):
        same = int((found[half] == bits[half]).sum())
        assert stats.binomtest(same, 4000, keep).pvalue > 1e-6
        assert stats.binomtest(same, 4000, 1 - keep).pvalue < 1e-6
