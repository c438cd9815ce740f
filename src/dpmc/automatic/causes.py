"""Causes of a wrong posterior that no budget mends, from what was released for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from dpmc.automatic.centre import Centre
from dpmc.automatic.curvature import in_basis
from dpmc.automatic.noise_aware import NoiseAware
from dpmc.types import Array

# Share of right searches, and of parameters from the prior, that a remark doubts.
DOUBTS = 1e-3
# Deviations between rows and prior from which on nothing else is to blame: where noise is about as
# large as the rows it may come to a few.
FAR_APART = 10.0
# Directions are named if the others are clear of noise by this factor.
CLEAR = 3.0
# Weight of a component in a direction, in its own deviations and over the largest, to be named.
NAMED = 0.3
# Size of a component's slopes over that of the others, from which on it drowns them.
UNEVEN = 100.0


@dataclass(frozen=True)
class Causes:
    """Signs in the releases of a search, beside the size of the noise.

    Parameters
    ----------
    sizes : ndarray of shape (d,)
        Root of what is seen of the curvature along each component, noise and all.
    unknown : int
        Directions whose curvature drowns in noise: there the prior has the word.
    tied : tuple of int
        Components that weigh most in these directions, if the others are clear of noise.
    silent : bool
        Whether next to no row contributed anything where the search began.
    still : bool
    surprise : float
        Of :class:`dpmc.automatic.centre.Centre`.
    apart, pulled : float
        Of :meth:`dpmc.automatic.noise_aware.NoiseAware.against_prior`.
    """

    sizes: Array
    unknown: int
    tied: tuple[int, ...]
    silent: bool
    still: bool
    surprise: float
    apart: float
    pulled: float

    @classmethod
    def of(cls, centre: Centre, posterior: NoiseAware) -> Causes:
        """Causes that a search and its posterior show."""
        curvature, dim = centre.curvature, len(centre.theta)
        inverse = in_basis(centre.basis, np.eye(dim))
        sizes = np.sqrt(np.einsum("ij,ik,kj->j", inverse, curvature.for_steps(), inverse))
        unknown = curvature.values <= curvature.reach
        tied: tuple[int, ...] = ()
        others = curvature.values[~unknown]
        if unknown.any() and (others > CLEAR * curvature.reach).all():
            weights = np.abs(sizes[:, None] * (centre.basis @ curvature.vectors[:, unknown]))
            weights /= weights.max(axis=0)
            tied = tuple(np.flatnonzero(weights.max(axis=1) > NAMED).tolist())
        return cls(
            sizes,
            int(np.sum(unknown)),
            tied,
            centre.silent,
            centre.still,
            centre.surprise,
            *posterior.against_prior(),
        )

    def certain(self, names: tuple[str, ...], troubled: bool) -> str | None:
        """Cause beside which the budget is none, and what helps; None if none is seen.

        Parameters
        ----------
        names : tuple of str
            Of the components; their numbers if there are none.
        troubled : bool
            Whether the posterior is much wider than the rows allow.
        """
        if self.silent:
            return nothing_said() + " No budget helps."
        if self.lost:
            return (
                "The search has not found the posterior: under a clip bound that clips fewer, rows "
                f"add up to something else than it says, by {math.sqrt(self.surprise):.2g} "
                "deviations of the noise. Rare rows, as those with a rare outcome or feature, or "
                "rows far beyond the others, were clipped to where they do not count, and "
                "intervals may be in the wrong place. What helps is a prior or a public `start` "
                "nearer to the posterior, or narrower public bounds; a larger epsilon need not."
            )
        if self.still:
            return (
                "Gradients of rows vary less than half as much as the model says: rare rows, as "
                "those with a rare outcome, were clipped to where they do not count, and intervals "
                "may be in the wrong place; or responses vary less than the model has it. What "
                "helps is a prior or a public `start` nearer to the posterior, more rows, or a "
                "larger epsilon; or another model of the variance."
            )
        large = np.flatnonzero(self.sizes > UNEVEN * np.median(self.sizes)).tolist()
        if self.apart > (self._doubtful if large else FAR_APART**2):
            return self.possible(troubled)
        if large and troubled:
            return (
                f"Units differ by much: {_listed(large, names)} counts so much more than the other "
                "components that noise hides those. What helps is to count its column from a "
                "public number, and divide it by another, or to do so with a response that is in "
                "other units than the prior; a larger epsilon need not."
            )
        return None

    def possible(self, troubled: bool) -> str | None:
        """Return that rows and prior are apart, as a search that is mostly noise may make them."""
        if not (self.apart > self._doubtful and (troubled or self.pulled > 1)):
            return None
        return (
            f"Rows and prior are {math.sqrt(self.apart):.2g} deviations apart: the prior may be in "
            "other units than the rows, or too narrow, and intervals in the wrong place. What "
            "helps then is a prior in the units of the rows (`prior_sd` of `dpmc.regression`), or "
            "columns divided by and counted from public numbers, so that parameters are as large "
            "as the prior says; a larger epsilon need not."
        )

    @property
    def lost(self) -> bool:
        """True if rows add up to something else than the search says."""
        return self.surprise > self._doubtful

    @property
    def _doubtful(self) -> float:
        return float(stats.chi2.isf(DOUBTS, len(self.sizes)))

    def ties(self, names: tuple[str, ...]) -> str:
        """Components that the unknown directions are of, if most directions are known."""
        most = 2 * self.unknown > len(self.sizes) or len(self.tied) == len(self.sizes)
        if most or not self.tied:
            return ""
        return (
            f"They are those of {_listed(self.tied, names)}: where a column is constant, or "
            "follows from others, or no row has a level, no budget helps, and one of them is to be "
            "left out. Otherwise "
        )


def nothing_said() -> str:
    """Return that rows leave the prior as it was."""
    return (
        "Next to no row says anything of the parameters where the search began, and the prior has "
        "the word: rows that are invalid count as zero, and so do those where the model has no "
        "slope."
    )


def _listed(components: tuple[int, ...] | list[int], names: tuple[str, ...]) -> str:
    told = [f"`{names[k]}`" if names else f"component {k}" for k in components]
    return " and ".join([", ".join(told[:-1]), told[-1]] if len(told) > 1 else told)
