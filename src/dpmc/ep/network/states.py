"""First state of a fit of a network, and its settings as compiled code reads them."""

from __future__ import annotations

import math

import numpy as np

from dpmc.ep.network.layout import COUNTS, Architecture, Arrays, Layers, NetworkLoopSettings, scales
from dpmc.ep.network.settings import NetworkSettings
from dpmc.ep.settings import CLIPS
from dpmc.numerics.simd import WIDTH
from dpmc.privacy import compiled_noise
from dpmc.types import Array, DpmcError

# Normal numbers that are made at once: few enough for the first-level cache.
NOISE = 2048
# For each rule: what share of the prior and what constant make the floor, and what is added to
# it where a precision is raised. The least positive number stands in for "not positive".
FLOOR_NUMBERS = {
    "none": (0.0, -1e300, 0.0),
    "prior": (1.0, 0.0, 0.0),
    "published": (0.0, 1e-300, 1e-4),
}


def first_arrays(
    architecture: Architecture,
    settings: NetworkSettings,
    num_rows: int,
    rng: np.random.Generator,
    prior: Layers | None,
) -> Arrays:
    """Return the first state: q at the prior, but for random means that break the symmetry."""
    precisions = _prior(architecture, settings, prior)
    means = tuple(
        rng.standard_normal(shape) / math.sqrt(shape[-1]) for shape in architecture.shapes
    )
    shifts = tuple(
        _scaled_down(mean * precision, settings.block_norm)
        for mean, precision in zip(means, precisions, strict=True)
    )
    precisions = tuple(_scaled_down(layer, settings.block_norm) for layer in precisions)
    flat = architecture.pack(precisions[0], precisions[1], 1.0)
    size, inputs = architecture.size, architecture.inputs + 1
    lanes, num_sites = architecture.tiles * WIDTH, num_rows if settings.sites == "per_row" else 1
    real, bias = architecture.lanes()
    needed = 2 * size + compiled_noise.GROUP
    return Arrays(
        shift=architecture.pack(shifts[0], shifts[1], 0.0),
        precision=flat.copy(),
        prior=flat,
        site_shift=np.zeros(num_sites * size),
        site_precision=np.zeros(num_sites * size),
        mean=np.zeros(size),
        variance=np.zeros(size),
        factor_shift=np.zeros(size),
        factor_precision=np.zeros(size),
        scaled=np.zeros(inputs),
        squared=np.zeros(inputs),
        unit_mean=np.zeros(lanes),
        unit_variance=np.zeros(lanes),
        below=np.zeros(lanes),
        above=np.zeros(lanes),
        slope=np.zeros(lanes),
        real=real,
        bias=bias,
        gamma=np.array(noise_prior(settings)),
        site_gamma=np.zeros((num_sites, 2)),
        noise=np.zeros(needed * max(1, NOISE // needed)),
        position=np.array([1 << 62]),  # beyond the end: noise is drawn when it is first needed
        words=compiled_noise.source(rng),
        counts=np.zeros(len(COUNTS), dtype=np.int64),
    )


def _prior(
    architecture: Architecture, settings: NetworkSettings, prior: Layers | None
) -> tuple[Array, ...]:
    """Return the prior precision of each weight before it is scaled down."""
    if prior is None:
        return tuple(np.full(shape, settings.first_precision) for shape in architecture.shapes)
    for layer, shape in zip(prior, architecture.shapes, strict=True):
        if np.shape(layer) != shape:
            raise DpmcError(
                f"`prior` must have layers of shapes {architecture.shapes}, got {np.shape(layer)}"
            )
        if not (np.isfinite(layer).all() and np.all(np.asarray(layer) > 0)):
            raise DpmcError("`prior` must hold finite precisions > 0")
    return tuple(np.asarray(layer, dtype=np.float64) for layer in prior)


def _scaled_down(block: Array, norm: float | None) -> Array:
    """Return a block with at most this norm."""
    if norm is None:
        return block
    scaled: Array = block / max(1.0, float(np.linalg.norm(block)) / norm)
    return scaled


def noise_prior(settings: NetworkSettings) -> tuple[float, float]:
    """Return shape and rate of the noise precision: of its prior, or for a fixed variance.

    Of the latter only rate / (shape - 1) counts.
    """
    if settings.noise_variance is not None:
        return 2.0, float(settings.noise_variance)
    return float(settings.noise_shape), float(settings.noise_rate)


def loop_settings(
    architecture: Architecture, settings: NetworkSettings, num_rows: int
) -> NetworkLoopSettings:
    """Return the settings as compiled code reads them."""
    share, base, lift = FLOOR_NUMBERS[settings.floor]
    prior, clip = noise_prior(settings), settings.row_clip
    return NetworkLoopSettings(
        architecture.rows,
        architecture.tiles,
        0.0 if settings.sites == "none" else 1 / num_rows,
        clip.scale,
        settings.sites == "per_row",
        settings.clip != "none" or settings.floor != "none",
        CLIPS.index(settings.clip),
        clip.bound,
        settings.noise_sd(num_rows),
        share,
        base,
        lift,
        settings.learned,
        *prior,
        **scales(architecture),
    )
