"""The cost of privacy to a posterior, in its own standard deviations, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from dpmc.automatic.bounds import fewest_rows
from dpmc.automatic.centre import Centre
from dpmc.automatic.curvature import in_basis
from dpmc.automatic.noise_aware import NoiseAware, inverse_of_sum
from dpmc.privacy import events
from dpmc.privacy.accountants import gaussian
from dpmc.types import Array

# Share of right searches, and of parameters from the prior, that a remark doubts.
DOUBTS = 1e-3
# Weight of a component in a direction, in its own deviations and over the largest, to be named.
NAMED = 0.3
# A posterior is worth having while privacy at most doubles its widths.
WORTH_HAVING = 2.0


@dataclass(frozen=True)
class Cost:
    """What privacy did to a posterior.

    Parameters
    ----------
    widening : ndarray of shape (d,)
        Width of each component's interval over that without privacy noise.
    effective_draws : float
        k = (mu / (2 c))^2 of the last gradient, c the clip bound of a whitened row gradient: noise
        displaces the mean by 1 / sqrt(k) posterior standard deviations in each direction, as if it
        were the mean of k draws.
    mu, delta : float
        The budget.
    num_rows : int
    unknown : int
        Directions whose curvature drowns in noise: there the prior has the word.
    tied : tuple of int
        Components that weigh most in these directions.
    surprise : float
        Of `Centre`.
    silent : bool
        Of `Centre`.
    apart, pulled : float
        Of `NoiseAware.against_prior`.
    """

    widening: Array
    effective_draws: float
    mu: float
    delta: float
    num_rows: int
    unknown: int = 0
    tied: tuple[int, ...] = ()
    surprise: float = 0.0
    silent: bool = False
    apart: float = 0.0
    pulled: float = 0.0

    @classmethod
    def of(
        cls, centre: Centre, posterior: NoiseAware, mu: float, num_rows: int, delta: float
    ) -> Cost:
        """Return what was found."""
        step, covariance = posterior.approximation()
        theta = centre.theta + centre.basis @ step
        without = inverse_of_sum(
            centre.curvature.for_steps(), posterior.prior.precision(theta), centre.basis
        )
        widths = [
            np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", centre.basis, one, centre.basis), 0.0))
            for one in (covariance, without)
        ]
        widening = widths[0] / np.maximum(widths[1], 1e-300)
        unknown = centre.curvature.values <= centre.curvature.reach
        return cls(
            np.maximum(widening, 1.0),
            centre.gradient_noise**-2,
            mu,
            delta,
            num_rows,
            int(np.sum(unknown)),
            _tied(centre, unknown),
            centre.surprise,
            centre.silent,
            *posterior.against_prior(),
        )

    @property
    def displacement(self) -> float:
        """Root mean square error of a mean from privacy noise, in posterior standard deviations."""
        return 1 / math.sqrt(self.effective_draws)

    def statement(self) -> str:
        """Return in a sentence what the budget bought."""
        widest = float(self.widening.max())
        return (
            f"Privacy displaces means by about {self.displacement:.2g} posterior standard "
            f"deviations, and intervals are wider for it by a factor of up to {widest:.3g}."
        )

    def enough(self) -> tuple[float, int]:
        """Return the epsilon, and the number of such rows, at which widths would at most double.

        Noise falls with mu, and with the root of the number of rows.
        """
        factor = math.sqrt(max(float(self.widening.max()) ** 2 - 1, 0.0) / (WORTH_HAVING**2 - 1))
        event = events.gaussian(1 / (self.mu * max(factor, 1.0)))
        epsilon = gaussian.epsilon({event: 1}, self.delta)
        return epsilon, math.ceil(self.num_rows * max(factor, 1.0) ** 2)

    def remarks(self, names: tuple[str, ...] = ()) -> Iterator[str]:
        """Return what a user has to know before using the posterior.

        A cause that no budget mends is named alone.

        Parameters
        ----------
        names : tuple of str
            Of the components; their numbers by default.
        """
        widest, doubtful = float(self.widening.max()), stats.chi2.isf(DOUBTS, len(self.widening))
        troubled = bool(self.unknown) or widest > WORTH_HAVING
        if self.silent:
            yield (
                "Next to no row says anything of the parameters where the search began, and the "
                "prior has the word: rows that are invalid count as zero, and so do those where "
                "the model has no slope. No budget helps."
            )
        elif self.surprise > doubtful:
            yield (
                f"The search has not found the posterior: with a clip bound that clips fewer, rows "
                f"add up to something else than it says, by {math.sqrt(self.surprise):.2g} "
                "deviations of the noise. Rare rows, as those with a rare outcome or feature, or "
                "rows far beyond the others, were clipped to where they do not count, and intervals "
                "may be in the wrong place. What helps is a prior or a public `start` nearer to the "
                "posterior, or public bounds that are narrower; more rows or a larger epsilon need "
                "not."
            )
        elif self.apart > doubtful and (troubled or self.pulled > 1):
            yield (
                f"Rows and prior are {math.sqrt(self.apart):.2g} deviations apart: the prior is in "
                "other units than the rows, or too narrow, and intervals may be in the wrong "
                "place. What helps is a prior in the units of the rows (`prior_sd` of "
                "`dpmc.regression`), or columns in units, and counted from a value, that are "
                "public and make parameters as large as the prior says; a larger epsilon need not."
            )
        elif self.unknown:
            yield (
                f"The budget does not carry this posterior: in {self.unknown} of "
                f"{len(self.widening)} directions the rows drown in noise, and the prior has the "
                f"word. {self._ties(names)}`dpmc.plan` tells the epsilon, or the number of rows, "
                "that would do."
            )
        elif widest > WORTH_HAVING:
            epsilon, num_rows = self.enough()
            yield (
                f"The budget does not carry this posterior: the widest interval is {widest:.3g} "
                f"times what the rows allow. About epsilon {epsilon:.2g}, or {num_rows:,} such "
                f"rows, would bring that to {WORTH_HAVING:g}."
            )

    def _ties(self, names: tuple[str, ...]) -> str:
        """Return which components the unknown directions are of, if most are known."""
        if 2 * self.unknown > len(self.widening) or len(self.tied) == len(self.widening):
            return ""
        tied = [f"`{names[k]}`" if names else f"number {k}" for k in self.tied]
        them = " and ".join([", ".join(tied[:-1]), tied[-1]] if len(tied) > 1 else tied)
        return (
            f"They are those of {them}: where a column is constant, or follows from others, no "
            "budget helps, and one of them is to be left out. Otherwise "
        )


def _tied(centre: Centre, unknown: Array) -> tuple[int, ...]:
    """Return the components that weigh most in some directions of the curvature."""
    if not unknown.any():
        return ()
    inverse = in_basis(centre.basis, np.eye(len(unknown)))
    seen = np.einsum("ij,ik,kj->j", inverse, centre.curvature.for_steps(), inverse)
    directions = np.sqrt(seen)[:, None] * (centre.basis @ centre.curvature.vectors[:, unknown])
    weights = np.abs(directions) / np.abs(directions).max(axis=0)
    return tuple(np.flatnonzero(weights.max(axis=1) > NAMED).tolist())


def nothing_known(num_rows: int, mu: float, spread: float, delta: float) -> str:
    """Return what a user has to know of a budget whose counts are noise."""
    enough = fewest_rows(mu, spread)
    epsilon = gaussian.epsilon({events.gaussian(num_rows / (mu * enough)): 1}, delta)
    return (
        f"The budget does not carry this posterior: the noise of a count would exceed "
        f"{num_rows:,} rows. No row was used, and the prior has the word. With less than about "
        f"epsilon {epsilon:.2g}, or {math.ceil(enough):,} rows, nothing can be known of them; "
        "`dpmc.plan` tells what would do."
    )
