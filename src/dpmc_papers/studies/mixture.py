"""Expectation propagation on a mixture: how far each method ends from the exact posterior.

[vinaroz2022dpsep, section 6.1, Table 1 and Figure 1]: posteriors of the component means by EP,
SEP and DP-SEP, scored as the public code of the paper does and as they deserve.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc import registry
from dpmc.ep.mixture.exact import MixtureTruth, label_posterior, printed_truth
from dpmc.ep.mixture.model import MixtureFit, MixtureModel
from dpmc.ep.mixture.scores import published_scores, scores
from dpmc.progress import Progress, silent
from dpmc.rng import stream
from dpmc.types import Dataset
from dpmc_papers.config.setups import StudyPoint, StudySetup, canonical
from dpmc_papers.data import mixture_rows
from dpmc_papers.studies import _tables

if TYPE_CHECKING:
    import pandas as pd

METHODS = "dpmc.ep.mixture.methods"

SCORES = ("mean_error", "covariance_error", "kl_to_truth", "kl_from_truth", "sd")
COUNTERS = ("steps", "skipped", "invalid", "clipped", "repaired")

COLUMNS = {
    **_tables.COLUMNS,
    "num_rows": "int64",
    "dim": "int64",
    "f_published": "float64",
    "kl_published": "float64",
    **dict.fromkeys(SCORES, "float64"),
    "exact_sd": "float64",
    **dict.fromkeys(COUNTERS, "int64"),
    "posterior": "str",
}


@dataclass(frozen=True)
class Params:
    """Parameters of the study itself; the others of its ``params`` are those of methods.

    Parameters
    ----------
    delta : float
        Of every budget.
    prior_precision : float
        Of every mean, times the identity.
    prior_means : {"published", "zero"}
        Those of the public code, which are one draw of N(0, I), or zero.
    printed : mapping
        ``means`` and upper triangles of ``covariances`` of the NUTS draws that the public
        code scores against; empty to score against the exact posterior.
    fresh_rows : bool
        Give every replicate rows of its own: those of the draw of its number.
    """

    delta: float = 1e-5
    prior_precision: float = 0.1
    prior_means: str = "published"
    printed: Mapping[str, Any] = field(default_factory=dict)
    fresh_rows: bool = False


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Fit and score at some points of a study; those of methods with a budget have ``epsilon``.

    ``f_published`` and ``kl_published`` are the F-norm and the proxy of KL of Table 1;
    ``mean_error`` to ``sd`` compare with the exact posterior given the components of all rows,
    whose own standard deviation is ``exact_sd``; ``posterior`` holds means and covariances as JSON.
    """
    own = Params(**_tables.having(setup.params, Params))

    def row(point: StudyPoint, replicate: int) -> dict[str, Any]:
        fresh = own.fresh_rows
        data = _tables.drawn(setup.problem, setup.seed, replicate)[1] if fresh else dataset
        return _row(point, own, data, replicate)

    return _tables.tabulate(COLUMNS, itertools.product(setup.each(), replicates), progress, row)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse."""
    own = Params(**_tables.having(point.params, Params))
    _tables.budget(point, own.delta)
    _tables.method_params(registry.load("mixture", point.method), point)


def make_model(dataset: Dataset, params: Params) -> MixtureModel:
    """Model that a study fits to rows of :mod:`dpmc_papers.data.mixture_rows`."""
    num = int(dataset.facts["num_components"])
    dim = dataset.x.shape[1] - 1
    means = mixture_rows.prior_means(num, dim)
    if params.prior_means == "zero":
        means = np.zeros_like(means)
    return MixtureModel.isotropic(dataset.facts["sigma_x"], means, params.prior_precision)


def _row(point: StudyPoint, own: Params, dataset: Dataset, replicate: int) -> dict[str, Any]:
    module: Any = registry.load("mixture", point.method)
    parts, model = mixture_rows.parts(dataset), make_model(dataset, own)
    budget = _tables.budget(point, own.delta)
    key = canonical(point)
    params = _tables.method_params(module, point)
    rng = stream(point.seed, "chain", key, replicate)
    found, guarantee = module.fit(parts.rows, model, params, budget, rng)
    exact = label_posterior(parts.rows, parts.labels, model)
    return {
        **_tables.place(point, replicate),
        **({} if budget is None else {"delta": own.delta}),
        **_tables.guaranteed(guarantee, [*point.outside, "a known seed"]),
        "status": found.status,
        "num_rows": len(parts.rows),
        "dim": model.dim,
        **(_scores(found, exact, own) if found.status == "complete" else {}),
        "exact_sd": float(np.sqrt(np.mean(np.diagonal(exact.covariances, axis1=1, axis2=2)))),
        **{name: found.counters[name] for name in COUNTERS},
        "posterior": json.dumps(
            {"means": found.means.tolist(), "covariances": found.covariances.tolist()}
        ),
    }


def _scores(found: MixtureFit, exact: MixtureTruth, own: Params) -> dict[str, float]:
    fitted = (found.means, found.covariances)
    truth = exact
    if own.printed:
        truth = printed_truth(own.printed["means"], own.printed["covariances"])
    told = published_scores(truth, fitted)
    return {**scores(exact, fitted), "f_published": told["f"], "kl_published": told["kl_proxy"]}
