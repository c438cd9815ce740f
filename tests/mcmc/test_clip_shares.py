"""Clip shares are released with noise that is paid for, exact and named, or not there."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import dpmc
from dpmc import registry
from dpmc.mcmc import clip_shares
from dpmc.mcmc.chains import Run
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy import accounting, calibration
from dpmc.privacy.accountants.gaussian import affordable_mean_loss
from dpmc.privacy.events import Releases, barker, gaussian, parse, sampled_gaussian
from dpmc.privacy.ledger import Ledger
from dpmc.types import CLIPS_OUTSIDE, Budget, Dataset, DpmcError
from tests.support.posteriors import gaussian_model, rows

LOUD = {"ratio_noise_multiplier": 15.0, "gradient_noise_multiplier": 30.0}
HMC = LOUD | {"step_size": 0.05, "gradient_clip_bound": 1.0, "ratio_clip_bound": 1.0}
BATCH = {"batch_size": 50, "gradient_clip_bound": 1.0, "step_size": 0.05, "max_stored": 100}
METHODS = {
    "dp_penalty": {"proposal_sd": 0.1, "ratio_noise_multiplier": 8.0, "ratio_clip_bound": 1.0},
    "dp_hmc": HMC | {"num_leapfrog_steps": 3},
    "dp_mala": HMC,
    "dp_sgld": BATCH,
    "dp_sgnht": BATCH | {"friction": 1.0},
    "minibatch_penalty": {
        "proposal_sd": 0.1,
        "batch_size": 50,
        "ratio_noise_multiplier": 4.0,
        "ratio_clip_bound": 1.0,
    },
    "dp_barker": {"proposal_sd": 0.01, "batch_size": 50},
}
OF_BATCHES = ("dp_sgld", "dp_sgnht", "minibatch_penalty", "dp_barker")
BUDGET = Budget(4.0, 1e-5, "gaussian")


def fit(method="dp_penalty", **changes):
    given = {"epsilon": 4.0, "delta": 1e-5, "seed": 3, "progress": False, "num_chains": 2}
    given |= {"max_iterations": 40, **METHODS[method], **changes}
    return dpmc.fit(gaussian_model(), rows("fit", 500, 2), method=method, **given)


def counted(result):
    return {*result.info, *result.totals} & {"ratio_clipped", "gradient_clipped"}


# --- what there is ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_shares_are_released_by_default_and_no_count_is_there(method):
    result = fit(method)
    assert counted(result) == set()
    assert result.diagnostics
    assert {*result.diagnostics} <= {"ratio_clipped", "gradient_clipped"}
    for name, one in result.diagnostics.items():
        assert 0 <= one.value <= 1
        assert one.standard_error > 0
        assert result.fraction(name, name.replace("clipped", "rows")) == one.value
    assert CLIPS_OUTSIDE not in result.guarantee.outside
    assert result.guarantee.epsilon <= 4.0
    assert dict(result.ledger) == result.plan.releases
    z = calibration.share_multiplier(BUDGET, clip_shares.SHARE)
    assert dict(result.ledger)[f"gaussian({z!r})"] == 1


@pytest.mark.parametrize("method", METHODS)
def test_without_diagnostics_there_is_nothing(method):
    result = fit(method, diagnostics="none")
    assert counted(result) == set()
    assert result.diagnostics == {}
    assert CLIPS_OUTSIDE not in result.guarantee.outside
    assert math.isnan(result.fraction("ratio_clipped", "ratio_rows"))
    assert math.isnan(result.fraction("gradient_clipped", "gradient_rows"))


@pytest.mark.parametrize("method", METHODS)
def test_exact_diagnostics_are_named_and_change_no_draw(method):
    result = fit(method, diagnostics="exact")
    assert counted(result)
    assert result.diagnostics == {}
    assert CLIPS_OUTSIDE in result.guarantee.outside
    assert CLIPS_OUTSIDE in str(result.guarantee)
    for other in ("none", "private"):
        np.testing.assert_array_equal(result.draws, fit(method, diagnostics=other).draws)


def test_a_method_without_privacy_counts_exactly():
    given = {"num_iterations": 30, "proposal_sd": 0.1, "ratio_clip_bound": 1.0, "progress": False}
    result = dpmc.fit(gaussian_model(), rows("fit", 500, 2), method="rwmh", **given)
    assert counted(result) == {"ratio_clipped"}
    assert "ratio_clipped" in result.to_arviz().sample_stats
    assert result.guarantee.outside == ()


@pytest.mark.parametrize("method", ["dp_penalty", "dp_hmc"])
def test_arviz_gets_only_what_was_released(method):
    public = {"accepted", "diverged"} & {*fit(method).info}
    for choice in ("private", "none"):
        exported = fit(method, diagnostics=choice).to_arviz()
        assert set(exported.sample_stats.data_vars) == public
    exported = fit(method).to_arviz()
    assert (
        exported.attrs["diagnostics_ratio_clipped"]
        == fit(method).diagnostics["ratio_clipped"].value
    )
    exact = fit(method, diagnostics="exact")
    assert "ratio_clipped" in exact.to_arviz().sample_stats
    unnamed = replace(exact, guarantee=replace(exact.guarantee, outside=()))
    assert set(unnamed.to_arviz().sample_stats.data_vars) == public
    unknown = replace(exact, info={**exact.info, "largest_row": exact.info["accepted"]})
    assert "largest_row" not in unknown.to_arviz().sample_stats


# --- what it costs ---------------------------------------------------------------------------


def test_the_release_takes_one_hundredth_of_the_budget():
    """In mu^2, which Gaussian releases add up in; the rest buys 99 of 100 iterations."""
    z = calibration.share_multiplier(BUDGET, clip_shares.SHARE)
    mu_squared = 2 * affordable_mean_loss(4.0, 1e-5)
    assert 1 / z**2 == pytest.approx(0.01 * mu_squared, rel=1e-12)
    all_of_it = calibration.share_multiplier(BUDGET, 1.0)
    spent = accounting.load("gaussian").delta({gaussian(all_of_it): 1}, 4.0)
    assert spent == pytest.approx(1e-5, rel=1e-6)
    quiet = Releases((), ((gaussian(500.0), 1),))
    plain = calibration.plan(quiet, BUDGET).num_iterations
    private = calibration.plan(clip_shares.with_release(quiet, BUDGET), BUDGET).num_iterations
    assert private / plain == pytest.approx(0.99, abs=1e-4)


def test_what_is_released_once_is_counted_once_for_all_chains():
    once = Releases((), ((gaussian(8.0), 1),), ((gaussian(3.0), 1),))
    assert once.counts(10, 3) == {gaussian(3.0): 1, gaussian(8.0): 30}
    each = Releases(((gaussian(3.0), 1),), ((gaussian(8.0), 1),))
    assert each.counts(10, 3) != once.counts(10, 3)
    with pytest.raises(DpmcError, match="count of"):
        Releases((), ((gaussian(8.0), 1),), ((gaussian(3.0), -1),))


WHOLE, SAMPLED, TEST = gaussian(40.0), sampled_gaussian(3.0, 50, 1000), barker(2.0, 1.0, 100, 9000)


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("gaussian", WHOLE),
        ("zcdp", WHOLE),
        ("rdp", WHOLE),
        ("pld", WHOLE),
        ("subsampled", SAMPLED),
        ("poisson_pair", SAMPLED),
        ("rdp_integer", SAMPLED),
        ("barker_pld", TEST),
        ("barker_rdp", TEST),
    ],
)
def test_every_accountant_pays_for_it_within_the_budget(name, event):
    budget = Budget(4.0, 1e-5, name)
    releases = clip_shares.with_release(Releases((), ((event, 1),)), budget)
    made = calibration.plan(releases, budget, 3)
    assert made.counts[releases.once[0][0]] == 1
    accountant = accounting.load(name)
    assert accountant.delta(made.counts, 4.0) <= 1e-5
    assert accountant.delta(releases.counts(made.num_iterations + 1, 3), 4.0) > 1e-5


def test_an_accountant_that_cannot_prove_it_is_refused_with_private_diagnostics():
    given = {"accountant": "barker_rdp_published", "epsilon": 40.0, "delta": 1e-3}
    with pytest.raises(DpmcError, match="must be 'none' or 'exact' with accountant barker_rdp_pub"):
        fit("dp_barker", **given)
    assert fit("dp_barker", diagnostics="none", **given).diagnostics == {}


@pytest.mark.parametrize("method", ["dp_hmc", "dp_sgld", "dp_barker"])
def test_the_audit_knows_of_it(method):
    from dpmc.privacy.audit import audit

    result = fit(method)
    assert audit(parse(result.ledger), 1e-5).epsilon <= 4.0


# --- what is released ------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["dp_penalty", "dp_hmc", "dp_mala"])
def test_a_full_pass_releases_its_own_totals(method):
    """Within six standard errors of the exact shares: an error rate below 1e-8 for each."""
    exact, private = fit(method, diagnostics="exact"), fit(method)
    for name, one in private.diagnostics.items():
        share = exact.fraction(name, name.replace("clipped", "rows"))
        assert 0 < share < 1
        assert abs(one.value - share) < 6 * one.standard_error
    assert {*private.diagnostics} == counted(exact)


def fake_run(share, num_rows, count):
    totals = {
        "ratio_clipped": np.array([round(share * num_rows)]),
        "ratio_rows": np.array([num_rows]),
    }
    if count == 2:
        totals |= {
            "gradient_clipped": totals["ratio_clipped"],
            "gradient_rows": totals["ratio_rows"],
        }
    return Run(None, {}, totals)


@pytest.mark.parametrize("count", [1, 2])
def test_the_noise_is_that_of_the_sensitivity(count):
    """Mean and variance over 4000 releases; each check errs with a chance below 1e-6."""
    n, z, number = 500, 20.0, 4000
    posterior, run = SimpleNamespace(num_rows=n), fake_run(0.5, n, count)
    noise, ledger = np.random.default_rng(5), Ledger()
    values = np.array(
        [
            [
                one.value
                for one in clip_shares.release(
                    SimpleNamespace(), None, posterior, run, None, z, ledger, noise, noise
                ).values()
            ]
            for _ in range(number)
        ]
    )
    assert values.shape == (number, count)
    expected = z * math.sqrt(count) / n
    assert abs(values.mean() - 0.5) < 5 * expected / math.sqrt(values.size)
    assert values.var() == pytest.approx(expected**2, rel=5 * math.sqrt(2 / values.size))
    assert ledger.records() == (("gaussian(20.0)", number),)


@pytest.mark.parametrize("method", OF_BATCHES)
def test_methods_of_batches_release_nothing_of_their_batches(method):
    """The counts of the batches may be anything; those of a full pass may not."""
    module = registry.load("method", method)
    params = registry.parameters(module, METHODS[method])
    posterior = Posterior(gaussian_model(), rows("fit", 500, 2))
    draws = np.random.default_rng(0).standard_normal((20, 2, 2))

    def released(which, clipped):
        run = replace(fake_run(clipped, 500, 2), draws=draws)
        streams = np.random.default_rng(1), np.random.default_rng(2)
        return clip_shares.release(
            which, params, posterior, run, draws[0], 1e-9, Ledger(), *streams
        )

    assert released(module, 0.1) == released(module, 0.9)
    full_pass = SimpleNamespace()
    assert released(full_pass, 0.1) != released(full_pass, 0.9)


@pytest.mark.parametrize("method", OF_BATCHES)
def test_one_row_changes_a_share_of_fresh_passes_by_at_most_one_in_n(method):
    """And so much it does; a share of one batch would change by as much as 1/b."""
    n = 60
    module = registry.load("method", method)
    values = METHODS[method] | {"batch_size": 10}
    values |= {"clip_scale": 0.05} if method == "dp_barker" else {}
    params = registry.parameters(module, values)
    states = np.random.default_rng(3).standard_normal((16, 2)) * 0.1
    base = rows("neighbours", n, 2).x

    def share(x):
        posterior = Posterior(gaussian_model(), Dataset("d", x))
        shares = module.clip_shares(posterior, params, states, np.random.default_rng(4))
        return next(iter(shares.values()))

    changes = []
    for row in range(0, n, 6):
        for extreme in (0.0, 1e6, -1e6):
            x = base.copy()
            x[row] = extreme
            changes.append(abs(share(x) - share(base)))
    assert max(changes) <= (1 + 1e-9) / n
    assert max(changes) > 0.2 / n


def test_shares_of_fresh_passes_are_those_of_the_rows():
    """Against the row functions of a Gaussian mean, written out."""
    model, dataset = gaussian_model(), rows("shares", 200, 2)
    posterior = Posterior(model, dataset)
    states = np.array([[0.1, 0.2], [-0.3, 0.0], [1.0, -1.0]])
    proposals, bounds = states + 0.25, [0.1, 0.2, 0.3]
    precision = np.linalg.inv(0.5 * np.eye(2) + 0.5)

    def density(theta):
        e = dataset.x - theta
        return -0.5 * np.einsum("ij,jk,ik->i", e, precision, e)

    ratios = [np.abs(density(q) - density(p)) for p, q in zip(states, proposals, strict=True)]
    expected = np.mean([r > bound for r, bound in zip(ratios, bounds, strict=True)])
    assert clip_shares.ratio_share(posterior, states, proposals, bounds) == pytest.approx(expected)
    lengths = [np.linalg.norm((dataset.x - theta) @ precision, axis=1) for theta in states]
    expected = np.mean([length > 1.3 for length in lengths])
    assert 0 < expected < 1
    assert clip_shares.gradient_share(posterior, states, 1.3) == pytest.approx(expected)


def test_states_are_spread_over_all_chains():
    draws = np.arange(2.0 * 3 * 100).reshape(100, 3, 2)
    states = clip_shares.released_states(draws)
    assert len(states) == clip_shares.MOST_STATES
    everyone = draws.transpose(1, 0, 2).reshape(-1, 2)
    np.testing.assert_array_equal(states[[0, -1]], everyone[[0, -1]])
    assert {int(np.flatnonzero((draws == s).all(2).any(0))[0]) for s in states} == {0, 1, 2}
    assert clip_shares.released_states(draws[:1, :1]).shape == (1, 2)
    assert clip_shares.released_states(draws[0]).shape == (3, 2)
