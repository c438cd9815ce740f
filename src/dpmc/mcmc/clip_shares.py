"""Shares of clipped rows: exact, released with noise of their own, or left out.

A count of clipped rows is a function of private rows like any other. One substituted row
changes it by at most 1 for each pass over the rows, so that a share of all rows and passes
changes by at most 1/n, given all that was released before.

Methods that pass over all rows count as they go, and the total of a run is released.
Methods that see batches may not: amplification by sampling holds only as long as nobody
learns which rows were in a batch, and the count of a batch is a function of it. What is
released instead are shares over all rows at some of the states that were released, from
passes of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpmc.mcmc.chains import Run
from dpmc.mcmc.posterior import Posterior
from dpmc.numerics.compiled import compile_once, identity
from dpmc.privacy import accounting, calibration, events
from dpmc.privacy.clipped import row_shares
from dpmc.privacy.events import Releases
from dpmc.privacy.ledger import Ledger
from dpmc.rows.kernels import batch_ratio_kernel, gradient_kernel
from dpmc.types import CLIP_COUNTS, Array, Budget, Diagnostic, DpmcError

Diagnostics = Literal["private", "none", "exact"]
CHOICES = ("private", "none", "exact")
# Share of mu^2, where mu is the Gaussian privacy parameter of the budget.
SHARE = 0.01
# Released states at which methods that see batches look at all rows.
MOST_STATES = 16
# Rows whose gradients are looked at together.
CHUNK = 4096


def with_release(releases: Releases, budget: Budget) -> Releases:
    """Releases with the diagnostics of all chains, once."""
    event = events.gaussian(calibration.share_multiplier(budget, SHARE))
    accountant = accounting.load(budget.accountant)
    try:
        accountant.delta({event: 0}, budget.epsilon)
    except DpmcError:
        raise DpmcError(
            f"`diagnostics` must be 'none' or 'exact' with accountant {budget.accountant}, which "
            "proves nothing of their release, got 'private'"
        ) from None
    return replace(releases, once=(*releases.once, (event, 1)))


def exact_shares(totals: Mapping[str, npt.NDArray[Any]]) -> dict[str, float]:
    """Shares of clipped rows over all passes and chains of a run."""
    shares = {}
    for name in CLIP_COUNTS:
        rows = f"{name.removesuffix('clipped')}rows"
        if name in totals and totals[rows].sum():
            shares[name] = float(totals[name].sum() / totals[rows].sum())
    return shares


def release(
    module: ModuleType,
    params: Any,
    posterior: Posterior,
    run: Run,
    starts: Array,
    noise_multiplier: float,
    ledger: Ledger,
    rng: np.random.Generator,
    noise: np.random.Generator,
) -> dict[str, Diagnostic]:
    """Release the shares of clipped rows with Gaussian noise, all of them together.

    Parameters
    ----------
    module : module
        The method. One with ``clip_shares(posterior, params, states, rng)`` sees batches.
    params : Params
        Its settings.
    posterior : Posterior
        The model on its rows.
    run : Run
        What the chains gave.
    starts : ndarray of shape (chains, d)
        Looked at where the chains gave no state.
    noise_multiplier : float
        Noise standard deviation over the sensitivity.
    ledger : Ledger
        Records the release.
    rng : numpy.random.Generator
        Public randomness.
    noise : numpy.random.Generator
        Noise of the release.

    Returns
    -------
    dict of str to Diagnostic
        Noisy shares, clipped to [0, 1].
    """
    if hasattr(module, "clip_shares"):
        states = released_states(run.draws if run.draws is not None else starts)
        shares = module.clip_shares(posterior, params, states, rng)
    else:
        shares = exact_shares(run.totals)
    values = row_shares(np.array([*shares.values()]), posterior.num_rows)
    noisy = ledger.release(values, noise_multiplier, noise)
    standard_error = values.sensitivity * noise_multiplier
    return {
        name: Diagnostic(float(min(1.0, max(0.0, value))), standard_error)
        for name, value in zip(shares, noisy, strict=True)
    }


def released_states(draws: Array) -> Array:
    """At most `MOST_STATES` states, evenly spaced over all chains, shape (k, d)."""
    dim = draws.shape[-1]
    states = np.moveaxis(draws, 0, -2).reshape(-1, dim)  # one chain after the other
    count = min(MOST_STATES, len(states))
    spaced: Array = states[np.linspace(0, len(states) - 1, count).round().astype(int)]
    return spaced


def without_clip_counts(run: Run) -> Run:
    """Run without the counts of private rows."""
    info = {name: values for name, values in run.info.items() if name not in CLIP_COUNTS}
    totals = {name: values for name, values in run.totals.items() if name not in CLIP_COUNTS}
    return replace(run, info=info, totals=totals)


def ratio_share(
    posterior: Posterior, states: Array, proposals: Array, bounds: Sequence[float]
) -> float:
    """Mean share of rows whose log-likelihood ratio is clipped.

    Parameters
    ----------
    posterior : Posterior
        The model on its rows.
    states, proposals : ndarray of shape (k, d)
        Starts and ends of the moves.
    bounds : sequence of float of length k
        The clip bound of each.

    Returns
    -------
    float
        In [0, 1]; one substituted row changes it by at most 1/n.
    """
    model, rows = posterior.model, posterior.batch_rows
    coefficients = compile_once(model.coefficients or identity)
    every = np.arange(len(rows), dtype=np.uint64)
    old = coefficients(states[0].copy())
    kernel = batch_ratio_kernel(model.log_likelihood, len(old), rows.shape[1])
    clipped = 0
    for theta, proposal, bound in zip(states, proposals, bounds, strict=True):
        old, new = coefficients(theta.copy()), coefficients(proposal.copy())
        if model.linear:
            old, new = old[:0], new - old
        clipped += int(kernel(rows, every, old, new, float(bound))[2])
    return clipped / (len(states) * len(rows))


def gradient_share(posterior: Posterior, states: Array, bound: float) -> float:
    """Mean share of rows whose gradient is clipped at states of shape (k, d).

    In [0, 1]; one substituted row changes it by at most 1/n.
    """
    model, rows = posterior.model, posterior.batch_rows
    coefficients = compile_once(model.coefficients or identity)
    points = [coefficients(theta.copy()) for theta in states]
    kernel = gradient_kernel(model.gradient, posterior.dim, len(points[0]), rows.shape[1])
    clipped = 0
    for first in range(0, len(rows), CHUNK):
        part = np.ascontiguousarray(rows[first : first + CHUNK].T)
        for c in points:
            clipped += int(kernel(part, c, bound, 0, part.shape[1])[1])
    return clipped / (len(states) * len(rows))
