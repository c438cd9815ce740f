"""Negative evidence lower bound of a factorised Gaussian over the weights of a network.

One hidden layer of rectified linear units; the gradient is exact for given draws of the
weights.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmc.types import Array

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
    """Outputs of networks, and what their gradients need.

    Parameters
    ----------
    output : ndarray of shape (S, B)
        Output of each network for each row.
    units : ndarray of shape (S, H, B)
        Hidden units after rectification.
    second : ndarray of shape (S, H + 1)
        Weights of the output.
    """

    output: Array
    units: Array
    second: Array


def objective_and_gradient(
    state: VIState,
    z: Array,
    y: Array,
    noise: Array,
    num_rows: int,
    prior_precision: float,
    learned_precision: bool = True,
) -> tuple[float, VIState]:
    """Return an unbiased estimate of the negative bound per row, and its exact gradient.

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
    learned_precision : bool
        Whether the noise precision moves.

    Returns
    -------
    float
        Mean over batch and draws of the negative log-likelihood, plus KL(q||prior) / N.
    VIState
        The gradient; 0 for a noise precision that does not move.
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
    by_precision = 0.5 * (precision * square - 1) if learned_precision else 0.0
    gradient = VIState(
        by_weight.sum(axis=0) + prior_precision * state.mean / num_rows,
        0.5 * deviation * np.sum(by_weight * noise, axis=0)
        + 0.5 * (prior_precision * variance - 1) / num_rows,
        float(by_precision),
    )
    return float(fit_term + divergence / num_rows), gradient


def forward(weights: Array, z: Array, hidden: int) -> Forward:
    """Return the outputs of S networks at B rows.

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
    """Return the gradient with respect to the weights, one row for each network.

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
