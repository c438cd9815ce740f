"""Bayesian networks with one hidden layer by EP, stochastic EP and private stochastic EP.

[vinaroz2022dpsep, section 6.2]. State is the natural parameter of q and nothing else: all of
it is released with noise at every step of ``dp_sep``, so that one step is one Gaussian release
of one sampled row, and every state may be published.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.ep.network.layout import COUNTS, RELEASED_COUNTS, Architecture, Arrays, Layers, Settings
from dpmc.ep.network.loops import sweep
from dpmc.ep.network.prior_refinement import PriorFactors
from dpmc.ep.network.scores import output_moments
from dpmc.ep.network.settings import Params
from dpmc.ep.network.states import first_arrays, settings_of
from dpmc.privacy import events
from dpmc.privacy.ledger import Ledger
from dpmc.progress import Progress, silent
from dpmc.types import Array, DpmcError, MemoryLimitError

__all__ = ["Architecture", "NetworkFit", "Params", "fit"]

# Steps of one call of compiled code.
BLOCK = 1 << 15
GIB = 2**30


@dataclass(frozen=True)
class NetworkFit:
    """Independent normal distributions of the weights, and how they came about.

    Parameters
    ----------
    means, variances : (ndarray of shape (H, d + 1), ndarray of shape (H + 1,))
        Of the weights, those of biases last.
    noise_variance : float
        Of a target given the network.
    noise_law : (float, float) or None
        Shape and rate of the learned noise precision.
    counters : mapping of str to int
        See :data:`dpmc.ep.network.layout.COUNTS`. Of a private run only what follows from
        released states, :data:`dpmc.ep.network.layout.RELEASED_COUNTS`; with
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
    noise_law: tuple[float, float] | None
    counters: Mapping[str, int]
    status: str
    num_passes: int
    releases: tuple[tuple[str, int], ...]

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Return mean and variance of the network's output, without noise, each of shape (m,).

        Raises
        ------
        DpmcError
            If `x` has another number of columns.
        """
        rows = np.asarray(x, dtype=np.float64)
        inputs = self.means[0].shape[1] - 1
        if rows.ndim != 2 or rows.shape[1] != inputs:
            raise DpmcError(f"x: shape {np.shape(x)}, allowed (m, {inputs})")
        return output_moments(rows, self.means, self.variances)


def fit(
    x: Array,
    y: Array,
    params: Params,
    rng: np.random.Generator,
    progress: Progress = silent,
    prior: Layers | None = None,
    ledger: Ledger | None = None,
) -> NetworkFit:
    """Fit a network.

    Beside the rows, memory is that of the weights: a few hundred kilobytes. A permutation
    takes eight bytes a row more, and EP a site for each row, see
    :meth:`Architecture.site_bytes`.

    Parameters
    ----------
    x : ndarray of shape (N, d)
        Features, of about unit size.
    y : ndarray of shape (N,)
        Targets, of about unit size.
    params : Params
    rng : numpy.random.Generator
        Where the first weights, the order of rows and the seeds of privacy noise come from;
        seeded by the operating system where privacy is meant.
    progress : callable ``(steps done, steps in all, text)``
    prior : (ndarray of shape (H, d + 1), ndarray of shape (H + 1,)), optional
        Prior precision of each weight, in place of one for all.
    ledger : Ledger, optional
        Told of noisy steps before they are made; refuses what its plan does not cover.

    Raises
    ------
    DpmcError
        If rows are not finite or do not fit, or the plan does not cover the releases.
    MemoryLimitError
        If the sites of EP do not fit into memory.
    """
    x, y = _checked_rows(x, y)
    architecture = Architecture(params.hidden, x.shape[1])
    if params.method == "ep":
        _check_memory(architecture.site_bytes(len(y)), available_bytes())
    arrays = first_arrays(architecture, params, len(y), rng, prior)
    ledger = Ledger() if ledger is None else ledger
    before = ledger.counts
    status, done = _run(x, y, params, architecture, arrays, rng, progress, ledger)
    return _result(params, architecture, arrays, status, done, ledger.records(before))


def _run(
    x: Array,
    y: Array,
    params: Params,
    architecture: Architecture,
    arrays: Arrays,
    rng: np.random.Generator,
    progress: Progress,
    ledger: Ledger,
) -> tuple[str, int]:
    """Pass over the rows until all passes are done or q is not proper any more."""
    settings = settings_of(architecture, params, len(y))
    factors = PriorFactors(architecture, params.prior_shape, params.prior_rate)
    status, done, total = "complete", 0, params.num_passes * len(y)
    for number in range(params.num_passes):
        before = (arrays.shift.copy(), arrays.precision.copy(), arrays.gamma.copy())
        broken = int(arrays.counts[4])
        _record_pass(ledger, params, len(y))
        for order in _orders(params, len(y), rng):
            sweep(x, y, order, arrays, settings)
            progress(int(arrays.counts[0]), total, "")
        # Whether predictions were finite is told by rows without noise.
        all_broken = not params.private and int(arrays.counts[4]) - broken == len(y)
        reason = _failure(arrays, all_broken)
        if reason:
            status = f"stopped in pass {number + 1}: {reason}"
            for array, values in zip(
                (arrays.shift, arrays.precision, arrays.gamma), before, strict=True
            ):
                array[:] = values
            break
        if params.refine_prior:
            factors.refine(arrays)
        done += 1
    if params.debias:
        _debias(arrays, settings)
    return status, done


def _record_pass(ledger: Ledger, params: Params, num_rows: int) -> None:
    """Record the releases of one pass before it is made.

    Independent rows: each step is a Gaussian release of a sampled row. Permutations: a pass
    shows each row once, so that it is one Gaussian release, from all rows.
    """
    multiplier = params.true_multiplier(num_rows)
    if not multiplier:
        return
    if params.order == "independent":
        ledger.record(events.sampled_gaussian(multiplier, 1, num_rows), num_rows)
    else:
        ledger.record(events.gaussian(multiplier), 1)


def _checked_rows(x: Array, y: Array) -> tuple[Array, Array]:
    """Return features and targets as compiled code reads them, or refuse them."""
    rows = np.ascontiguousarray(x, dtype=np.float64)
    targets = np.ascontiguousarray(y, dtype=np.float64)
    if rows.ndim != 2 or 0 in rows.shape:
        raise DpmcError(f"x: shape {rows.shape}, allowed (>= 1 rows, >= 1 columns)")
    if targets.shape != (len(rows),):
        raise DpmcError(f"y: shape {targets.shape}, allowed ({len(rows)},)")
    for name, values in (("x", rows), ("y", targets)):
        checks.finite_columns(name, values)
    return rows, targets


def available_bytes() -> float:
    """Return the memory that is free on this machine; ``inf`` where nobody can say."""
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
            f"method: 'ep' takes {needed / GIB:.3g} GiB for its sites, allowed "
            f"{available / GIB:.3g} GiB on this machine; 'sep' has none"
        )


def _orders(
    params: Params, num_rows: int, rng: np.random.Generator
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the rows of one pass, block by block."""
    starts = range(0, num_rows, BLOCK)
    if params.order == "independent":
        for first in starts:
            yield rng.integers(num_rows, size=min(BLOCK, num_rows - first))
        return
    order = rng.permutation(num_rows)
    for first in starts:
        yield order[first : first + BLOCK]
    if params.wasted_draws:
        rng.standard_normal()  # one does what thousands would: other permutations follow


