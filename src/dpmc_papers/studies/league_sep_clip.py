"""DP-SEP on a mixture, its clip bound fixed or found privately: how far each ends.

See :mod:`dpmc_league.sep_clips`. Each replicate has means and rows of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc import registry
from dpmc.ep.mixture.exact import label_posterior
from dpmc.ep.mixture.model import MixtureModel
from dpmc.ep.mixture.scores import scores
from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.types import Dataset, DpmcError, Guarantee
from dpmc_league import gate
from dpmc_papers.config.setups import StudyPoint, StudySetup, canonical
from dpmc_papers.data import mixture_rows
from dpmc_papers.studies import _tables

if TYPE_CHECKING:
    import pandas as pd

METHODS = "dpmc_league.clips"
SEEDED = "a known seed"
SCORES = ("mean_error", "covariance_error", "kl_to_truth", "sd")

COLUMNS = {
    **_tables.COLUMNS,
    "num_rows": "int64",
    "clip_bound": "float64",
    "clipped_share": "float64",
    "bound": "float64",
    "noise_multiplier": "float64",
    **dict.fromkeys(SCORES, "float64"),
    "exact_sd": "float64",
}


@dataclass(frozen=True)
class Params:
    """Parameters of the study itself; the others of its ``params`` are those of methods.

    Parameters
    ----------
    delta : float
        Of every budget.
    prior_precision : float
        Of every mean, times the identity; prior means are zero, public.
    """

    delta: float = 1e-5
    prior_precision: float = 0.1


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Fit and score at some points of a study, which have ``epsilon`` and parameters of the method.

    `dataset` is not read: a replicate has the draw of its number. ``mean_error`` is the distance of
    means from those of the exact posterior, averaged over components, of standard deviation
    ``exact_sd``; ``bound`` the clip bound of the passes that count.
    """
    own = Params(**_tables.having(setup.params, Params))
    drawn = functools.lru_cache(1)(functools.partial(_tables.drawn, setup.problem, setup.seed))
    pairs = [(point, replicate) for replicate in replicates for point in setup.each()]
    return _tables.tabulate(COLUMNS, pairs, progress, lambda p, r: _row(p, own, drawn(r)[1], r))


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse."""
    own = Params(**_tables.having(point.params, Params))
    if _tables.budget(point, own.delta) is None:
        raise DpmcError("`epsilon` must be given")
    module: Any = registry.load("league_sep_clip", point.method)
    _tables.method_params(module, point, point.own("epsilon"))


# Runs of a point all have the same ledger.
_passed = functools.lru_cache(maxsize=64)(gate.ledger)


def _row(point: StudyPoint, own: Params, dataset: Dataset, replicate: int) -> dict[str, Any]:
    module: Any = registry.load("league_sep_clip", point.method)
    parts = mixture_rows.parts(dataset)
    means = np.zeros_like(parts.means)
    sigma = dataset.facts["sigma_x"]
    model = MixtureModel.isotropic(sigma, means, own.prior_precision)
    budget = _tables.budget(point, own.delta)
    params = _tables.method_params(module, point, point.own("epsilon"))
    rng = stream(point.seed, "chain", canonical(point), replicate)
    found, made = module.fit(parts.rows, model, params, budget, rng)
    passed = _passed(made.ledger.records(), own.delta, float(point.point["epsilon"]))
    exact = label_posterior(parts.rows, parts.labels, model)
    done = found.status == "complete"
    told = scores(exact, (found.means, found.covariances)) if done else {}
    proved = Guarantee(passed.epsilon, own.delta, accountant="pld")
    return {
        **_tables.place(point, replicate),
        "delta": own.delta,
        **_tables.guaranteed(proved, [*point.outside, SEEDED]),
        **point.own("epsilon"),
        "status": found.status,
        "num_rows": len(parts.rows),
        "bound": made.bound,
        "noise_multiplier": made.noise_multiplier,
        "exact_sd": float(np.sqrt(np.mean(np.diagonal(exact.covariances, axis1=1, axis2=2)))),
        **{name: value for name, value in told.items() if name in SCORES},
    }
