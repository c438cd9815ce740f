"""Engine of EP, stochastic EP and private stochastic EP on networks with one hidden layer.

[vinaroz2022dpsep, section 6.2]. The state is the natural parameter of q and nothing else: all of
it is released with noise at every step of DP-SEP, so that one step is one Gaussian release
of one sampled row, and every state may be published.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmc.ep.invalid_rows import as_floats, without_invalid
from dpmc.ep.network.factor import tilted_gamma
from dpmc.ep.network.layout import (
    COUNTS,
    RELEASED_COUNTS,
    Architecture,
    Arrays,
    Layers,
    NetworkLoopSettings,
    scales,
)
from dpmc.ep.network.loops import sweep
from dpmc.ep.network.scores import output_moments
from dpmc.ep.network.settings import NOISE_GAMMA, PRIOR_GAMMA, NetworkSettings
from dpmc.ep.network.task import Fitted
from dpmc.ep.settings import CLIPS, pass_orders
from dpmc.numerics.compiled import kept
from dpmc.numerics.simd import WIDTH
from dpmc.privacy import compiled_noise, events
from dpmc.privacy.ledger import Ledger
from dpmc.progress import Progress, silent
from dpmc.types import NO_GUARANTEE, Array, DpmcError, InvalidRows, MemoryLimitError

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
) -> Arrays:
    """First state: q at the prior, but for random means that break the symmetry."""
    precisions = tuple(np.full(shape, settings.first_precision) for shape in architecture.shapes)
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


def _scaled_down(block: Array, norm: float | None) -> Array:
    """Block with at most this norm."""
    if norm is None:
        return block
    scaled: Array = block / max(1.0, float(np.linalg.norm(block)) / norm)
    return scaled


def noise_prior(settings: NetworkSettings) -> tuple[float, float]:
    """Shape and rate of the noise precision: of its prior, or for a fixed variance.

    Of the latter only rate / (shape - 1) counts.
    """
    if settings.noise_variance is not None:
        return 2.0, float(settings.noise_variance)
    return NOISE_GAMMA


def loop_settings(
    architecture: Architecture, settings: NetworkSettings, num_rows: int
) -> NetworkLoopSettings:
    """Settings as compiled code reads them."""
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


# Cavities of a larger variance are left alone.
LARGEST_VARIANCE = 1e6


class PriorFactors:
    """Gamma parts of the prior's factors, and Gamma distribution of the precision of weights.

    Parameters
    ----------
    architecture : Architecture
        Sizes of the network.
    shape, rate : float
        Gamma distribution before the first pass.
    """

    def __init__(self, architecture: Architecture, shape: float, rate: float) -> None:
        self.places = architecture.places()
        self.gamma: Array = np.array([shape, rate])
        self.sites: Array = np.zeros((len(self.places), 2))

    def refine(self, arrays: Arrays) -> int:
        """Refine the prior and change q with it, in place; return how many weights were skipped."""
        skipped = _refine(arrays.precision, arrays.shift, arrays.prior, self.places, self.sites,
                          self.gamma)  # fmt: skip
        return int(skipped)


@kept
def _refine(precision: Any, shift: Any, prior: Any, places: Any, sites: Any, gamma: Any) -> int:
    """Refine the factors in turn, each from the Gamma distribution that the last one left.

    The Gaussian part of a factor comes out as ``(a - 1) / b`` of the cavity: with v the
    variance of the cavity, moment matching of N(m; 0, v + b / (a - 1)) gives the precision
    ``1 / v + (a - 1) / b``, and leaves the shift as it is.
    """
    skipped = 0
    for j in range(places.size):
        k = places[j]
        cavity = precision[k] - prior[k]
        a, b = gamma[0] - sites[j, 0], gamma[1] - sites[j, 1]
        if not (cavity * LARGEST_VARIANCE > 1.0 and a > 1.0 and b > 0.0):
            skipped += 1
            continue
        mean = shift[k] / cavity
        factor_a, factor_b, valid = tilted_gamma(a, b, 1.0 / cavity, mean * mean)
        if not valid:
            skipped += 1
            continue
        prior[k] = (a - 1.0) / b
        precision[k] = cavity + prior[k]
        sites[j, 0], sites[j, 1] = factor_a, factor_b
        gamma[0], gamma[1] = a + factor_a, b + factor_b
    return skipped


# Steps of one call of compiled code.
BLOCK = 1 << 15
GIB = 2**30


@dataclass(frozen=True)
class NetworkFit:
    """Independent normal distributions of the weights, and how the run went.

    Parameters
    ----------
    means, variances : (ndarray of shape (H, d + 1), ndarray of shape (H + 1,))
        Of the weights, those of biases last.
    noise_variance : float
        Variance of a target given the network.
    noise_gamma : (float, float) or None
        Shape and rate of the learned noise precision.
    counters : mapping of str to int
        Steps, weights without a valid factor, clipped factors, raised precisions, steps
        without a finite prediction and invalid factors of the noise. Of a private run only
        ``steps`` and ``raised``, which follow from released states; with
        ``diagnostics="exact"`` all of them, which no guarantee covers.
    status : str
        ``"complete"``, or why the run stopped early; the distribution is then the last proper one.
        In a private run the released states alone decide.
    num_passes : int
        Passes whose result this is.
    releases : tuple of (str, int)
        Releases of the run and their counts, as a ledger records them; empty without noise,
        where there is no guarantee.
    """

    means: Layers
    variances: Layers
    noise_variance: float
    noise_gamma: tuple[float, float] | None
    counters: Mapping[str, int]
    status: str
    num_passes: int
    releases: tuple[tuple[str, int], ...]

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Mean and variance of the network's output, without noise, each of shape (m,)."""
        rows = np.asarray(x, dtype=np.float64)
        inputs = self.means[0].shape[1] - 1
        if rows.ndim != 2 or rows.shape[1] != inputs:
            raise DpmcError(f"`x` must have shape (m, {inputs}), got {np.shape(x)}")
        return output_moments(rows, self.means, self.variances)