def _failure(arrays: Arrays, all_broken: bool) -> str:
    """Return why q is not proper, or nothing."""
    if all_broken:
        return "no step had a finite prediction"
    if not np.isfinite(arrays.shift).all():
        return "the shift of a weight is not finite"
    if not ((arrays.precision > 0) & np.isfinite(arrays.precision)).all():
        count = int(np.sum(~(arrays.precision > 0)))
        return f"the precision of {count} weights is not positive"
    if not (arrays.gamma[0] > 1 and 0 < arrays.gamma[1] < math.inf):
        return "the law of the noise precision is not proper"
    return ""


def _debias(arrays: Arrays, settings: Settings) -> None:
    """Scale what q has beyond the prior up to the evidence of all rows."""
    steps = int(arrays.counts[0])
    scale = -1 / math.expm1(steps * math.log1p(-settings.step * settings.share))
    arrays.shift[:] = scale * arrays.shift
    arrays.precision[:] = arrays.prior + scale * (arrays.precision - arrays.prior)
    law = np.array([settings.shape, settings.rate])
    arrays.gamma[:] = law + scale * (arrays.gamma - law)


def _result(
    params: Params,
    architecture: Architecture,
    arrays: Arrays,
    status: str,
    num_passes: int,
    releases: tuple[tuple[str, int], ...],
) -> NetworkFit:
    means = architecture.unpack(arrays.shift / arrays.precision)
    variances = architecture.unpack(1 / arrays.precision)
    shape, rate = (float(value) for value in arrays.gamma)
    told = RELEASED_COUNTS if params.private and params.diagnostics == "none" else COUNTS
    return NetworkFit(
        means,
        variances,
        rate / (shape - 1),
        (shape, rate) if params.learned else None,
        {name: int(arrays.counts[COUNTS.index(name)]) for name in told},
        status,
        num_passes,
        releases,
    )
