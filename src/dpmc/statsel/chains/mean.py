"""Chains for a released mean of s, which is taken for normal before noise.

``U ~ N(mu(theta), V(theta) / n)`` and Y = U + noise: Metropolis-Hastings with the density of Y
[alparslan2023thesis, Algorithm 9], with an estimate of it [Algorithm 10], and with averaged
acceptance ratios over U [Algorithm 11].
"""

from __future__ import annotations

import math
from typing import Any

from dpmc.numerics.small_matrices import compiled
from dpmc.statsel.chains.common import accepts, exponentiate, pick
from dpmc.statsel.posterior.likelihoods import make_log_likelihood


def make_metropolis(density: Any, mean: Any, variance: Any, log_prior: Any) -> Any:
    """Chain of Algorithm 9, or with Laplace noise its collapsed form."""
    log_likelihood = make_log_likelihood(density, mean, variance)

    @compiled
    def metropolis(released: Any, walk: Any, state: Any, rng: Any, draws: Any) -> int:
        """Run Algorithm 9, or with Laplace noise its collapsed form; return the moves made.

        `state`, shape (2,): theta and its log-density, NaN to begin with; overwritten.
        """
        theta, log_density = state[0], state[1]
        if math.isnan(log_density):
            log_density = log_prior(theta) + log_likelihood(released, theta)
        moves = 0
        for i in range(draws.size):
            proposal = theta + walk.step * rng.standard_normal()
            if walk.low < proposal < walk.high:
                log_proposed = log_prior(proposal) + log_likelihood(released, proposal)
                if accepts(log_proposed - log_density, rng):
                    theta, log_density = proposal, log_proposed
                    moves += 1
            draws[i] = theta
        state[0], state[1] = theta, log_density
        return moves

    return metropolis


def make_pseudo_marginal(noise: Any, mean: Any, variance: Any, log_prior: Any) -> Any:
    """Chain of Algorithm 10."""

    @compiled
    def log_estimate(
        released: Any, theta: float, proposal: float, literal: bool, logs: Any, rng: Any
    ) -> float:
        """Estimate log p(y | proposal) from normal draws of U at `proposal`.

        As printed, the weights are ``f(u | theta) / f(u | proposal)`` times the density of
        the noise.
        """
        centre, sd = mean(proposal), math.sqrt(variance(proposal) / released.num)
        before, narrow = 0.0, 1.0
        if literal:
            before, narrow = mean(theta), math.sqrt(variance(theta) / released.num)
        for j in range(logs.size):
            z = rng.standard_normal()
            u = centre + sd * z
            logs[j] = noise(released.y - u, released.scale)
            if literal:
                x = (u - before) / narrow
                logs[j] += 0.5 * (z * z - x * x) + math.log(sd / narrow)
        top, total = exponentiate(logs, 0)
        return top + math.log(total / logs.size)

    @compiled
    def pseudo_marginal(
        released: Any, walk: Any, faults: Any, logs: Any, state: Any, rng: Any, draws: Any
    ) -> int:
        """Run Algorithm 10; return the moves made.

        `logs`, shape (N,): scratch. `state`, shape (2,): theta and the estimate of its log-density,
        NaN to begin with; overwritten.
        """
        theta, log_density = state[0], state[1]
        literal = faults.weights_at_old_theta
        if math.isnan(log_density):
            log_density = log_prior(theta) + log_estimate(
                released, theta, theta, literal, logs, rng
            )
        moves = 0
        for i in range(draws.size):
            proposal = theta + walk.step * rng.standard_normal()
            if walk.low < proposal < walk.high:
                log_proposed = log_prior(proposal) + log_estimate(
                    released, theta, proposal, literal, logs, rng
                )
                if accepts(log_proposed - log_density, rng):
                    theta, log_density = proposal, log_proposed
                    moves += 1
            draws[i] = theta
        state[0], state[1] = theta, log_density
        return moves

    return pseudo_marginal


def make_averaged_ratio(noise: Any, mean: Any, variance: Any, log_prior: Any) -> Any:
    """Chain of Algorithm 11, with U drawn at the middle of theta and theta'."""

    @compiled
    def averaged_ratio(
        released: Any, walk: Any, faults: Any, scratch: Any, state: Any, rng: Any, draws: Any
    ) -> int:
        """Run Algorithm 11, with U drawn at the middle of theta and theta'; return the moves made.

        `scratch`, shape (3, N): latent values and both weights of N particles; overwritten.
        `state`, shape (2,): theta and U, NaN to begin with at the mean of U; overwritten.
        """
        theta, latent = state[0], state[1]
        u, old, new = scratch[0], scratch[1], scratch[2]
        if math.isnan(latent):
            latent = mean(theta)
        moves = 0
        for i in range(draws.size):
            proposal = theta + walk.step * rng.standard_normal()
            if walk.low < proposal < walk.high:
                middle = theta if faults.drawn_at_old_theta else 0.5 * (theta + proposal)
                mean_old, sd_old = mean(theta), math.sqrt(variance(theta) / released.num)
                mean_new, sd_new = mean(proposal), math.sqrt(variance(proposal) / released.num)
                centre, sd = mean(middle), math.sqrt(variance(middle) / released.num)
                log_old, log_new = math.log(sd / sd_old), math.log(sd / sd_new)
                for j in range(u.size):
                    u[j] = latent if j == 0 else centre + sd * rng.standard_normal()
                    z, x = (u[j] - centre) / sd, (u[j] - mean_old) / sd_old
                    w = (u[j] - mean_new) / sd_new
                    shared = noise(released.y - u[j], released.scale) + 0.5 * z * z
                    old[j] = shared - 0.5 * x * x + log_old
                    new[j] = shared - 0.5 * w * w + log_new
                first = 1 if faults.current_left_out else 0
                top_old, sum_old = exponentiate(old, first)
                top_new, sum_new = exponentiate(new, first)
                change = top_new + math.log(sum_new) - top_old - math.log(sum_old)
                if faults.inverted_ratio:
                    change = -change
                if accepts(change + log_prior(proposal) - log_prior(theta), rng):
                    theta = proposal
                    moves += 1
                    selected = (
                        pick(old, sum_old, rng)
                        if faults.index_at_old_theta
                        else pick(new, sum_new, rng)
                    )
                elif faults.rejected_with_new_weights:
                    selected = pick(new, sum_new, rng)
                else:
                    selected = pick(old, sum_old, rng)
                latent = u[selected]
            draws[i] = theta
        state[0], state[1] = theta, latent
        return moves

    return averaged_ratio