def fit(
    x: Array,
    y: Array,
    settings: NetworkSettings,
    rng: np.random.Generator,
    progress: Progress = silent,
    ledger: Ledger | None = None,
    invalid_rows: InvalidRows = "refuse",
) -> NetworkFit:
    """Fit a network.

    In addition to the rows, memory is that of the weights: a few hundred kilobytes. A
    permutation takes eight bytes a row more, and EP a site for each row
    (:meth:`dpmc.ep.network.layout.Architecture.site_bytes`).

    Parameters
    ----------
    x : ndarray of shape (N, d)
        Features, of about unit size.
    y : ndarray of shape (N,)
        Targets, of about unit size.
    rng : numpy.random.Generator
        Source of the first weights, the order of rows and the seeds of privacy noise; seeded
        by the operating system where privacy is meant.
    ledger : Ledger, optional
        Records noisy steps before they are made; refuses what its plan does not cover.

    Raises
    ------
    DpmcError
        If rows are refused or do not fit, or the plan does not cover the releases.
    MemoryLimitError
        If the sites of EP do not fit into memory.
    """
    x, y = _checked_rows(x, y, invalid_rows)
    architecture = Architecture(settings.hidden, x.shape[1])
    if settings.sites == "per_row":
        _check_memory(architecture.site_bytes(len(y)), available_bytes())
    arrays = first_arrays(architecture, settings, len(y), rng)
    ledger = Ledger() if ledger is None else ledger
    before = ledger.counts
    status, done = _run(x, y, settings, architecture, arrays, rng, progress, ledger)
    return _result(settings, architecture, arrays, status, done, ledger.records(before))


def fit_without_privacy(
    x: Array,
    y: Array,
    settings: NetworkSettings,
    rng: np.random.Generator,
    progress: Progress = silent,
    invalid_rows: InvalidRows = "refuse",
) -> Fitted:
    """Fit a network by a method without privacy.

    `x`, `y`, `settings`, `rng`, `progress`, `invalid_rows`: as in :func:`fit`.
    """
    fitted = fit(x, y, settings, rng, progress, invalid_rows=invalid_rows)
    return Fitted(fitted, NO_GUARANTEE, fitted.counters)


