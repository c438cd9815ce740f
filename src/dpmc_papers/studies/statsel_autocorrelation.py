"""Study of the mixing of chains given a release [alparslan2023thesis, Table 6.1, Figure 6.3]."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc import registry
from dpmc.diagnostics.autocorrelation import autocorrelation, autocorrelation_time
from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.statsel.chains import driver
from dpmc.statsel.chains.driver import ChainDraws
from dpmc.types import Dataset, DpmcError
from dpmc_papers.config.setups import StudyPoint, StudySetup, canonical
from dpmc_papers.studies import _statsel, _tables
from dpmc_papers.studies._statsel import Params

if TYPE_CHECKING:
    import pandas as pd

METHODS = "dpmc.statsel.chains.methods"

__all__ = ["Params", "check", "run"]

COLUMNS = {
    **_tables.COLUMNS,
    "statistic": "str",
    "theta": "float64",
    "num_rows": "int64",
    "num_particles": "int64",
    "num_iterations": "int64",
    "iac_sokal": "float64",
    "iac_geyer": "float64",
    "reliable": "float64",
    "acceptance_rate": "float64",
    "lag": "float64",
    "autocorrelation": "float64",
}


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Run chains and tabulate their autocorrelation; all columns are means over those of a release.

    Points are as for :func:`dpmc_papers.studies.statsel_posterior.run`; ``params`` may have
    ``num_lags`` and ``num_chains``. Columns are integrated autocorrelation times by the window of
    Sokal and by the monotone sequence of Geyer, and ``reliable``, the share of the chains that have
    100 times their length. With ``num_lags`` there is one row for every lag from 0 on.
    """
    rows = functools.partial(_rows, _module(setup.method))
    return _tables.tabulate(COLUMNS, itertools.product(setup.each(), replicates), progress, rows)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse."""
    _module(point.method)
    _statsel.check(point)


def _module(method: str) -> Any:
    module: Any = registry.load(_statsel.KIND, method)
    if module.chain is None:
        raise DpmcError(f"`method` must be a chain, got {method!r}")
    return module


def _rows(module: Any, point: StudyPoint, replicate: int) -> Iterator[dict[str, Any]]:
    study: Params = _statsel.study_params(point)
    params = _statsel.method_params(module, point)
    observed = _statsel.observe(point, study, replicate)

    def moments() -> tuple[float, float]:
        known = _statsel.reference(observed.target)
        return known.mean, known.sd

    key = canonical(point)
    found = []
    for chain in range(study.num_chains):
        rng = stream(point.seed, "chain", key, replicate, chain)
        found.append(driver.run(module, observed.target, params, point.variant, rng, moments))
    shared = {
        **_statsel.columns(point, observed, study, replicate),
        "num_particles": int(getattr(params, "num_particles", 0)),
        "num_iterations": params.num_iterations,
        **_times(found),
    }
    if not study.num_lags:
        yield shared
        return
    if found[0].theta.size <= study.num_lags:
        most = found[0].theta.size
        raise DpmcError(f"`num_lags` must be below {most} draws, got {study.num_lags}")
    curves = np.array([autocorrelation(draws.theta, study.num_lags) for draws in found])
    for lag, value in enumerate(curves.mean(axis=0).tolist()):
        yield {**shared, "lag": float(lag), "autocorrelation": value}


def _times(found: list[ChainDraws]) -> dict[str, float]:
    times = [autocorrelation_time(draws.theta, warn=False) for draws in found]
    return {
        "iac_sokal": float(np.mean([time.sokal for time in times])),
        "iac_geyer": float(np.mean([time.geyer for time in times])),
        "reliable": float(np.mean([time.reliable for time in times])),
        "acceptance_rate": float(np.mean([draws.acceptance_rate for draws in found])),
    }
