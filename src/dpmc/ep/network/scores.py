"""Predictions of a network with one hidden layer, and how good they are."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx

from dpmc.ep.network.layout import Layers
from dpmc.types import Array, DpmcError

# Rows that are predicted at once.
BLOCK = 4096


class Scores(NamedTuple):
    """Scores of predictions, in the units of the target."""

    rmse: float  # Root of the mean squared error of the means
    log_likelihood: float  # Mean logarithm of the normal density of the targets


def rectified_moments(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Mean and variance of max(0, a) for normal a, with nothing cancelling.

    Formulas as in :mod:`dpmc.ep.network.rectified`, with Mills' ratio from SciPy.
    """
    sd = np.sqrt(variance)
    ratio = mean / sd
    t = np.abs(ratio)
    density = np.exp(-0.5 * t**2) / math.sqrt(2 * math.pi)
    mills = math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2))
    first = 1 - t * mills
    second = mills - t * first
    part = density * first
    below = density * second - part**2
    above = 1 - (density * second + 2 * t * part + part**2)
    return (sd * (np.maximum(ratio, 0) + part), variance * np.where(ratio < 0, below, above))


def output_moments(x: Array, means: Layers, variances: Layers) -> tuple[Array, Array]:
    """Mean and variance of the output of a network for rows of features.

    `x`, shape (m, d), has the units in which the network was fitted. `means` and `variances` are
    those of independent normal weights: layers of shapes (H, d + 1) and (H + 1,), biases last.

    `mean`, `variance`, shape (m,): without the noise of an observation.
    """
    blocks = [
        _block_moments(x[first : first + BLOCK], means, variances)
        for first in range(0, len(x), BLOCK)
    ]
    mean = np.concatenate([block[0] for block in blocks] or [np.zeros(0)])
    variance = np.concatenate([block[1] for block in blocks] or [np.zeros(0)])
    return mean, variance


def _block_moments(x: Array, means: Layers, variances: Layers) -> tuple[Array, Array]:
    z = np.column_stack((x, np.ones(len(x))))
    inputs, units = z.shape[1], len(means[1])
    mean, variance = rectified_moments(
        z @ means[0].T / math.sqrt(inputs), z**2 @ variances[0].T / inputs
    )
    mean = np.column_stack((mean, np.ones(len(x))))
    variance = np.column_stack((variance, np.zeros(len(x))))
    second = variance @ (variances[1] + means[1] ** 2) + mean**2 @ variances[1]
    return mean @ means[1] / math.sqrt(units), second / units


def scores(
    mean: Array, variance: Array, noise_variance: float, y: Array, shift: float, scale: float
) -> Scores:
    """Scores of predictions on the original scale of the target.

    Parameters
    ----------
    mean, variance : ndarray of shape (m,)
        Predictions on the scale of the fit, without noise.
    noise_variance : float
        On that scale, > 0.
    y : ndarray of shape (m,)
        Targets on the original scale, m >= 1.
    shift, scale : float
        An original value is ``shift + scale * value``; `scale` > 0.
    """
    if len(y) == 0 or np.shape(y) != np.shape(mean):
        raise DpmcError(
            f"`y` must have shape {np.shape(mean)} and at least one target, got shape {np.shape(y)}"
        )
    error = np.asarray(y) - (shift + scale * mean)
    total = scale**2 * (variance + noise_variance)
    log_density = -0.5 * (np.log(2 * math.pi * total) + error**2 / total)
    return Scores(float(np.sqrt(np.mean(error**2))), float(np.mean(log_density)))
