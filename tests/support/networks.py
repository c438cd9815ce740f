"""A network with one hidden layer written plainly: what compiled code is compared with.

Weights are (mean, variance) of two layers; formulas of [vinaroz2022dpsep] and [Hernández-Lobato
and Adams 2015], without regard to cancellation or speed.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from dpmc.ep.network import engine as network_engine
from dpmc.ep.network.layout import Architecture
from dpmc.ep.network.loops import sweep
from dpmc.ep.network.scores import rectified_moments


def forward(mean, variance, x):
    """Return mean and variance of the output, and of the inputs and outputs of the units."""
    z = np.append(x, 1.0)
    inputs, units = len(z), len(mean[1])
    a = mean[0] @ z / math.sqrt(inputs), variance[0] @ z**2 / inputs
    b, c = rectified_moments(*a)
    b, c = np.append(b, 1.0), np.append(c, 0.0)
    out = mean[1] @ b / math.sqrt(units)
    out_variance = ((variance[1] + mean[1] ** 2) @ c + variance[1] @ b**2) / units
    return out, out_variance, a, (b, c)


def rectified_slopes(mean, variance):
    """Return the derivatives of `rectified_moments`: of the mean by both, then of the variance."""
    sd = np.sqrt(variance)
    ratio = mean / sd
    slope = np.exp(-0.5 * ratio**2) / (math.sqrt(2 * math.pi) * 2 * sd)
    unit_mean, _ = rectified_moments(mean, variance)
    on = ndtr(ratio)
    return on, slope, 2 * unit_mean * ndtr(-ratio), on - 2 * unit_mean * slope


def log_evidence(mean, variance, x, y, noise_variance):
    out, out_variance, _, _ = forward(mean, variance, x)
    total = out_variance + noise_variance
    return -0.5 * (math.log(total) + (y - out) ** 2 / total)


def gradients(mean, variance, x, y, noise_variance):
    """Return derivatives of `log_evidence` by the means of both layers, and by the variances."""
    z = np.append(x, 1.0)
    inputs, units = len(z), len(mean[1])
    out, out_variance, a, (b, c) = forward(mean, variance, x)
    total = out_variance + noise_variance
    by_mean = (y - out) / total
    by_var = -0.5 / total + 0.5 * by_mean**2
    top_mean = by_mean * b / math.sqrt(units) + 2 * by_var * mean[1] * c / units
    top_var = by_var * (c + b**2) / units
    of_mean = (by_mean * mean[1] / math.sqrt(units) + 2 * by_var * variance[1] * b / units)[:-1]
    of_var = (by_var * (variance[1] + mean[1] ** 2) / units)[:-1]
    mean_mean, mean_var, var_mean, var_var = rectified_slopes(*a)
    first = of_mean * mean_mean + of_var * var_mean
    second = of_mean * mean_var + of_var * var_var
    low_mean = np.outer(first, z) / math.sqrt(inputs)
    low_var = np.outer(second, z**2) / inputs
    return (low_mean, top_mean), (low_var, top_var)


def tilted(mean, variance, by_mean, by_var):
    """Return mean and variance after a row, from those of the cavity."""
    return mean + variance * by_mean, variance - variance**2 * (by_mean**2 - 2 * by_var)


class Chain:
    """The state of a fit, moved row by row.

    Parameters
    ----------
    params : Params
    inputs, num_rows : int
    seed : int
    spread_out : float
        Precisions of q are multiplied by random numbers about 1, this the standard deviation of
        their logarithm.
    """

    def __init__(self, params, inputs, num_rows, seed=0, spread_out=0.5):
        rng = np.random.default_rng(seed)
        self.layout = Architecture(params.hidden, inputs)
        self.arrays = network_engine.first_arrays(self.layout, params, num_rows, rng)
        self.settings = network_engine.loop_settings(self.layout, params, num_rows)
        places = self.layout.places()
        factors = np.exp(spread_out * rng.standard_normal(len(places)))
        self.arrays.precision[places] *= factors
        self.arrays.shift[places] *= factors

    def move(self, x, y, order=None):
        order = np.arange(len(y)) if order is None else np.asarray(order)
        sweep(np.ascontiguousarray(x), np.ascontiguousarray(y), order, self.arrays, self.settings)
        return self

    def layers(self, name):
        return self.layout.unpack(getattr(self.arrays, name))

    def state(self):
        """Return shifts, precisions and the law of the noise precision as one vector."""
        places = self.layout.places()
        a = self.arrays
        return np.concatenate((a.shift[places], a.precision[places], a.gamma))

    def set_state(self, state):
        places = self.layout.places()
        a = self.arrays
        a.shift[places], a.precision[places] = state[: len(places)], state[len(places) : -2]
        a.gamma[:] = state[-2:]


def rows(num_rows, inputs, seed=0):
    """Return features and targets of a smooth function with noise."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((num_rows, inputs))
    y = np.sin(1.5 * x[:, 0]) + 0.5 * x[:, -1] + 0.1 * rng.standard_normal(num_rows)
    return x, y / 1.2
