"""Variational inference for a network with one hidden layer of rectified linear units.

A factorised Gaussian over the weights of the network of :mod:`dpmc.ep.network.engine`, fitted by
stochastic gradients of the evidence lower bound [Graves 2011], with gradients taken through
the draws of the weights: the baseline of [vinaroz2022dpsep, Tables 2 and 3].

It is not how the VI column of those tables came about, as far as is known, and that
column is a literature value here. The script in the public code fixes the noise variance at half
the variance of the targets, at which no predictor reaches the printed log-likelihood of
`power`, -2.890: a perfect one has -3.41. Its bound has half of the entropy term and another
weight on the divergence from the prior. The printed +/- are standard errors, to judge by their
sizes, where those of all other columns are standard deviations.

Not private: it reads all rows as often as it likes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dpmc import checks
from dpmc.types import Array, DpmcError

_LOG_TWO_PI = math.log(2 * math.pi)


class VIState(NamedTuple):
    """The approximation, or a gradient with respect to it.

    Parameters
    ----------
    mean, log_variance : ndarray of shape (W,)
        Of the weights: H rows of d + 1 (bias last), then H + 1 of the output (bias last).
    log_precision : float
        Of the noise.
    """

    mean: Array
    log_variance: Array
    log_precision: float


class Forward(NamedTuple):
    """Outputs of networks, and what their gradients need."""

    output: Array  # (S, B): output of each network for each row
    units: Array  # (S, H, B): hidden units after rectification
    second: Array  # (S, H + 1): weights of the output


def objective_and_gradient(
    state: VIState,
    z: Array,
    y: Array,
    noise: Array,
    num_rows: int,
    prior_precision: float,
) -> tuple[float, VIState]:
    """Unbiased estimate of the negative bound per row, and its exact gradient.

    Parameters
    ----------
    state : VIState
        Approximation to differentiate at.
    z : ndarray of shape (B, d + 1)
        Inputs of the batch, with a last column of ones.
    y : ndarray of shape (B,)
        Targets of the batch.
    noise : ndarray of shape (S, W)
        Standard normal: the weights are ``mean + sqrt(variance) * noise``.
    num_rows : int
        N, which the divergence from the prior is divided by.
    prior_precision : float
        Of the weights.

    Returns
    -------
    float
        Mean over batch and draws of the negative log-likelihood, plus KL(q||prior) / N.
    VIState
        The gradient.
    """
    num_samples, batch_size = len(noise), len(y)
    hidden = (state.mean.size - 1) // (z.shape[1] + 1)
    deviation = np.exp(0.5 * state.log_variance)
    variance = deviation**2
    precision = np.exp(state.log_precision)
    passed = forward(state.mean + deviation * noise, z, hidden)
    residual = passed.output - y
    square = float(np.mean(residual**2))
    fit_term = 0.5 * (precision * square - state.log_precision + _LOG_TWO_PI)
    divergence = 0.5 * np.sum(
        prior_precision * (variance + state.mean**2)
        - 1
        - state.log_variance
        - math.log(prior_precision)
    )
    by_weight = backward(passed, precision / (num_samples * batch_size) * residual, z)
    by_precision = 0.5 * (precision * square - 1)
    gradient = VIState(
        by_weight.sum(axis=0) + prior_precision * state.mean / num_rows,
        0.5 * deviation * np.sum(by_weight * noise, axis=0)
        + 0.5 * (prior_precision * variance - 1) / num_rows,
        float(by_precision),
    )
    return float(fit_term + divergence / num_rows), gradient


def forward(weights: Array, z: Array, hidden: int) -> Forward:
    """Outputs of S networks at B rows.

    Both layers divide by the square root of their number of inputs, the bias among them.

    Parameters
    ----------
    weights : ndarray of shape (S, W)
        Weights of each network.
    z : ndarray of shape (B, d + 1)
        Rows of the batch, with a last entry 1.
    hidden : int
        Hidden units H.
    """
    num_samples, split = len(weights), hidden * z.shape[1]
    first = weights[:, :split].reshape(num_samples * hidden, -1)
    second = weights[:, split:]
    units = (first @ z.T).reshape(num_samples, hidden, len(z))
    np.maximum(units, 0.0, out=units)
    units /= math.sqrt(z.shape[1])
    output = np.matmul(second[:, None, :hidden], units)[:, 0] + second[:, hidden:]
    return Forward(output / math.sqrt(hidden + 1), units, second)


def backward(passed: Forward, by_output: Array, z: Array) -> Array:
    """Gradient with respect to the weights, one row for each network.

    Parameters
    ----------
    passed : Forward
        Result of :func:`forward`.
    by_output : ndarray of shape (S, B)
        Gradient with respect to the outputs.
    z : ndarray of shape (B, d + 1)
        Rows of the batch, with a last entry 1.
    """
    num_samples, hidden, batch_size = passed.units.shape
    scaled = by_output / math.sqrt(hidden + 1)
    gradient = np.empty((num_samples, hidden * z.shape[1] + hidden + 1))
    split = hidden * z.shape[1]
    gradient[:, split:-1] = np.matmul(passed.units, scaled[:, :, None])[:, :, 0]
    gradient[:, -1] = scaled.sum(axis=1)
    by_unit = passed.second[:, :hidden, None] * scaled[:, None, :]
    by_unit *= passed.units > 0
    by_first = by_unit.reshape(num_samples * hidden, batch_size) @ z
    gradient[:, :split] = by_first.reshape(num_samples, split) / math.sqrt(z.shape[1])
    return gradient


# Weights drawn for predictions, once.
PREDICTION_DRAWS = 100
# Logarithm of the first variance of every weight; the means start from N(0, 1).
FIRST_LOG_VARIANCE = -6.0
# Rows predicted at a time: 100 draws of 100 hidden units each are 20 MB.
_CHUNK = 256
# Constants of Adam [Kingma and Ba 2015]: decay of the mean and of the mean square of gradients,
_DECAY = 0.9
_SQUARE_DECAY = 0.999
# and what keeps the root of the latter from 0.
_SMALL = 1e-8


@dataclass(frozen=True)
class Params:
    """Settings of variational inference.

    Parameters
    ----------
    num_passes : int
        Passes over the rows, each in a new order.
    batch_size : int
        Rows of one gradient step; the last of a pass may have fewer.
    num_samples : int
        Weights drawn for one gradient.
    learning_rate : float
        Step size of Adam. The weights are of order one: a tenth of the default takes far more
        passes to move them.
    prior_precision : float
        Precision of the N(0, 1 / precision) prior of every weight.
    """

    num_passes: int = 40
    batch_size: int = 100
    num_samples: int = 10
    learning_rate: float = 1e-2
    prior_precision: float = 1.0

    def __post_init__(self) -> None:
        for name in ("num_passes", "batch_size", "num_samples"):
            checks.at_least(name, getattr(self, name), 1)
        checks.positive("learning_rate", self.learning_rate)
        checks.positive("prior_precision", self.prior_precision)


@dataclass(frozen=True)
class VIFit:
    """Result of variational inference.

    Parameters
    ----------
    mean, log_variance : ndarray of shape (W,)
        Of the weights, see `VIState`.
    noise_variance : float
        Of the targets, in their squared units as fitted.
    objective : ndarray of shape (passes,)
        Negative evidence lower bound per row, averaged over the steps of each pass.
    status : str
        ``"complete"``, or where and why the run stopped; the values are then those at the
        start of that pass.
    draws : ndarray of shape (PREDICTION_DRAWS, W)
        Weights that predictions are averaged over.
    hidden : int
        Hidden units H.
    """

    mean: Array
    log_variance: Array
    noise_variance: float
    objective: Array
    status: str
    draws: Array = field(repr=False)
    hidden: int

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Mean and variance of the network at rows `x`, without the noise.

        `x`, shape (m, d): rows of features.

        The result has shape (m,). Over the draws of the weights; the variance divides by their
        number less one.
        """
        width = (self.mean.size - self.hidden - 1) // self.hidden - 1
        x = _finite("x", x, 2)
        if x.shape[1] != width:
            raise DpmcError(f"`x` must have shape (m, {width}), got {x.shape}")
        parts = [
            forward(self.draws, _with_bias(x[first : first + _CHUNK]), self.hidden).output
            for first in range(0, len(x), _CHUNK)
        ]
        output = np.concatenate(parts, axis=1)
        return output.mean(axis=0), output.var(axis=0, ddof=1)


