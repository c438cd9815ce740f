"""The chain for a released order statistic: averaged acceptance ratios over whole data sets.

[alparslan2023thesis, Algorithm 12]: the state is theta and a data set of base variables, whose
distribution does not depend on theta.
"""

from __future__ import annotations

import math
from typing import Any

from dpmc.numerics.small_matrices import compiled
from dpmc.statsel.chains.common import accepts, exponentiate, pick
from dpmc.statsel.order_draws import copy_particle, draw_centre, log_laplace, make_released_at


def make_averaged_ratio(generate: Any, transform: Any, log_prior: Any) -> Any:
    """Chain of Algorithm 12 for compiled functions of population, statistic, prior."""
    released_at = make_released_at(generate, transform)

    @compiled
    def averaged_ratio(
        y: float,
        order: Any,
        walk: Any,
        faults: Any,
        refresh: bool,
        particles: Any,
        scratch: Any,
        state: Any,
        rng: Any,
        draws: Any,
    ) -> int:
        """Run Algorithm 12; return the moves made.

        Parameters
        ----------
        y : float
            The released number.
        refresh : bool
            On rejection take a data set in proportion to its density at theta, in place of
            keeping the current one; both leave the posterior invariant.
        particles : Particles
            The first is the current data set, with reach 0 to begin with; overwritten.
        scratch : ndarray of shape (2, N)
            Both weights of N particles; overwritten.
        state : ndarray of shape (1,)
            theta; overwritten.
        """
        theta = state[0]
        old, new = scratch[0], scratch[1]
        if particles.reach[0, 0] == 0:
            draw_centre(order, particles, 0, rng)
        first = 1 if faults.current_left_out else 0
        moves = 0
        for i in range(draws.size):
            proposal = theta + walk.step * rng.standard_normal()
            if walk.low < proposal < walk.high:
                for j in range(old.size):
                    if j > 0:
                        draw_centre(order, particles, j, rng)
                    value, scale = released_at(order, particles, j, theta, rng)
                    old[j] = log_laplace(y - value, scale)
                    value, scale = released_at(order, particles, j, proposal, rng)
                    new[j] = log_laplace(y - value, scale)
                top_old, sum_old = exponentiate(old, first)
                top_new, sum_new = exponentiate(new, first)
                change = top_new + math.log(sum_new) - top_old - math.log(sum_old)
                if faults.inverted_ratio:
                    change = -change
                selected = 0
                if accepts(change + log_prior(proposal) - log_prior(theta), rng):
                    theta = proposal
                    moves += 1
                    selected = (
                        pick(old, sum_old, rng)
                        if faults.index_at_old_theta
                        else pick(new, sum_new, rng)
                    )
                elif refresh:
                    selected = (
                        pick(new, sum_new, rng)
                        if faults.rejected_with_new_weights
                        else pick(old, sum_old, rng)
                    )
                if selected > 0:
                    copy_particle(particles, selected, 0)
            draws[i] = theta
        state[0] = theta
        return moves

    return averaged_ratio
