"""Convergence of chains: split R-hat and effective sample size."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmc.types import Array, DpmcError


def split_rhat(draws: Array) -> float:
    """Return the largest split R-hat of all components.

    Every chain is cut in two (a middle draw of an odd chain is left out); with W the
    mean variance within the halves and B / n that of their means,
    ``R = sqrt(((n - 1) / n * W + B / n) / W)``. It does not see a wrong stationary distribution.

    Parameters
    ----------
    draws : ndarray of shape (k, chains, d)

    Returns
    -------
    float
        NaN below four draws; infinite if all halves stand still at different places.

    References
    ----------
    Gelman et al. 2013, section 11.4.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(500, 4, 2))
    >>> split_rhat(draws) < 1.05
    True
    """
    half = len(draws) // 2
    if half < 2:
        return math.nan
    halves = np.concatenate([draws[:half], draws[-half:]], axis=1)
    within = np.mean(np.var(halves, axis=0, ddof=1), axis=0)
    between = np.var(np.mean(halves, axis=0), axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((half - 1) / half + between / within)
    return math.nan if np.all(np.isnan(ratio)) else float(np.nanmax(ratio))


def bulk_ess(draws: Array) -> float:
    """Return the smallest rank-normalised bulk effective sample size of all components.

    Parameters
    ----------
    draws : ndarray of shape (k, chains, d)

    Returns
    -------
    float
        NaN below four draws per chain or if a component never moves.

    References
    ----------
    Vehtari et al. 2021, computed by ArviZ.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(500, 4, 2))
    >>> bulk_ess(draws) > 500
    True
    """
    if len(draws) < 4 or not np.all(np.isfinite(draws)):
        return math.nan
    if np.any(np.ptp(draws, axis=(0, 1)) == 0):  # ArviZ would count every draw
        return math.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from arviz import ess

        measure: Any = ess  # ArviZ has no types
        sizes = [float(measure(draws[:, :, k].T, method="bulk")) for k in range(draws.shape[2])]
    return min(sizes) if np.all(np.isfinite(sizes)) else math.nan


def diagnose(chains: Sequence[Array]) -> dict[str, float]:
    """Return the largest R-hat and the smallest effective sample sizes of all components.

    Parameters
    ----------
    chains : sequence of ndarray of shape (kept, d)
        Draws of independent chains on the same release; a single chain is cut in two, of
        eight draws or more.

    Returns
    -------
    dict of str to float
        ``rhat`` (rank-normalised, split), ``ess_bulk`` and ``ess_tail`` over all chains
        [Vehtari et al. 2021, computed by ArviZ]; NaN where a component never moves.

    Raises
    ------
    DpmcError
        If chains differ in shape or have fewer than four draws.
    """
    if len(chains) == 1:
        # ArviZ computes nothing from one chain.
        half = len(chains[0]) // 2
        chains = [chains[0][:half], chains[0][-half:]]
    shapes = {np.shape(chain) for chain in chains}
    if len(shapes) != 1 or len(next(iter(shapes))) != 2 or next(iter(shapes))[0] < 4:
        raise DpmcError(f"`chains` must have one shape (at least 4 draws, d), got {sorted(shapes)}")
    draws = np.stack([np.asarray(chain, dtype=np.float64) for chain in chains])
    if np.any(np.ptp(draws, axis=(0, 1)) == 0) or not np.isfinite(draws).all():
        return dict.fromkeys(("rhat", "ess_bulk", "ess_tail"), math.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz

        measures: Any = arviz  # it has no types
        columns = [draws[:, :, k] for k in range(draws.shape[2])]
        return {
            "rhat": max(float(measures.rhat(column)) for column in columns),
            "ess_bulk": min(float(measures.ess(column, method="bulk")) for column in columns),
            "ess_tail": min(float(measures.ess(column, method="tail")) for column in columns),
        }