def fit(x: Array, y: Array, hidden: int, params: Params, rng: np.random.Generator) -> VIFit:
    """Fit the approximation.

    `x`, shape (N, d): standardised inputs. `y`, shape (N,): standardised targets. `hidden`: units.

    Returns
    -------
    VIFit
        With finite values in any case; see its status.
    """
    checks.at_least("hidden", hidden, 1)
    z, y = _with_bias(_finite("x", x, 2)), _finite("y", y, 1)
    if len(y) != len(z) or not y.size:
        raise DpmcError(
            f"`y` must have shape ({len(z)},) and at least one row, got shape {y.shape}"
        )
    num_weights = hidden * (z.shape[1] + 1) + 1
    state = VIState(
        rng.standard_normal(num_weights),
        np.full(num_weights, FIRST_LOG_VARIANCE),
        0.0,
    )
    optimiser = _Adam.of(num_weights, params.learning_rate)
    objective: list[float] = []
    status = "complete"
    for number in range(params.num_passes):
        # Overflow is looked for once a pass, in the objective and the state.
        with np.errstate(over="ignore", invalid="ignore"):
            new, mean_objective = _one_pass(state, z, y, params, optimiser, rng)
        if not (math.isfinite(mean_objective) and all(np.isfinite(part).all() for part in new)):
            status = f"pass {number + 1} of {params.num_passes}: the objective is not finite"
            break
        state = new
        objective.append(mean_objective)
    noise = rng.standard_normal((PREDICTION_DRAWS, num_weights))
    draws = state.mean + np.exp(0.5 * state.log_variance) * noise
    return VIFit(
        mean=state.mean,
        log_variance=state.log_variance,
        noise_variance=math.exp(-state.log_precision),
        objective=np.array(objective),
        status=status,
        draws=draws,
        hidden=hidden,
    )


