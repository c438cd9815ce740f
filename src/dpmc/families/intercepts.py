"""Intercepts of groups of rows: normal around the intercept of all, with an unknown deviation.

A row tells of the intercept of its own group, and of neither their mean nor their deviation. So a
search finds the likelihood of slopes and intercepts alone, which is about normal. Mean and
deviation come in with the prior afterwards: given the deviation all else is normal, and the
deviation is one number, drawn from its density on a grid. No approximation is made in that, also
where the deviation is next to nothing and the joint density has the shape of a funnel, which a
normal distribution of all of it, in either parametrisation, would miss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.automatic.curvature import in_basis
from dpmc.automatic.noise_aware import NoiseAware
from dpmc.priors import Prior
from dpmc.types import Array

# Deviations that a grid has, over the scale of their prior, and how many.
SMALLEST, LARGEST, POINTS = 1e-4, 6.0, 400
# Deviation of intercepts in the search, over the scale of the prior: about its median.
SEARCH_SD = 0.7


@dataclass(frozen=True)
class Exchangeable(Prior):
    """Numbers that are normal around one that is normal around zero: of intercepts in a search.

    Parameters
    ----------
    mean_sd, sd : float
        Standard deviations of that number, and around it.
    """

    mean_sd: float = 1.0
    sd: float = 1.0

    def of(self, u: Any) -> tuple[Any, Any]:
        """Values, which are the numbers themselves, and their log-density."""
        mean = sum(u) / len(u)
        around = sum((one - mean) ** 2 for one in u) / self.sd**2
        variance = self.mean_sd**2 + self.sd**2 / len(u)
        return tuple(u), -0.5 * (around + mean**2 / variance)


@dataclass(frozen=True)
class Intercepts:
    """Prior of the components of a search, some of which are intercepts of groups.

    Parameters
    ----------
    first, count : int
        Place of the first intercept among the components, and how many there are.
    scale : float
        Of the half-normal prior of their deviation.
    mean_sd : float
        Prior standard deviation of their mean, around 0; 0 where it is known to be 0.
    others : ndarray of shape (d - count,)
        Prior standard deviations of the other components.
    """

    first: int
    count: int
    scale: float
    mean_sd: float
    others: Array

    def draws(
        self, found: NoiseAware, num_draws: int, num_chains: int, rng: np.random.Generator
    ) -> tuple[Array, float]:
        """Draws of the components, the logarithm of the deviation, and the mean.

        Returns
        -------
        draws : ndarray of shape (chains, draws, d + 2)
            They are independent.
        accepted : float
            1: none is proposed and refused.
        """
        inverse = in_basis(found.basis, np.eye(len(found.basis)))
        likelihood = inverse.T @ found.precision @ inverse
        weighted = inverse.T @ found.weighted + likelihood @ found.origin
        logs = np.linspace(math.log(SMALLEST), math.log(LARGEST), POINTS) + math.log(self.scale)
        heights = np.array([self._height(likelihood, weighted, one) for one in logs])
        chances = np.exp(heights - heights.max())
        size = num_draws * num_chains
        places = rng.choice(POINTS, size=size, p=chances / chances.sum())
        out = np.empty((size, len(weighted) + 2))
        step = logs[1] - logs[0]
        out[:, -2] = logs[places] + step * (rng.random(size) - 0.5)
        normal = rng.standard_normal((size, len(weighted) + 1))
        for place in np.unique(places):
            mean, root = self._given(likelihood, weighted, logs[place])[:2]
            some = places == place
            both = mean + normal[some, : len(mean)] @ root.T
            out[some, : len(weighted)] = both[:, : len(weighted)]
            out[some, -1] = both[:, -1] if self.mean_sd else 0.0
        return out.reshape(num_chains, num_draws, -1), 1.0

    def _height(self, likelihood: Array, weighted: Array, log_sd: float) -> float:
        """Log-density of the logarithm of the deviation, given what was released."""
        mean, root, raised = self._given(likelihood, weighted, log_sd)
        volume = float(np.linalg.slogdet(root)[1])
        prior = log_sd - 0.5 * math.exp(2 * (log_sd - math.log(self.scale)))
        return 0.5 * float(raised @ mean) + volume - self.count * log_sd + prior

    def _given(
        self, likelihood: Array, weighted: Array, log_sd: float
    ) -> tuple[Array, Array, Array]:
        """Mean, and root of the covariance, of components and mean, given the deviation.

        Behind them is the precision times the mean.
        """
        dim, free = len(weighted), int(self.mean_sd > 0)
        precision = np.zeros((dim + free, dim + free))
        precision[:dim, :dim] = likelihood
        groups = np.arange(self.first, self.first + self.count)
        rest = np.setdiff1d(np.arange(dim), groups)
        precision[rest, rest] += self.others**-2.0
        inside = math.exp(-2 * log_sd)
        precision[groups, groups] += inside
        if free:
            precision[groups, -1] -= inside
            precision[-1, groups] -= inside
            precision[-1, -1] = self.count * inside + self.mean_sd**-2
        # In deviations of about the prior: what is large is no rounding error beside what is small.
        unit = 1 / np.sqrt(np.diag(precision))
        values, vectors = np.linalg.eigh(precision * np.outer(unit, unit))
        root = unit[:, None] * vectors / np.sqrt(np.maximum(values, 1e-15))
        raised = np.append(weighted, np.zeros(free))
        mean: Array = root @ (root.T @ raised)
        return mean, root, raised