def _run(
    x: Array,
    y: Array,
    settings: NetworkSettings,
    architecture: Architecture,
    arrays: Arrays,
    rng: np.random.Generator,
    progress: Progress,
    ledger: Ledger,
) -> tuple[str, int]:
    """Pass over the rows until all passes are done or q is not proper any more."""
    for_loop = loop_settings(architecture, settings, len(y))
    factors = PriorFactors(architecture, *PRIOR_GAMMA)
    status, done, total = "complete", 0, settings.num_passes * len(y)
    for number in range(settings.num_passes):
        before = (arrays.shift.copy(), arrays.precision.copy(), arrays.gamma.copy())
        broken = int(arrays.counts[4])
        _record_pass(ledger, settings, len(y))
        for order in pass_orders(settings.order, len(y), rng, BLOCK):
            sweep(x, y, order, arrays, for_loop)
            progress(int(arrays.counts[0]), total, "")
        if settings.wasted_draws and settings.order == "permutation":
            rng.standard_normal()  # one does what thousands would: other permutations follow
        # Whether predictions were finite depends on rows and has no noise.
        all_broken = not settings.private and int(arrays.counts[4]) - broken == len(y)
        reason = _failure(arrays, all_broken)
        if reason:
            status = f"stopped in pass {number + 1}: {reason}"
            for array, values in zip(
                (arrays.shift, arrays.precision, arrays.gamma), before, strict=True
            ):
                array[:] = values
            break
        if settings.refine_prior:
            factors.refine(arrays)
        done += 1
    return status, done


def _record_pass(ledger: Ledger, settings: NetworkSettings, num_rows: int) -> None:
    """Record the releases of one pass before it is made.

    Independent rows: each step is a Gaussian release of a sampled row. Permutations: a pass
    shows each row once, so that it is one Gaussian release, from all rows.
    """
    multiplier = settings.true_multiplier(num_rows)
    if not multiplier:
        return
    if settings.order == "independent":
        ledger.record(events.sampled_gaussian(multiplier, 1, num_rows), num_rows)
    else:
        ledger.record(events.gaussian(multiplier), 1)


def _checked_rows(x: Array, y: Array, invalid_rows: InvalidRows) -> tuple[Array, Array]:
    """Features and targets as compiled code reads them, or refuse them."""
    rows, targets = (as_floats(*part, invalid_rows) for part in (("x", x), ("y", y)))
    if rows.ndim != 2 or 0 in rows.shape:
        raise DpmcError(f"`x` must have at least one row and one column, got shape {rows.shape}")
    if targets.shape != (len(rows),):
        raise DpmcError(f"`y` must have shape ({len(rows)},), got {targets.shape}")
    rows, targets = without_invalid(invalid_rows, x=rows, y=targets)
    return rows, targets


def available_bytes() -> float:
    """Memory that is free on this machine; ``inf`` where nobody can say."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        return float(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return math.inf


def _check_memory(needed: int, available: float) -> None:
    if needed > available:
        raise MemoryLimitError(
            f"method 'ep' needs {needed / GIB:.3g} GiB for its sites, and this machine has "
            f"{available / GIB:.3g} GiB free; 'sep' needs none"
        )


def _failure(arrays: Arrays, all_broken: bool) -> str:
    """Why q is not proper, or nothing."""
    if all_broken:
        return "no step had a finite prediction"
    if not np.isfinite(arrays.shift).all():
        return "the shift of a weight is not finite"
    if not ((arrays.precision > 0) & np.isfinite(arrays.precision)).all():
        count = int(np.sum(~(arrays.precision > 0)))
        return f"the precision of {count} weights is not positive"
    if not (arrays.gamma[0] > 1 and 0 < arrays.gamma[1] < math.inf):
        return "the distribution of the noise precision is not proper"
    return ""


def _result(
    settings: NetworkSettings,
    architecture: Architecture,
    arrays: Arrays,
    status: str,
    num_passes: int,
    releases: tuple[tuple[str, int], ...],
) -> NetworkFit:
    means = architecture.unpack(arrays.shift / arrays.precision)
    variances = architecture.unpack(1 / arrays.precision)
    shape, rate = (float(value) for value in arrays.gamma)
    names = RELEASED_COUNTS if settings.private and settings.diagnostics == "none" else COUNTS
    return NetworkFit(
        means,
        variances,
        rate / (shape - 1),
        (shape, rate) if settings.learned else None,
        {name: int(arrays.counts[COUNTS.index(name)]) for name in names},
        status,
        num_passes,
        releases,
    )
