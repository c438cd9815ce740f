"""Convergence of chains: R-hat and effective sample size."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpmc.types import Array, DpmcError

# Offset of the ranks that become normal quantiles [Blom 1958].
BLOM = 3 / 8
# Quantiles at which the tails begin.
TAILS = (0.05, 0.95)


def split_rhat(draws: Array) -> float:
    """Largest R-hat of all components: rank-normalised, split, and folded.

    Every chain is cut in two (a middle draw of an odd chain is left out), and draws become the
    normal quantiles of their ranks; so do their distances from the median, which tell of chains of
    other spread. With W the mean variance within the halves and B / n that of their means,
    ``R = sqrt(((n - 1) / n * W + B / n) / W)``; the larger of the two counts. It does not see a
    wrong stationary distribution.

    Parameters
    ----------
    draws : ndarray of shape (k, chains, d)
        A single chain is compared with itself: its two halves.

    Returns
    -------
    float
        NaN below four draws, and if a component never moves or is not finite somewhere; infinite
        if all halves stand still at different places.

    References
    ----------
    Vehtari et al. 2021, section 4.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(500, 4, 2))
    >>> split_rhat(draws) < 1.05
    True
    >>> draws[:, 0, 1] /= 10
    >>> split_rhat(draws) > 1.3
    True
    """
    if len(draws) < 4 or not np.isfinite(draws).all():
        return math.nan
    return float(np.max([_rank_rhat(halves) for halves in _split(draws)]))


def bulk_ess(draws: Array) -> float:
    """Smallest rank-normalised bulk effective sample size of all components.

    Parameters
    ----------
    draws : ndarray of shape (k, chains, d)

    Returns
    -------
    float
        NaN below four draws per chain or if a component never moves.

    References
    ----------
    Vehtari et al. 2021, section 3.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(500, 4, 2))
    >>> bulk_ess(draws) > 500
    True
    """
    if len(draws) < 4 or not np.all(np.isfinite(draws)):
        return math.nan
    if np.any(np.ptp(draws, axis=(0, 1)) == 0):  # every draw would count
        return math.nan
    sizes = [_effective_size(_scores(halves)) for halves in _split(draws)]
    return min(sizes) if np.all(np.isfinite(sizes)) else math.nan


def diagnose(chains: Sequence[Array]) -> dict[str, float]:
    """Largest R-hat and the smallest effective sample sizes of all components.

    Parameters
    ----------
    chains : sequence of ndarray of shape (kept, d)
        Draws of independent chains on the same release; a single chain is cut in two, of
        eight draws or more.

    Returns
    -------
    dict of str to float
        ``rhat`` (rank-normalised, split, of the draws and of how far they are from their median),
        ``ess_bulk`` and ``ess_tail`` (of the shares below the 5 % and 95 % quantiles) over all
        chains [Vehtari et al. 2021, sections 3 and 4.3]; NaN where a component never moves.
    """
    if len(chains) == 1:
        # Chains tell nothing of each other where there is one.
        half = len(chains[0]) // 2
        chains = [chains[0][:half], chains[0][-half:]]
    shapes = {np.shape(chain) for chain in chains}
    if len(shapes) != 1 or len(next(iter(shapes))) != 2 or next(iter(shapes))[0] < 4:
        raise DpmcError(f"`chains` must have one shape (at least 4 draws, d), got {sorted(shapes)}")
    draws = np.stack([np.asarray(chain, dtype=np.float64) for chain in chains], axis=1)
    if np.any(np.ptp(draws, axis=(0, 1)) == 0) or not np.isfinite(draws).all():
        return dict.fromkeys(("rhat", "ess_bulk", "ess_tail"), math.nan)
    split = _split(draws)
    return {
        "rhat": split_rhat(draws),
        "ess_bulk": min(_effective_size(_scores(halves)) for halves in split),
        "ess_tail": min(
            _effective_size(halves <= np.quantile(component, share))
            for halves, component in zip(split, np.moveaxis(draws, 2, 0), strict=True)
            for share in TAILS
        ),
    }


def _split(draws: Array) -> list[Array]:
    """For each component the halves of all chains, shape (2 chains, k // 2)."""
    half = len(draws) // 2
    halves = np.concatenate([draws[:half], draws[-half:]], axis=1)
    return list(np.ascontiguousarray(np.moveaxis(halves, (2, 1), (0, 1))))


def _scores(values: Array) -> Array:
    """Normal quantiles of the ranks of all values; ties share the mean of theirs."""
    from scipy.special import ndtri

    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    shares = (ranks - BLOM) / (values.size - 2 * BLOM + 1)
    scores: Array = ndtri(shares)[places].reshape(values.shape)
    return scores


def _rank_rhat(halves: Array) -> float:
    """Larger R-hat of the scores of draws and of their distances from the median.

    Draws of two values are all as far from a median between them: that tells nothing.
    """
    distances = np.abs(halves - np.median(halves))
    return float(np.fmax(_ratio(_scores(halves)), _ratio(_scores(distances))))


def _ratio(chains: Array) -> float:
    # Rounding would give a chain that stands still a variance.
    spread = np.where(np.ptp(chains, axis=1) == 0, 0.0, np.var(chains, axis=1, ddof=1))
    within = np.mean(spread)
    between = np.var(np.mean(chains, axis=1), ddof=1) if np.ptp(chains) else 0.0
    length = chains.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.sqrt((length - 1) / length + between / within))


def _effective_size(chains: Array) -> float:
    """Effective sample size of the mean of chains, shape (m, n), taken together.

    The autocorrelations of the mixture of chains are summed up to the first pair of lags that
    adds nothing, the sums of pairs made to decrease (Geyer 1992).
    """
    num, length = chains.shape
    values = np.asarray(chains, dtype=np.float64)
    if np.ptp(values) == 0:
        return float(values.size)
    size = 1 << (2 * length - 1).bit_length()
    spectrum = np.fft.rfft(values - values.mean(axis=1, keepdims=True), size)
    power = np.mean(spectrum.real**2 + spectrum.imag**2, axis=0)
    covariance = np.fft.irfft(power, size)[:length] / length
    within = covariance[0] * length / (length - 1)
    pooled = covariance[0] + (np.var(values.mean(axis=1), ddof=1) if num > 1 else 0.0)
    correlation = 1.0 - (within - covariance) / pooled
    correlation[0] = 1.0
    time = max(_summed(correlation), 1.0 / math.log10(values.size))
    return values.size / time


def _summed(correlation: Array) -> float:
    """Return ``-1 + 2 sum_k rho_k`` by the initial monotone sequence; the last lag counts once."""
    length = len(correlation)
    even, odd = correlation[: length - 1 : 2], correlation[1::2]
    pairs = even[: len(odd)] + odd
    # The pair that ends the sum, or the last one whose lags all chains have.
    last = max(0, (length - 3) // 2)
    ends = np.flatnonzero(pairs[: last + 1] <= 0)
    stop = int(ends[0]) if len(ends) else last
    total = 2.0 * float(np.minimum.accumulate(pairs[:stop]).sum()) if stop else 0.0
    final = float(even[stop])
    return -1.0 + total + (final if pairs[stop] >= 0 or final > 0 else 0.0)