def _one_pass(
    state: VIState,
    z: Array,
    y: Array,
    params: Params,
    optimiser: _Adam,
    rng: np.random.Generator,
) -> tuple[VIState, float]:
    """State after one pass over the rows, and the mean objective of its steps."""
    order = rng.permutation(len(y))
    objectives = []
    for first in range(0, len(y), params.batch_size):
        batch = order[first : first + params.batch_size]
        noise = rng.standard_normal((params.num_samples, state.mean.size))
        value, gradient = objective_and_gradient(
            state,
            z[batch],
            y[batch],
            noise,
            len(y),
            params.prior_precision,
        )
        objectives.append(value)
        state = optimiser.step(state, gradient)
    return state, float(np.mean(objectives))


@dataclass
class _Adam:
    """Running moments of the gradient, the noise precision last."""

    learning_rate: float
    first: Array
    second: Array
    steps: int = 0

    @classmethod
    def of(cls, num_weights: int, learning_rate: float) -> _Adam:
        size = 2 * num_weights + 1
        return cls(learning_rate, np.zeros(size), np.zeros(size))

    def step(self, state: VIState, gradient: VIState) -> VIState:
        """State one step down the gradient."""
        flat = np.concatenate([gradient.mean, gradient.log_variance, [gradient.log_precision]])
        self.steps += 1
        self.first += (1 - _DECAY) * (flat - self.first)
        self.second += (1 - _SQUARE_DECAY) * (flat**2 - self.second)
        rate = self.learning_rate * math.sqrt(1 - _SQUARE_DECAY**self.steps)
        rate /= 1 - _DECAY**self.steps
        move = rate * self.first / (np.sqrt(self.second) + _SMALL)
        num_weights = state.mean.size
        return VIState(
            state.mean - move[:num_weights],
            state.log_variance - move[num_weights:-1],
            state.log_precision - float(move[-1]),
        )


def _with_bias(x: Array) -> Array:
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


def _finite(name: str, values: Array, ndim: int) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != ndim or 0 in array.shape[1:]:
        expected = "(m, d)" if ndim == 2 else "(m,)"
        raise DpmcError(f"`{name}` must have shape {expected}, got {array.shape}")
    if not np.isfinite(array).all():
        raise DpmcError(f"`{name}` must hold finite numbers only")
    return array
