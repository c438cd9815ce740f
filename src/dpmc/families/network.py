"""Regression by a Bayesian network with one hidden layer, by private stochastic EP."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmc import checks, progress_bar
from dpmc.ep.network import dp_sep
from dpmc.ep.network.engine import NetworkFit
from dpmc.ep.network.task import Task
from dpmc.families import _arrays
from dpmc.fits import Fit
from dpmc.fits.predictive import NETWORK, scaled_to_unit
from dpmc.fits.remarks import few
from dpmc.fitting import NUM_DRAWS, checked, refuse_unknown
from dpmc.privacy.spending import told
from dpmc.registry import parameters
from dpmc.rng import stream
from dpmc.types import Array, Budget, DpmcError, InvalidRows, Plan, check_delta, check_epsilon

NAME = "network"
Range = tuple[Any, Any]


def network(
    x: Any,
    y: Any,
    *,
    epsilon: float,
    delta: float,
    x_range: Range,
    y_range: tuple[float, float],
    hidden: int = 20,
    num_chains: int = 4,
    num_draws: int = NUM_DRAWS,
    seed: int | None = None,
    progress: bool = True,
    invalid_rows: InvalidRows = "refuse",
    names: Sequence[str] = (),
    **params: Any,
) -> Fit:
    """Posterior of the weights of a network, as DP-SEP approximates it.

    Noise is continuous, and its low bits are outside of the guarantee: the compiled loop draws
    noise for every weight at each row, where discrete noise would take most of the time.

    Parameters
    ----------
    x : array_like of shape (n, p) or data frame
        Features, private.
    y : array_like of shape (n,)
        Targets, private.
    epsilon, delta : float
        The budget under substitution of one row.
    x_range, y_range : (float or array_like of shape (p,), float or array_like of shape (p,))
        Public lower and upper ends of the features and of the target. They set the scale of the
        fit; rows beyond are clipped to them.
    hidden : int
        Units of the hidden layer.
    num_chains, num_draws : int
        Independent draws from the approximation, arranged as chains; they cost no privacy.
    seed, invalid_rows
        As of `dpmc.fit`.
    names : sequence of str
        Names of all weights, in the order below.
    progress : bool
        Whether to show a progress bar.
    **params
        Of the method, as in ``dpmc.ep.network.dp_sep.Params``.

    Returns
    -------
    Fit
        Weights on the scale of the fit: of each hidden unit those of the features and its bias,
        then those of the output, and the logarithm of the standard deviation of the noise.
        `Fit.predict` draws targets of new rows, in their own units.

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
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, (500, 1))
    >>> fit = network(x, np.sin(x[:, 0]), epsilon=10, delta=1e-5, x_range=(-1, 1),
    ...               y_range=(-1, 1), hidden=4, num_passes=5, seed=1)
    >>> fit.predict([[0.0], [0.5]], seed=1).shape
    (8000, 2)
    """
    check_epsilon(epsilon)
    check_delta(delta, NAME)
    checks.at_least("hidden", hidden, 1)
    (num_chains, num_draws), seed, _ = checked(num_chains, num_draws, seed, None)
    checks.flag("progress", progress)
    refuse_unknown(network, params, _arrays.fields_of(dp_sep))
    settings = parameters(dp_sep, params)
    dataset, columns = _arrays.rows_of(x, y, invalid_rows)
    components = _arrays.named(names, _names_of(columns, hidden))
    low, high = _ends("x_range", x_range, len(columns))
    y_low, y_high = (float(end[0]) for end in _ends("y_range", y_range, 1))
    features = scaled_to_unit(np.clip(dataset.x[:, :-1], low, high), low, high)
    targets = scaled_to_unit(np.clip(dataset.x[:, -1], y_low, y_high), y_low, y_high)
    size = hidden * (len(columns) + 2) + 2
    checks.room("num_draws", (num_draws, num_chains, size))
    with progress_bar.shown(progress, "step") as report:
        fitted = dp_sep.fit(
            features,
            targets,
            Task("rows", hidden, standardised_by_rows=False),
            settings,
            Budget(epsilon, delta, "subsampled"),
            stream(seed, "noise", NAME),
            progress=report,
            invalid_rows=invalid_rows,
        )
    weights = fitted.predictor
    assert isinstance(weights, NetworkFit)
    guarantee = _arrays.with_randomness(fitted.guarantee, seed, "continuous")
    with told(guarantee, lambda: weights.releases):
        draws = _draws(weights, num_draws * num_chains, stream(seed, "chain", NAME))
    draws = draws.reshape(num_chains, num_draws, -1)
    remarks = list(few(draws))
    if weights.status != "complete":
        remarks.append(
            f"The run stopped early ({weights.status}). A smaller `clip_bound` or a larger epsilon "
            "would help."
        )
    fit = Fit(
        draws=draws,
        info={},
        totals={},
        status=weights.status,
        ledger=weights.releases,
        guarantee=guarantee,
        plan=Plan(
            method="dp_sep",
            family=NAME,
            epsilon=epsilon,
            delta=delta,
            clip_bound=settings.clip_bound,
            details={"num_passes": settings.num_passes},
            likelihood={
                "name": NETWORK,
                "hidden": hidden,
                "x_low": low.tolist(),
                "x_high": high.tolist(),
                "y_low": y_low,
                "y_high": y_high,
            },
        ),
        names=components,
    )
    return _arrays.finished(fit, remarks, dataset.num_rows)


def _ends(name: str, ends: Sequence[Any], count: int) -> tuple[Array, Array]:
    """Lower and upper ends, one for each column."""
    if isinstance(ends, str) or not isinstance(ends, Sequence | np.ndarray) or len(ends) != 2:
        raise DpmcError(f"`{name}` must be a lower and an upper end, got {ends!r}")
    low, high = map(checks.real_numbers, ends)
    for end in (low, high):
        if end.shape not in ((), (count,)):
            raise DpmcError(f"`{name}` must have {count} ends on each side, got shape {end.shape}")
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise DpmcError(
            f"`{name}` must be finite numbers, each lower end below its upper one, got {ends!r}"
        )
    return np.broadcast_to(low, count).copy(), np.broadcast_to(high, count).copy()


def _draws(weights: NetworkFit, number: int, rng: np.random.Generator) -> Array:
    """Independent draws of weights and log noise, shape (number, H (p + 1) + H + 2)."""
    means = np.concatenate([layer.ravel() for layer in weights.means])
    sds = np.sqrt(np.concatenate([layer.ravel() for layer in weights.variances]))
    draws = np.empty((number, len(means) + 1))
    draws[:, :-1] = means + sds * rng.standard_normal((number, len(means)))
    if weights.noise_gamma is None:
        draws[:, -1] = 0.5 * math.log(weights.noise_variance)
    else:
        shape, rate = weights.noise_gamma
        draws[:, -1] = -0.5 * np.log(rng.gamma(shape, 1 / rate, number))
    return draws


def _names_of(columns: tuple[str, ...], hidden: int) -> tuple[str, ...]:
    inner = [f"hidden[{h},{name}]" for h in range(hidden) for name in (*columns, "bias")]
    outer = [f"output[{h}]" for h in range(hidden)]
    return (*inner, *outer, "output[bias]", "log_sigma")
