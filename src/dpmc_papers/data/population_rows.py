"""Records of a population of one parameter [alparslan2023thesis, chapters 4 and 6].

Rows are records before clipping. Their bounds are public: declared, not read off the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc import checks
from dpmc.rng import stream
from dpmc.statsel import lookup
from dpmc.statsel.types import Population
from dpmc.types import Array, Dataset, DpmcError


@dataclass(frozen=True)
class Params:
    """The population, its parameter and the number of records.

    Parameters
    ----------
    population : str
        Such as ``"normal_variance"``.
    theta : float
        In the domain of the population.
    num_rows : int
        n.
    bound : float, optional
        A; none for bits.
    draw : int
        Number of the draw, at least 0.
    """

    population: str
    theta: float
    num_rows: int
    bound: float | None = None
    draw: int = 0

    def __post_init__(self) -> None:
        checks.at_least("num_rows", self.num_rows, 1)
        checks.at_least("draw", self.draw, 0)
        population(self).check_theta(self.theta)


def population(params: Params) -> Population:
    """Population that records are drawn from."""
    options = {} if params.bound is None else {"bound": params.bound}
    return lookup.population(params.population, **options)


def records(params: Params, theta: float, num_rows: int, draw: int) -> Array:
    """Records of one draw, shape (n,), not clipped, of the population that `params` name.

    Every draw has a stream of its own, which theta does not enter: the same base variables make the
    records of every theta.
    """
    made = population(params)
    return made.draw(theta, stream(draw, "population records", params.population), num_rows)


def generate(params: Params, rng: np.random.Generator) -> Dataset:
    """Draw the records, x of shape (n, 1), not clipped.

    ``bounds`` hold the ends of what records are clipped to, ``low`` and ``high``, and ``truth``
    theta.
    """
    made = population(params)
    drawn = made.draw(params.theta, rng, params.num_rows)
    low, high = made.support
    bounds = {"low": float(low), "high": float(high)}
    if not np.isfinite(drawn).all():
        raise DpmcError(f"`theta` must give finite records, got {params.theta}")
    return Dataset("population_rows", drawn[:, None], bounds, "public", np.array([params.theta]))
