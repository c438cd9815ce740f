"""The cost of privacy to a posterior, in its own standard deviations, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpmc.automatic.bounds import fewest_rows
from dpmc.automatic.causes import Causes
from dpmc.automatic.centre import Centre
from dpmc.automatic.noise_aware import NoiseAware, inverse_of_sum
from dpmc.privacy import events
from dpmc.privacy.accountants import gaussian
from dpmc.types import Array

# A posterior is worth having while privacy at most doubles its widths.
WORTH_HAVING = 2.0


@dataclass(frozen=True)
class Cost:
    """Statement of what privacy did to a posterior.

    Parameters
    ----------
    widening : ndarray of shape (d,)
        Width of each component's interval over that without privacy noise.
    effective_draws : float
        k = (mu / s)^2 of the last gradient, s how far one row moves it: twice the clip bound of a
        whitened row gradient, or once where a row is added or removed. Noise displaces the mean by
        1 / sqrt(k) posterior standard deviations in each direction, as if it were the mean of k
        draws.
    mu, delta : float
        The budget.
    num_rows : int
        Of persons, where what is protected is theirs.
    what : str
        What these are called.
    """

    widening: Array
    effective_draws: float
    mu: float
    delta: float
    num_rows: int
    what: str = "rows"

    @classmethod
    def of(
        cls,
        centre: Centre,
        posterior: NoiseAware,
        mu: float,
        num_rows: int,
        delta: float,
        what: str = "rows",
    ) -> Cost:
        """Cost of privacy in a posterior."""
        step, covariance = posterior.approximation()
        theta = centre.theta + centre.basis @ step
        without = inverse_of_sum(
            centre.of_rows(centre.curvature.for_steps()),
            posterior.prior.precision(theta),
            centre.basis,
        )
        widths = [
            np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", centre.basis, one, centre.basis), 0.0))
            for one in (covariance, without)
        ]
        widening = widths[0] / np.maximum(widths[1], 1e-300)
        widening = np.maximum(widening, 1.0)
        return cls(widening, centre.gradient_noise**-2, mu, delta, num_rows, what)

    @property
    def displacement(self) -> float:
        """Root mean square error of a mean from privacy noise, in posterior standard deviations."""
        return 1 / math.sqrt(self.effective_draws)

    def statement(self) -> str:
        """In a sentence what the budget bought."""
        widest = float(self.widening.max())
        return (
            f"Privacy displaces means by about {self.displacement:.2g} posterior standard "
            f"deviations, and intervals are wider for it by a factor of up to {widest:.3g}."
        )

    def enough(self) -> tuple[float, int]:
        """Epsilon, and the number of such rows, at which widths would at most double.

        Noise falls with mu, and with the root of the number of rows.
        """
        factor = math.sqrt(max(float(self.widening.max()) ** 2 - 1, 0.0) / (WORTH_HAVING**2 - 1))
        event = events.gaussian(1 / (self.mu * max(factor, 1.0)))
        epsilon = gaussian.epsilon({event: 1}, self.delta)
        return epsilon, math.ceil(self.num_rows * max(factor, 1.0) ** 2)

    def remarks(self, causes: Causes, names: tuple[str, ...] = ()) -> Iterator[str]:
        """Warnings to a user of the posterior.

        Parameters
        ----------
        causes : Causes
            Of what is wrong beside the budget.
        names : tuple of str
            Of the components; their numbers by default.
        """
        widest, unknown = float(self.widening.max()), causes.unknown
        troubled = bool(unknown) or widest > WORTH_HAVING
        certain = causes.certain(names, troubled)
        if certain:
            yield certain
            return
        possible = causes.possible(troubled)
        if possible:
            yield possible
        if unknown:
            yield (
                f"The budget does not carry this posterior: in {unknown} of {len(self.widening)} "
                "directions the rows drown in noise, and the prior has the word. "
                f"{causes.ties(names)}`dpmc.plan` tells the epsilon, or the number of {self.what}, "
                "that would do."
            )
        elif widest > WORTH_HAVING:
            epsilon, num_rows = self.enough()
            yield (
                f"The budget does not carry this posterior: the widest interval is {widest:.3g} "
                f"times what the rows allow. About epsilon {epsilon:.2g}, or {num_rows:,} such "
                f"{self.what}, would bring that to {WORTH_HAVING:g}."
            )


def nothing_known(num_rows: int, mu: float, spread: float, delta: float, what: str = "rows") -> str:
    """Warning of a budget whose counts are noise."""
    enough = max(fewest_rows(mu, spread), float(num_rows))
    epsilon = gaussian.epsilon({events.gaussian(num_rows / (mu * enough)): 1}, delta)
    return (
        "The budget does not carry this posterior: the noise of a count hides the number of "
        f"{what}, {num_rows:,}. No row was used, and the prior has the word. With less than about "
        f"epsilon {epsilon:.2g}, or {math.ceil(enough):,} {what}, nothing can be known of them; "
        "`dpmc.plan` tells what would do."
    )
