"""Prices of studies: the work of a run, and what its budget buys, as each study says them."""

from __future__ import annotations

from dataclasses import dataclass

from dpmc_papers.config.setups import StudySetup


@dataclass(frozen=True)
class Work:
    """Work of one run of a study.

    Parameters
    ----------
    units : float
        Thousands of what the study repeats, iterations for instance: measured times are of one
        unit.
    seconds_per_unit : float
        On a problem that was not measured.
    megabytes : float
        Memory beside that of the rows.
    """

    units: float = 1.0
    seconds_per_unit: float = 1.0
    megabytes: float = 0.0


@dataclass(frozen=True)
class Bought:
    """What one budget buys.

    Parameters
    ----------
    epsilon : float or None
        None without privacy.
    iterations : int or None
        Of each chain, or passes over the rows; None where nothing is repeated.
    noise : str
        Noise multipliers: standard deviation over the sensitivity under substitution.
    """

    epsilon: float | None
    iterations: int | None
    noise: str


def thousands(setup: StudySetup, parameter: str) -> float:
    """Return a parameter of a setup in thousands, one if it is not given."""
    return float(setup.params.get(parameter, 1000)) / 1000
