"""Releases of one number, vector or list of bits, with the noise of a mechanism.

``noise="continuous"`` adds floating-point noise as the published experiments do. Its low bits
depend on the value [Mironov 2012]: the guarantee is that of real numbers, and whoever sees all
bits of a release can beat it. ``noise="discrete"`` releases the same sum of real numbers rounded
to a grid, :mod:`dpmc.privacy.discrete`, and keeps the guarantee bit by bit.

Rounded to a grid of step g, a release has a probability that is the mean of the density of the
continuous one over a cell. With Laplace noise of scale b the two densities differ by a factor of
at most ``exp(g / (2 b))``: where g is 2**-24 b or less, by 3e-8. With Gaussian noise, z standard
deviations out, by about ``exp(z**2 (g / sd)**2 / 24)``: 1e-14 at z = 6. So a posterior given a
discrete release uses the density of the continuous one.
"""

from __future__ import annotations

import math
import os
from typing import overload

import numpy as np

from dpmc import checks
from dpmc.privacy import discrete, events
from dpmc.privacy.clipped import asserted
from dpmc.privacy.ledger import Ledger, Noise, noise_of
from dpmc.random_bits import cryptographic
from dpmc.types import Array, DpmcError, Neighbours

# Least chance of flipping a bit that 53 random bits resolve to 1e-3.
LEAST_FLIP = 1e-13
# Steps of a public grid in the largest scale that private noise may have.
_STEPS = 2.0**35


def check_noise(noise: Noise) -> None:
    """Refuse noise other than ``"continuous"`` and ``"discrete"``."""
    noise_of(noise, published=False)


@overload
def gaussian(
    value: float,
    sensitivity: float,
    noise_multiplier: float,
    rng: np.random.Generator | None,
    ledger: Ledger,
    noise: Noise = "continuous",
    rounding: float = 0.0,
    neighbours: Neighbours = "replace",
) -> float: ...
@overload
def gaussian(
    value: Array,
    sensitivity: float,
    noise_multiplier: float,
    rng: np.random.Generator | None,
    ledger: Ledger,
    noise: Noise = "continuous",
    rounding: float = 0.0,
    neighbours: Neighbours = "replace",
) -> Array: ...
def gaussian(
    value: float | Array,
    sensitivity: float,
    noise_multiplier: float,
    rng: np.random.Generator | None,
    ledger: Ledger,
    noise: Noise = "continuous",
    rounding: float = 0.0,
    neighbours: Neighbours = "replace",
) -> float | Array:
    """Value with Gaussian noise, recorded before it is drawn.

    Parameters
    ----------
    value, sensitivity, neighbours
        See `dpmc.privacy.asserted`: the caller answers for the sensitivity.
    noise_multiplier
        See `dpmc.privacy.ledger.Ledger.release`.
    rng : numpy.random.Generator or None
        None draws from the operating system: the bits themselves for discrete noise, a fresh
        seed for continuous noise.
    ledger : Ledger
    noise : {"continuous", "discrete"}
    rounding : float
        How much farther than `sensitivity`, relative to it, floating-point sums move the value
        at most: discrete noise is enlarged by it.
    """
    check_noise(noise)
    clipped = asserted(value, sensitivity, neighbours)
    if noise == "continuous":
        noisy: float | Array = ledger.release(clipped, noise_multiplier, generator(rng))
        return noisy
    ledger.record(events.gaussian(noise_multiplier), 1, noise)
    change = sensitivity * (1 + rounding)
    return discrete.add_gaussian(value, change, noise_multiplier, rng=rng)


def laplace(
    value: float | Array,
    scale: float,
    rng: np.random.Generator | None,
    noise: Noise = "continuous",
    rounding: float = 0.0,
) -> float | Array:
    """Value with Laplace noise of a public scale on every entry.

    Parameters
    ----------
    value : float or ndarray
    scale : float
        Sensitivity over epsilon.
    rng, noise, rounding
        See `gaussian`.
    """
    check_noise(noise)
    if noise == "continuous":
        return value + scale * generator(rng).laplace(size=np.shape(value))
    return discrete.add_laplace(value, scale * (1 + rounding), 1.0, rng=rng)


def smooth_laplace(
    value: float,
    scale: float,
    largest_scale: float,
    rng: np.random.Generator | None,
    noise: Noise = "continuous",
) -> float:
    """Number with Laplace noise of a private scale.

    Parameters
    ----------
    value : float
    scale : float
        Smooth sensitivity over alpha, private.
    largest_scale : float
        The largest that any data give it, public: discrete noise lies on a grid of at most
        2**-34 of it, whatever `scale` is.
    rng, noise
        See `gaussian`.
    """
    check_noise(noise)
    if noise == "continuous":
        return float(value + scale * generator(rng).laplace(size=np.shape(value)))
    grid = math.ldexp(1.0, math.frexp(largest_scale / _STEPS)[1])
    return discrete.add_laplace(value, scale, 1.0, grid=grid, rng=rng)


def randomised_response(
    bits: Array, keep: float, rng: np.random.Generator | None, noise: Noise = "continuous"
) -> Array:
    """Bits, each kept with a probability, else flipped.

    Parameters
    ----------
    bits : ndarray
        0 or 1.
    keep : float
        In [1/2, 1).
    rng : numpy.random.Generator or None
        See `gaussian`.
    noise : {"continuous", "discrete"}
        Bits have no low bits: the two differ without `rng` alone, where ``"discrete"`` draws
        from a cryptographic generator.
    """
    check_noise(noise)
    if not 0.5 <= keep <= 1 - LEAST_FLIP:
        raise DpmcError(
            f"`epsilon` must be at most {math.log(1 / LEAST_FLIP):.3g} for randomised response, "
            f"got a probability of flipping of {1 - keep:.3g}"
        )
    if noise == "discrete" and rng is None:
        words = np.frombuffer(os.urandom(8 * bits.size), dtype=np.uint64) >> np.uint64(11)
        flipped = words.reshape(bits.shape) * 2.0**-53 >= keep
    else:
        flipped = generator(rng).random(np.shape(bits)) >= keep
    # Adding 0 takes the sign off a zero, which would reveal the bit.
    return np.asarray(np.where(flipped, 1.0 - bits, bits) + 0.0)


def standard_noise(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Continuous noise in units of its scale or standard deviation, not recorded."""
    return rng.laplace(size=shape) if kind == "laplace" else rng.standard_normal(shape)


def generator(rng: np.random.Generator | None) -> np.random.Generator:
    """Generator, or one that is cryptographic."""
    checks.generator(rng)
    return cryptographic() if rng is None else rng
