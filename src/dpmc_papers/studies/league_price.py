"""Effective draws of the league's chains on a normal target of known shape, against dimension.

See :mod:`dpmc_league.price` and, for what is expected, :mod:`dpmc_league.theory`. Nothing is
computed from records.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpmc import checks
from dpmc.progress import Progress, silent
from dpmc.registry import listed, refusal
from dpmc.rng import stream
from dpmc.types import NO_GUARANTEE, Dataset, DpmcError
from dpmc_league import price
from dpmc_papers.config.setups import StudyPoint, StudySetup, canonical
from dpmc_papers.studies import _tables

if TYPE_CHECKING:
    import pandas as pd

METHODS = "dpmc_league.rivals"

COLUMNS = {
    **_tables.COLUMNS,
    "dim": "int64",
    "worth": "float64",
    "cost": "float64",
    "against_theory": "float64",
    "theory_share": "float64",
    "acceptance_rate": "float64",
}


@dataclass(frozen=True)
class Params:
    """Size of the budget, and length of trajectories.

    Parameters
    ----------
    per_dim : float
        Exact draws that the budget is worth, for each dimension.
    num_leapfrog_steps : int
        Of DP-HMC.
    """

    per_dim: float = price.WORTH_PER_DIM
    num_leapfrog_steps: int = 1

    def __post_init__(self) -> None:
        checks.positive("per_dim", self.per_dim)
        checks.at_least("num_leapfrog_steps", self.num_leapfrog_steps, 1)


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Run chains at some dimensions: each point has ``dim``, and a replicate is a chain.

    ``worth`` is k, the exact draws that the budget is worth; ``cost`` the mean square error of the
    means in posterior standard deviations times k, so that 1 over its mean over replicates is
    effective draws over k; ``against_theory`` that times ``theory_share``, with mean 1 where the
    theory is right.
    """

    def row(point: StudyPoint, replicate: int) -> dict[str, Any]:
        own = Params(**_tables.having(point.params, Params))
        dim, steps = int(point.point["dim"]), own.num_leapfrog_steps
        worth = own.per_dim * dim
        share = price.THEORY[point.method](worth, dim, steps) / worth
        rng = stream(setup.seed, "chain", canonical(point), replicate)
        found = price.chain(point.method, dim, worth, int(rng.integers(2**62)), steps)
        return {
            **_tables.place(point, replicate),
            **_tables.guaranteed(NO_GUARANTEE, ()),
            "status": "complete",
            "dim": dim,
            "worth": worth,
            "cost": worth * found.square_error,
            "against_theory": worth * found.square_error * share,
            "theory_share": share,
            "acceptance_rate": found.acceptance_rate,
        }

    return _tables.tabulate(COLUMNS, itertools.product(setup.each(), replicates), progress, row)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse."""
    Params(**_tables.having(point.params, Params))
    checks.at_least("dim", int(point.point.get("dim", 0)), 1)
    if point.method not in price.CHAINS:
        wanted = f"one of {listed(price.CHAINS)}"
        raise DpmcError(refusal("method", wanted, point.method, price.CHAINS))
