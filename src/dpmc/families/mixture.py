"""Means of a mixture of Gaussians by private stochastic expectation propagation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmc import checks, progress_bar
from dpmc.ep.mixture import dp_sep
from dpmc.ep.mixture.model import MixtureFit, MixtureModel
from dpmc.families import _arrays
from dpmc.fits import Fit
from dpmc.fits.predictive import MIXTURE
from dpmc.fits.remarks import few
from dpmc.fitting import NUM_DRAWS, checked, refuse_unknown
from dpmc.privacy.ledger import Noise
from dpmc.privacy.spending import told
from dpmc.registry import parameters
from dpmc.rng import stream
from dpmc.types import (
    Array,
    Budget,
    Dataset,
    DpmcError,
    InvalidRows,
    Model,
    Plan,
    check_delta,
    check_epsilon,
)

NAME = "mixture"


def mixture(
    rows: Any,
    model: MixtureModel,
    *,
    epsilon: float,
    delta: float,
    num_chains: int = 4,
    num_draws: int = NUM_DRAWS,
    seed: int | None = None,
    noise: Noise | None = None,
    progress: bool = True,
    invalid_rows: InvalidRows = "refuse",
    names: Sequence[str] = (),
    **params: Any,
) -> Fit:
    """Posterior of the means of a mixture of Gaussians, as DP-SEP approximates it.

    Parameters
    ----------
    rows : array_like of shape (n, d) or data frame
        Private.
    model : MixtureModel
        Weights and spread of the components, and the prior of their means: public.
        ``MixtureModel.isotropic(sigma_x, prior_means, precision)`` has equal weights.
    epsilon, delta : float
        The budget under substitution of one row.
    num_chains, num_draws : int
        Independent draws from the approximation, arranged as chains; they cost no privacy.
    seed, noise, invalid_rows
        As of `dpmc.fit`.
    names : sequence of str
        Names of all means, those of the first component first.
    progress : bool
        Whether to show a progress bar.
    **params
        Of the method, as in ``dpmc.ep.mixture.dp_sep.Params``: `clip_bound` bounds what a
        row contributes to (precision times mean, precision), in the units of the rows.

    Returns
    -------
    Fit
        Components are the entries of the means, component after component. The approximation is
        normal and centred where the run ended: it does not know how far noise moved it.

    Raises
    ------
    DpmcError
        If an argument is refused, before any row is used.

    Warns
    -----
    PosteriorWarning
        Once for each remark.

    Examples
    --------
    >>> model = MixtureModel.isotropic(1.0, [[-1.0], [1.0]], precision=0.1)
    >>> rng = np.random.default_rng(0)
    >>> x = np.where(rng.random((1000, 1)) < 0.5, -3.0, 3.0) + rng.normal(size=(1000, 1))
    >>> fit = mixture(x, model, epsilon=5, delta=1e-5, num_passes=5, clip_bound=3.0, seed=1)
    >>> fit.names
    ('mean[0,0]', 'mean[1,0]')
    """
    if isinstance(model, Model):
        raise DpmcError(
            "`model` must be a dpmc.ep.mixture.model.MixtureModel, such as MixtureModel.isotropic("
            "sigma_x, prior_means, precision), got a dpmc.Model, which is for `dpmc.fit`"
        )
    checks.instance("model", model, MixtureModel, "a dpmc.ep.mixture.model.MixtureModel")
    check_epsilon(epsilon)
    check_delta(delta, NAME)
    (num_chains, num_draws), seed, noise = checked(num_chains, num_draws, seed, noise)
    checks.flag("progress", progress)
    refuse_unknown(mixture, params, _arrays.fields_of(dp_sep))
    settings = parameters(dp_sep, params)
    dataset = Dataset.of("rows", rows, invalid_rows)
    default = tuple(f"mean[{j},{k}]" for j in range(model.num_components) for k in range(model.dim))
    components = _arrays.named(names, default)
    checks.room("num_draws", (num_draws, num_chains, len(default)))
    with progress_bar.shown(progress, "step") as report:
        fitted, guarantee = dp_sep.fit(
            dataset.x,
            model,
            settings,
            Budget(epsilon, delta, "subsampled"),
            stream(seed, "noise", NAME),
            report,
            invalid_rows,
            noise,
        )
    guarantee = _arrays.with_randomness(guarantee, seed, noise)
    with told(guarantee, lambda: fitted.releases):
        draws = _draws(fitted, num_draws * num_chains, stream(seed, "chain", NAME))
    draws = draws.reshape(num_chains, num_draws, -1)
    fit = Fit(
        draws=draws,
        info={},
        totals={},
        status=fitted.status,
        ledger=fitted.releases,
        guarantee=guarantee,
        plan=Plan(
            method="dp_sep",
            family=NAME,
            epsilon=epsilon,
            delta=delta,
            clip_bound=settings.clip_bound,
            likelihood={
                "name": MIXTURE,
                "weights": model.weights.tolist(),
                "sigma_x": model.sigma_x,
            },
            details={
                "num_passes": settings.num_passes,
                "repaired": int(fitted.counters.get("repaired", 0)),
            },
        ),
        names=components,
    )
    return _arrays.finished(fit, [*_remarks(fitted), *few(draws)], dataset.num_rows)


def _draws(fitted: MixtureFit, number: int, rng: np.random.Generator) -> Array:
    """Independent draws of all means, shape (number, J d)."""
    factors = np.linalg.cholesky(fitted.covariances)
    normal = rng.standard_normal((number, *fitted.means.shape))
    draws: Array = fitted.means + np.einsum("jik,njk->nji", factors, normal)
    return draws.reshape(number, -1)


def _remarks(fitted: MixtureFit) -> tuple[str, ...]:
    remarks = []
    if fitted.status != "complete":
        remarks.append(
            f"The run stopped early ({fitted.status}). A smaller `clip_bound` or a larger epsilon "
            "would help."
        )
    steps, repaired = fitted.counters.get("steps", 0), fitted.counters.get("repaired", 0)
    if steps and repaired > 0.01 * steps:
        remarks.append(
            f"A share of {repaired / steps:.2g} of the steps left no proper precision and was "
            "repaired: the noise is large for the precision. A larger epsilon, more rows or a "
            "smaller `clip_bound` would help."
        )
    return tuple(remarks)
