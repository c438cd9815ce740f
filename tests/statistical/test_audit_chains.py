"""Every private chain, run by an attacker: no claim is exceeded, and half the noise is found.

The pair of data sets is the worst one: a row at one clip bound, or at the other. With all
releases seen the statistic is their log-likelihood ratio, so the bound comes near the claim. Each
audit finds a correct method guilty with a probability of at most 1e-3; seeds are fixed.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from dpmc.mcmc import batch_ratios
from dpmc.privacy import accounting
from dpmc.privacy.accountants import barker_pld, subsampled
from dpmc.privacy.clipped import Clip
from tests.statistical.auditing import (
    DELTA,
    HUGE,
    Chains,
    audit_chains,
    linear_model,
    log_ratio,
    one_sign,
    staying_model,
)

pytestmark = pytest.mark.slow

# Of audits by counts: where a batch is a part of the rows, delta is large enough to be seen.
DELTA_COUNTS = 0.05


def pair_of(method, model, iterations, rows=(-1,), others=(), **params):
    """Return chains on a row of one sign, or of the other, beside the same other rows."""
    dim = model.dim
    return [
        Chains(method, model, [[HUGE * s] * dim for s in (sign, *others)], iterations, **params)
        for sign in (rows[0], -rows[0])
    ]


def by_moves(multiplier):
    """Return the log-likelihood ratio of ratio sums clipped to the length of a move."""

    def statistic(seen):
        move = seen.proposed - seen.before
        length, side = np.linalg.norm(move, axis=-1), np.sign(move.sum(axis=-1))
        return one_sign(seen.noisy * side / length, 2 * multiplier)

    return statistic


@functools.cache
def penalty(one_component=False, guided=False):
    settings = {"one_component": one_component, "guided": guided}
    multiplier = 1.5
    pair = pair_of(
        "dp_penalty",
        linear_model(2),
        4,
        proposal_sd=0.3,
        ratio_noise_multiplier=multiplier,
        ratio_clip_bound=1.0,
        **settings,
    )
    return pair, by_moves(multiplier), {"mu": pair[0].mu(), "delta": DELTA}


# Each buys about as much loss as the other, so that a fault in one of them is seen.
RATIO, GRADIENT = 1.5, 2.5


@functools.cache
def hamiltonian(method, reuse):
    steps = {"num_leapfrog_steps": 2, "jitter": "none"} if method == "dp_hmc" else {}
    pair = pair_of(
        method,
        linear_model(1),
        2,
        step_size=0.3,
        ratio_noise_multiplier=RATIO,
        gradient_noise_multiplier=GRADIENT,
        gradient_clip_bound=1.0,
        ratio_clip_bound=1.0,
        reuse_gradient=reuse,
        **steps,
    )
    gradients = (2 if steps else 1) + (0 if reuse else 1)
    first = [False] if reuse else []
    is_ratio = np.array(first + 2 * ([False] * gradients + [True]))

    def statistic(seen):
        move = (seen.proposed - seen.before)[..., 0]
        ratios = one_sign(seen.noisy[:, is_ratio] / move, 2 * RATIO)
        return ratios + one_sign(seen.noisy[:, ~is_ratio], 2 * GRADIENT)

    return pair, statistic, {"mu": pair[0].mu(), "delta": DELTA}


@functools.cache
def minibatch_penalty(num_rows, batch_size, iterations, multiplier):
    """Rows other than the one in question are at the upper bound; moves are all from the origin."""
    others = (1,) * (num_rows - 1)
    pair = pair_of(
        "minibatch_penalty",
        staying_model(),
        iterations,
        others=others,
        proposal_sd=0.5,
        batch_size=batch_size,
        ratio_noise_multiplier=multiplier,
        ratio_clip_bound=1.0,
    )
    q, b = batch_size / num_rows, batch_size

    def statistic(seen):
        largest = num_rows / b * np.abs(seen.proposed[..., 0])
        sd = multiplier * (2 * largest + 2 * (1 - 1 / b) * largest**2)
        same = b * largest
        mixed = (b - 2) * largest - 0.5 * largest**2 * (b - (b - 2) ** 2 / b)
        data = [(q, mixed, sd), (1 - q, same, sd)] if q < 1 else [(1, mixed, sd)]
        return log_ratio(seen.noisy, data, [(1, same, sd)])

    if q == 1:
        return pair, statistic, {"mu": pair[0].mu(), "delta": DELTA}
    claim = subsampled.epsilon(pair[0].counts(), DELTA_COUNTS)
    return pair, statistic, {"claim": claim, "delta": DELTA_COUNTS}


@functools.cache
def barker(num_rows, kappa, iterations):
    """Batches of two rows, both at the upper bound but for the one in question.

    Two rows at opposite bounds have the largest variance, which their noise leaves room for,
    and two at the same bound have none: mean and variance change as much as they can.
    """
    pair = pair_of(
        "dp_barker",
        linear_model(1),
        iterations,
        others=(1,) * (num_rows - 1),
        proposal_sd=0.5,
        batch_size=2,
        noise_variance=2.0,
        clip_scale=kappa,
    )
    q, same = 2 / num_rows, (math.sqrt(2) * kappa, math.sqrt(2))
    mixed = (0, math.sqrt(2 - kappa**2))

    def statistic(seen):
        y = seen.noisy * np.sign(seen.proposed - seen.before)[..., 0]
        data = [(q, *mixed), (1 - q, *same)] if q < 1 else [(1, *mixed)]
        return log_ratio(y, data, [(1, *same)])

    claim = barker_pld.epsilon(pair[0].counts(), DELTA_COUNTS)
    return pair, statistic, {"claim": claim, "delta": DELTA_COUNTS}


@functools.cache
def langevin(method, num_rows, iterations, step_size):
    """The noise of an update is in units of the clipped sum, which is 1 at most."""
    thermostat = {"friction": 1.0} if method == "dp_sgnht" else {}
    pair = pair_of(
        method,
        linear_model(1),
        iterations,
        others=(1,) * (num_rows - 1),
        batch_size=1,
        gradient_clip_bound=1.0,
        step_size=step_size,
        **thermostat,
    )
    chains, q = pair[0], 1 / num_rows
    rule = chains.module.batches(chains.params, num_rows)
    scale, e = rule.scale, rule.step
    sd = math.sqrt(rule.noise_scale * e) / scale

    def drifts(seen):
        moves = (seen.after - seen.before)[..., 0]
        if not thermostat:
            return moves / scale
        momentum, friction, found = moves / e, 1.0, []
        for k in range(moves.shape[1] - 1):  # what follows from the last momentum is not seen
            old, new = momentum[:, k], momentum[:, k + 1]
            found.append((new - old + friction * e * old) / scale)
            friction = friction + e * (old**2 - 1)
        return np.stack(found, axis=1)

    def statistic(seen):
        return one_sign(drifts(seen), sd, q)

    return pair, statistic, q


def claim_of(pair, q):
    """Return what the accountant makes of the noise multiplier that the method announces.

    Of the thermostat, the last release moves a momentum that is not seen.
    """
    chains = pair[0]
    seen = chains.iterations - (chains.module.__name__.endswith("sgnht"))
    if q == 1:
        return {"mu": chains.mu(seen), "delta": DELTA}
    claim = subsampled.epsilon(chains.counts(seen), DELTA_COUNTS)
    return {"claim": claim, "delta": DELTA_COUNTS}


CASES = {
    "dp_penalty": functools.partial(penalty),
    "dp_penalty, one component": functools.partial(penalty, True),
    "dp_penalty, guided": functools.partial(penalty, True, True),
    "dp_hmc": functools.partial(hamiltonian, "dp_hmc", False),
    "dp_hmc, reused gradient": functools.partial(hamiltonian, "dp_hmc", True),
    "dp_mala": functools.partial(hamiltonian, "dp_mala", False),
    "dp_mala, reused gradient": functools.partial(hamiltonian, "dp_mala", True),
    "minibatch_penalty, one row": functools.partial(minibatch_penalty, 1, 1, 4, 1.5),
    "minibatch_penalty, all rows": functools.partial(minibatch_penalty, 2, 2, 4, 1.5),
    "minibatch_penalty, batches": functools.partial(minibatch_penalty, 2, 1, 1, 0.7),
    "dp_barker, all rows": functools.partial(barker, 2, 0.7, 1),
    "dp_barker, batches": functools.partial(barker, 3, 0.7, 1),
}
LANGEVIN = {
    "dp_sgld, all rows": ("dp_sgld", 1, 4, 0.25),
    "dp_sgld, batches": ("dp_sgld", 2, 1, 0.5),
    "dp_sgnht, all rows": ("dp_sgnht", 1, 9, 0.25),
    "dp_sgnht, batches": ("dp_sgnht", 2, 2, 0.5),
}


def assert_tight(result):
    """Check that the claim stands, and that the bound comes near what can be claimed.

    By counts the bound is the weaker one; and a claim for batches of the Barker test takes the
    worst of several pairs, of which no data set has all.
    """
    assert not result.violates_claim
    if result.claim_mu is not None:
        assert result.mu_lower > 0.75 * result.claim_mu
    else:
        assert result.epsilon_lower > 0.5 * result.claim


@pytest.mark.parametrize("name", CASES)
def test_all_releases_of_a_chain_reach_the_claim_and_do_not_exceed_it(name):
    pair, statistic, claim = CASES[name]()
    result = audit_chains(pair, statistic, **claim)
    if name == "dp_barker, batches":
        assert 0.15 * result.claim < result.epsilon_lower <= result.claim
    else:
        assert_tight(result)
    assert audit_chains(pair, statistic, noise=0.5, **claim).violates_claim


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("dp_hmc", "dp_mala"))])
@pytest.mark.parametrize("only", [RATIO, GRADIENT])
def test_half_the_noise_on_the_ratio_or_on_the_gradient_is_found(name, only):
    """As with a sensitivity of the bound where twice the bound is right."""
    pair, statistic, claim = CASES[name]()
    assert audit_chains(pair, statistic, noise=0.5, only=only, **claim).violates_claim


@pytest.mark.parametrize("name", [name for name in CASES if "minibatch" in name])
def test_ratios_clipped_at_twice_the_bound_are_found(name, monkeypatch):
    pair, statistic, claim = CASES[name]()
    sums = batch_ratios.BatchRatios.sums

    def faulty(self, theta, theta_new, bound, rng):
        return sums(self, theta, theta_new, 2 * bound, rng)

    monkeypatch.setattr(batch_ratios.BatchRatios, "sums", faulty)
    assert audit_chains(pair, statistic, **claim).violates_claim


@pytest.mark.parametrize("name", LANGEVIN)
def test_all_releases_of_noisy_gradients_reach_the_claim_and_do_not_exceed_it(name, monkeypatch):
    """Without the factor 2 of the sensitivity, the noise is the same and its price a quarter."""
    pair, statistic, q = langevin(*LANGEVIN[name])
    claim = claim_of(pair, q)
    assert_tight(audit_chains(pair, statistic, **claim))
    assert audit_chains(pair, statistic, noise=0.5, **claim).violates_claim
    right = Clip.sensitivity.fget
    monkeypatch.setattr(Clip, "sensitivity", property(lambda clip: right(clip) / 2))
    cheap = claim_of(pair, q)
    assert audit_chains(pair, statistic, **cheap).violates_claim


LAST = [
    "dp_penalty",
    "dp_penalty, one component",
    "dp_penalty, guided",
    "dp_hmc",
    "dp_mala",
    "dp_barker, all rows",
    "dp_barker, batches",
    *LANGEVIN,
]


@pytest.mark.parametrize("name", LAST)
def test_the_last_draw_alone_does_not_exceed_the_claim(name):
    """By counts, so that the bound holds for any distribution of the draw."""
    if name in LANGEVIN:
        pair, _, q = langevin(*LANGEVIN[name])
        claim = claim_of(pair, q)
    else:
        pair, _, claim = CASES[name]()

    def last(seen):
        return seen.after[:, -1]

    claim = {"delta": claim["delta"], "claim": claim.get("claim")}
    if claim["claim"] is None:
        claim["claim"] = accounting.load("gaussian").epsilon(pair[0].counts(), claim["delta"])
    result = audit_chains(pair, last, **claim)
    assert not result.violates_claim
