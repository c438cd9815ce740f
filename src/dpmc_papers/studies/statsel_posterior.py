"""Errors of posterior means given a private release [alparslan2023thesis, chapter 6].

Every replicate has records, a release and a chain of its own, and the posterior of that very
release by quadrature.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc import registry
from dpmc.diagnostics.autocorrelation import autocorrelation_time
from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.statsel.chains import driver
from dpmc.statsel.posterior import quadrature
from dpmc.statsel.posterior.quadrature import QuadraturePosterior, Summary
from dpmc.types import Dataset
from dpmc_papers.config.setups import StudyPoint, StudySetup, canonical
from dpmc_papers.studies import _statsel, _tables
from dpmc_papers.studies._statsel import Observed, Params, check

if TYPE_CHECKING:
    import pandas as pd

METHODS = "dpmc.statsel.chains.methods"

__all__ = ["Params", "check", "run"]

COLUMNS = {
    **_tables.COLUMNS,
    "statistic": "str",
    "theta": "float64",
    "num_rows": "int64",
    "released": "float64",
    "estimate": "float64",
    "estimate_sd": "float64",
    "estimate_low": "float64",
    "estimate_high": "float64",
    "squared_error": "float64",
    "reference_mean": "float64",
    "reference_sd": "float64",
    "reference_low": "float64",
    "reference_high": "float64",
    "reference_mean_error": "float64",
    "reference_sd_error": "float64",
    "reference_low_error": "float64",
    "reference_high_error": "float64",
    "reference_squared_error": "float64",
    "acceptance_rate": "float64",
    "iac": "float64",
    "num_iterations": "int64",
    "num_particles": "int64",
}


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Release, draw from the posterior and integrate it.

    The problem has rows of :mod:`dpmc_papers.data.population_rows`; every replicate has records of
    its own. ``params`` are those of :class:`dpmc_papers.studies._statsel.Params` and of methods.
    Each point has ``statistic`` and ``epsilon``; it may have ``theta``, ``num_rows``, ``bound`` and
    ``prior_high``, and parameters of the method. ``released`` is the released number, or the mean
    of released records. ``low`` and ``high`` are quantiles at 0.5 % and 99.5 %, ``error`` is the
    Monte Carlo standard error of a reference. What a method without a chain has not is NaN or 0;
    its estimates are those by quadrature.
    """
    row = functools.partial(_row, registry.load(_statsel.KIND, setup.method))
    return _tables.tabulate(COLUMNS, itertools.product(setup.each(), replicates), progress, row)


def _row(module: Any, point: StudyPoint, replicate: int) -> dict[str, Any]:
    params: Params = _statsel.study_params(point)
    observed = _statsel.observe(point, params, replicate)
    known = _statsel.reference(observed.target)
    found = {
        **_statsel.columns(point, observed, params, replicate),
        "released": float(np.mean(observed.released.y)),
        "estimate": known.mean,
        "estimate_sd": known.sd,
        "estimate_low": known.low,
        "estimate_high": known.high,
        **{f"reference_{name}": getattr(known, name) for name in Summary._fields},
        **{f"reference_{name}_error": error for name, error in known.errors._asdict().items()},
        "reference_squared_error": (known.mean - observed.theta) ** 2,
    }
    own = _statsel.method_params(module, point)
    if module.chain is not None:
        found |= _chain(module, own, point, observed, known, replicate)
    else:
        driver.fault(point.method, point.variant, module.variants)
    found["squared_error"] = (found["estimate"] - observed.theta) ** 2
    return found


def _chain(
    module: Any,
    params: Any,
    point: StudyPoint,
    observed: Observed,
    known: QuadraturePosterior,
    replicate: int,
) -> dict[str, Any]:
    rng = stream(point.seed, "chain", canonical(point), replicate)
    draws = driver.run(
        module, observed.target, params, point.variant, rng, lambda: (known.mean, known.sd)
    )
    low, high = np.quantile(draws.theta, quadrature.TAILS)
    iac = math.nan
    if draws.theta.size >= 4:
        iac = autocorrelation_time(draws.theta, warn=False).value
    return {
        "estimate": float(draws.theta.mean()),
        "estimate_sd": float(draws.theta.std()),
        "estimate_low": float(low),
        "estimate_high": float(high),
        "acceptance_rate": draws.acceptance_rate,
        "iac": iac,
        "num_iterations": params.num_iterations,
        "num_particles": int(getattr(params, "num_particles", 0)),
    }
