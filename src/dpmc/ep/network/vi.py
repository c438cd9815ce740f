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

import numpy as np

from dpmc import checks
from dpmc.ep.network.vi_objective import VIState, forward, objective_and_gradient
from dpmc.types import Array, DpmcError

_CHUNK = 256  # rows predicted at a time: 100 draws of 100 hidden units each are 20 MB
# Of Adam [Kingma and Ba 2015].
_DECAY, _SQUARE_DECAY, _SMALL = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class VISettings:
    """Settings of variational inference.

    Parameters
    ----------
    hidden : int
        Hidden units H.
    num_passes : int
        Passes over the rows, each in a new order.
    batch_size : int
        Rows of one gradient step; the last of a pass may have fewer.
    num_samples : int
        Weights drawn for one gradient.
    num_prediction_samples : int
        Weights drawn for predictions, once.
    learning_rate : float
        Step size of Adam. The weights are of order one: a tenth of the default takes far more
        passes to move them.
    prior_precision : float
        Precision of the N(0, 1 / precision) prior of every weight.
    initial_log_variance : float
        Logarithm of the first variance of every weight; the means start from N(0, 1).
    noise_precision : float, optional
        Precision of the targets; learned, from 1 on, where None.

    Raises
    ------
    DpmcError
        If a value is out of range.
    """

    hidden: int = 50
    num_passes: int = 40
    batch_size: int = 100
    num_samples: int = 10
    num_prediction_samples: int = 100
    learning_rate: float = 1e-2
    prior_precision: float = 1.0
    initial_log_variance: float = -6.0
    noise_precision: float | None = None

    def __post_init__(self) -> None:
        for name in ("hidden", "num_passes", "batch_size", "num_samples"):
            checks.at_least(name, getattr(self, name), 1)
        checks.at_least("num_prediction_samples", self.num_prediction_samples, 2)
        checks.positive("learning_rate", self.learning_rate)
        checks.positive("prior_precision", self.prior_precision)
        checks.positive("noise_precision", self.noise_precision, optional=True)
        if not abs(self.initial_log_variance) <= 50:
            raise DpmcError(
                f"`initial_log_variance` must be in [-50, 50], got {self.initial_log_variance}"
            )


@dataclass(frozen=True)
class VIFit:
    """What variational inference produced.

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
    draws : ndarray of shape (num_prediction_samples, W)
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
        """Return mean and variance of the network at rows `x`, without the noise.

        Parameters
        ----------
        x : ndarray of shape (m, d)
            Rows of features.

        Returns
        -------
        tuple of ndarray of shape (m,)
            Over the draws of the weights; the variance divides by their number less one.
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


def fit(x: Array, y: Array, settings: VISettings, rng: np.random.Generator) -> VIFit:
    """Fit the approximation.

    Parameters
    ----------
    x : ndarray of shape (N, d)
        Standardised inputs.
    y : ndarray of shape (N,)
        Standardised targets.

    Returns
    -------
    VIFit
        With finite values in any case; see its status.
    """
    z, y = _with_bias(_finite("x", x, 2)), _finite("y", y, 1)
    if len(y) != len(z) or not y.size:
        raise DpmcError(
            f"`y` must have shape ({len(z)},) and at least one row, got shape {y.shape}"
        )
    num_weights = settings.hidden * (z.shape[1] + 1) + 1
    state = VIState(
        rng.standard_normal(num_weights),
        np.full(num_weights, settings.initial_log_variance),
        0.0 if settings.noise_precision is None else math.log(settings.noise_precision),
    )
    optimiser = _Adam.of(num_weights, settings.learning_rate)
    objective: list[float] = []
    status = "complete"
    for number in range(settings.num_passes):
        # Overflow is looked for once a pass, in the objective and the state.
        with np.errstate(over="ignore", invalid="ignore"):
            new, mean_objective = _one_pass(state, z, y, settings, optimiser, rng)
        if not (math.isfinite(mean_objective) and all(np.isfinite(part).all() for part in new)):
            status = f"pass {number + 1} of {settings.num_passes}: the objective is not finite"
            break
        state = new
        objective.append(mean_objective)
    noise = rng.standard_normal((settings.num_prediction_samples, num_weights))
    draws = state.mean + np.exp(0.5 * state.log_variance) * noise
    return VIFit(
        mean=state.mean,
        log_variance=state.log_variance,
        noise_variance=math.exp(-state.log_precision),
        objective=np.array(objective),
        status=status,
        draws=draws,
        hidden=settings.hidden,
    )


def _one_pass(
    state: VIState,
    z: Array,
    y: Array,
    settings: VISettings,
    optimiser: _Adam,
    rng: np.random.Generator,
) -> tuple[VIState, float]:
    """Return the state after one pass over the rows, and the mean objective of its steps."""
    order = rng.permutation(len(y))
    objectives = []
    for first in range(0, len(y), settings.batch_size):
        batch = order[first : first + settings.batch_size]
        noise = rng.standard_normal((settings.num_samples, state.mean.size))
        value, gradient = objective_and_gradient(
            state,
            z[batch],
            y[batch],
            noise,
            len(y),
            settings.prior_precision,
            settings.noise_precision is None,
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
        """Return the state one step down the gradient."""
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
