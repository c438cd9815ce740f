"""The joint guarantee of fits and releases, against exact compositions."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

import dpmc
from dpmc.comparison import joint
from dpmc.privacy import GaussianBudget, Ledger, compose, gaussian
from dpmc.privacy.accountants.gaussian import log_delta
from dpmc.privacy.clipped import asserted
from dpmc.types import NO_GUARANTEE, DpmcError, Guarantee

DELTA = 1e-6


def pure(epsilon, neighbours="replace"):
    return Guarantee(epsilon, 0.0, neighbours, "laplace")


def responses_delta(epsilon, each, number):
    """Return delta at epsilon of several randomised responses, exactly."""
    k = np.arange(number + 1)
    kept = 1 / (1 + math.exp(-each))
    p, q = stats.binom.pmf(k, number, kept), stats.binom.pmf(k, number, 1 - kept)
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def test_gaussian_releases_compose_exactly():
    records = (("gaussian(5.0)", 3), ("gaussian(8.0)", 2))
    ledger = Ledger({gaussian(4.0): 1})
    joint = compose([records, ledger], DELTA)
    mean_loss = (3 / 25 + 2 / 64 + 1 / 16) / 2
    assert log_delta(joint.epsilon, mean_loss) == pytest.approx(math.log(DELTA), abs=1e-4)
    assert joint.accountant == "gaussian"


def test_pure_releases_compose_as_randomised_response():
    joint = compose([pure(0.1)] * 100, DELTA)
    assert responses_delta(joint.epsilon, 0.1, 100) <= DELTA * (1 + 1e-9)  # rounding
    assert responses_delta(0.97 * joint.epsilon, 0.1, 100) > DELTA
    assert compose([pure(0.5), pure(0.25)], 1e-12).epsilon <= 0.75 * (1 + 1e-12)


def test_a_gaussian_guarantee_counts_as_its_release():
    budget = GaussianBudget.of(1.0, 1e-5)
    one = Guarantee(1.0, 1e-5, "replace", "gaussian")
    twice = GaussianBudget(budget.mu * math.sqrt(2)).guarantee(DELTA).epsilon
    assert compose([one, one], DELTA).epsilon == pytest.approx(twice, rel=1e-6)
    # Of any other guarantee no more is known than its two numbers.
    assert compose([Guarantee(1.0, 1e-5, "replace", "other")], DELTA).epsilon == math.inf


def test_kinds_are_composed_together():
    """Between the larger of the two and the sum of epsilons, with delta exact by integration."""
    one, budget = pure(1.0), GaussianBudget(0.5)
    joint = compose([one, Ledger(budget)], DELTA).epsilon
    kept = 1 / (1 + math.exp(-1.0))
    exact = kept * _delta(joint - 1.0, 0.5) + (1 - kept) * _delta(joint + 1.0, 0.5)
    assert exact <= DELTA * (1 + 1e-6)
    assert exact > 0.9 * DELTA
    assert joint < 1.0 + budget.guarantee(DELTA).epsilon


def _delta(epsilon, mu):
    """Return the divergence of N(mu, 1) from N(0, 1) at any epsilon."""
    cdf = stats.norm.cdf
    return cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * cdf(-mu / 2 - epsilon / mu)


def test_known_deltas_add_up():
    parts = [Guarantee(0.5, 4e-7, "replace", "other"), Guarantee(0.25, 5e-7, "replace", "other")]
    joint = compose(parts, DELTA)
    assert 0.7 < joint.epsilon <= 0.75 * (1 + 1e-12)
    assert compose(parts, 8e-7).epsilon == math.inf


def test_a_budget_counts_whole_whatever_was_spent():
    budget = GaussianBudget.of(1.0, DELTA)
    ledger = Ledger(budget)
    ledger.release(asserted(0.0, 1.0), 1000.0, np.random.default_rng())
    assert compose([ledger], DELTA).epsilon == pytest.approx(1.0, rel=1e-6)
    assert compose([ledger.records()], DELTA).epsilon < 0.01


def test_fits_and_single_releases_are_composed():
    x = np.random.default_rng(1).normal(size=(200, 1))
    model = dpmc.Model(
        "mean",
        1,
        lambda c, x: -0.5 * (x[0] - c[0]) ** 2,
        lambda c, x: (x[0] - c[0],),
        lambda theta: 0.0,
        lambda theta: 0.0 * theta,
    )
    fit = dpmc.fit(
        model,
        x,
        method="dp_penalty",
        epsilon=1.0,
        delta=1e-6,
        num_chains=1,
        progress=False,
        proposal_sd=0.1,
        ratio_noise_multiplier=40.0,
        ratio_clip_bound=1.0,
    )
    alone = compose([fit], 1e-6)
    assert alone.epsilon == pytest.approx(fit.guarantee.epsilon, rel=1e-6)
    both = compose([fit, fit, pure(0.1)], 1e-6)
    exact = compose([fit.ledger, fit.ledger], 1e-6).epsilon
    assert exact < both.epsilon < exact + 0.1001
    assert both.outside == fit.guarantee.outside


def steep_below_the_start(theta):
    """A gradient of the log-prior that throws most trajectories off, whatever the rows are."""
    return np.where(theta > 0.02, -1e200 * theta, -theta)


def test_a_fit_counts_with_all_that_it_was_to_release():
    """Trajectories that leave the finite numbers release less, and how many do depends on rows."""
    x = np.random.default_rng(1).normal(scale=0.5, size=(2000, 1))
    model = dpmc.Model(
        "mean",
        1,
        lambda c, x: -0.5 * (x[0] - c[0]) ** 2,
        lambda c, x: (x[0] - c[0],),
        lambda theta: -0.5 * float(theta @ theta),
        steep_below_the_start,
    )
    fit = dpmc.fit(
        model,
        x,
        method="dp_hmc",
        epsilon=1.0,
        delta=1e-6,
        num_chains=1,
        max_iterations=60,
        progress=False,
        seed=1,
        diagnostics="none",
        num_leapfrog_steps=8,
        step_size=0.03,
        ratio_noise_multiplier=60.0,
        gradient_noise_multiplier=60.0,
        gradient_clip_bound=2.0,
        ratio_clip_bound=2.0,
    )
    planned = sum(fit.plan.releases.values())
    assert sum(count for _, count in fit.ledger) < 0.9 * planned
    assert compose([fit], 1e-6).epsilon == pytest.approx(fit.guarantee.epsilon, rel=1e-6)
    assert compose([fit.ledger], 1e-6).epsilon < 0.97 * fit.guarantee.epsilon


def test_relations_have_to_agree():
    add_remove = pure(1.0, "add_remove")
    with pytest.raises(DpmcError, match=r"part 1 must be private under .* got addition or removal"):
        compose([pure(1.0), add_remove], DELTA)
    assert compose([add_remove], DELTA, "add_remove").neighbours == "add_remove"


def test_units_have_to_agree():
    patient = Guarantee(1.0, 1e-7, accountant="gaussian", unit="patient")
    with pytest.raises(DpmcError, match=r"part 1 must protect a row, as .* got a patient"):
        compose([pure(1.0), patient], DELTA)
    with pytest.raises(DpmcError, match=r"part 0 must protect a patient, .* got a row"):
        compose([pure(1.0), patient], DELTA, unit="patient")
    assert compose([patient, patient], DELTA).unit == "patient"
    # Ledgers and records do not say what they protect.
    for silent in (Ledger({gaussian(9.0): 1}), (("gaussian(9.0)", 1),)):
        with pytest.raises(DpmcError, match="`unit` must be given, since part 1 does not say what"):
            compose([patient, silent], DELTA)
        assert compose([silent], DELTA).unit == "row"
    with pytest.raises(DpmcError, match=r"`unit` must name what is protected, .* got ''"):
        compose([], DELTA, unit="")
    both = compose([patient, Ledger({gaussian(9.0): 1})], DELTA, unit="patient")
    assert both.relation == "substitution of one patient"


@pytest.mark.parametrize(
    ("noises", "joint"),
    [
        (["discrete", "discrete"], "discrete"),
        (["discrete", "continuous"], "continuous and discrete"),
        (["continuous and discrete", "discrete"], "continuous and discrete"),
        (["discrete", ""], ""),
    ],
)
def test_the_noise_is_that_of_all_parts(noises, joint):
    parts = [dataclasses.replace(pure(1.0), noise=noise) for noise in noises]
    assert compose(parts, DELTA).noise == joint
    gaussian_parts = [
        dataclasses.replace(part, accountant="gaussian", delta=DELTA) for part in parts
    ]
    assert compose(gaussian_parts, DELTA).noise == joint
    ledger = Ledger({gaussian(4.0): 1}, "discrete")
    assert compose([ledger, *parts], DELTA).noise == joint
    assert compose([*parts, ledger.records()], DELTA).noise == ""


@pytest.mark.parametrize(
    "batch",
    [
        "sampled_gaussian(9.0, batch_size=5, num_rows=100)",
        "barker(0.5, clip_scale=0.1, batch_size=10, num_rows=100)",
    ],
)
def test_batches_are_accounted_for_under_substitution_alone(batch):
    message = "part 0 must have releases from all rows alone under addition or removal of one row"
    with pytest.raises(DpmcError, match=message):
        compose([((batch, 1),)], DELTA, "add_remove")
    assert compose([((batch, 1),)], DELTA).private


def test_a_comparison_has_the_sum_of_deltas_where_it_has_no_less():
    """What is printed is a guarantee that `compose` has at that delta as well."""

    def fit(epsilon, accountant, unit="row"):
        guarantee = Guarantee(epsilon, DELTA, accountant=accountant, unit=unit)
        return dpmc.Fit(np.zeros((1, 2, 1)), {}, {}, "complete", (), guarantee)

    numerical = [fit(1.0, "subsampled"), fit(0.5, "subsampled")]
    assert not compose(numerical, DELTA).private
    assert "no privacy" not in str(compose(numerical, DELTA))
    found = joint(numerical, DELTA)
    assert found.epsilon == pytest.approx(1.5)
    assert found.delta == pytest.approx(2 * DELTA)
    assert compose(numerical, found.delta) == found
    exact = [fit(1.0, "gaussian"), fit(0.5, "gaussian")]
    assert joint(exact, DELTA) == compose(exact, DELTA)
    assert joint(exact, DELTA).delta == DELTA
    of_patients = [fit(1.0, "gaussian", "patient")] * 2
    assert joint(of_patients, DELTA).unit == "patient"
    with pytest.raises(DpmcError, match="part 1 must protect a row"):
        joint([exact[0], of_patients[0]], DELTA)
    half = dataclasses.replace(numerical[0], guarantee=Guarantee(1.0, 0.6, accountant="pld"))
    assert not joint([half, half], DELTA).private


@pytest.mark.parametrize(
    ("parts", "delta", "message"),
    [
        ([NO_GUARANTEE], DELTA, "part 0 must be private, got no privacy guarantee"),
        ([3.0], DELTA, "part 0 must be a Fit, a Ledger or its records, a release or a Guarantee,"),
        (
            [(("unknown(1)", 1),)],
            DELTA,
            r"an event must read gaussian\(...\), sampled_gaussian\(...\) or barker\(...\),",
        ),
        ([("gaussian(5.0)", 1)], DELTA, "a record must be a text and a count, got 'gaussian"),
        ([(("gaussian(5.0)", 1.5),)], DELTA, "must be an integer of at least 0, got 1.5"),
        ([(("gaussian(5.0)", 10**400),)], DELTA, "must be an integer of at least 0, got 1000"),
        (3.0, DELTA, "`parts` must be a list of parts, got a float"),
        ([], 0.0, r"`delta` must be in \(0, 1\), got 0.0"),
        (
            [Guarantee(1.0, 1.0)],
            DELTA,
            r"`delta` must be in \[0, 1\) and `epsilon` finite and at least 0, got 1.0 and 1.0",
        ),
        ([Guarantee(-1.0, 1e-7)], DELTA, r"at least 0, got 1e-07 and -1.0"),
    ],
)
def test_what_cannot_be_composed_is_refused(parts, delta, message):
    with pytest.raises(DpmcError, match=message):
        compose(parts, delta)


def test_nothing_costs_nothing():
    assert compose([], DELTA).epsilon == 0
    assert compose([Ledger(), ()], DELTA).epsilon == 0
