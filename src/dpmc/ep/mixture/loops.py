"""Passes over the rows of a mixture, compiled: one loop for each way of keeping factors.

The steps are described in :mod:`dpmc.ep.settings` and :mod:`dpmc.ep.mixture.published`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dpmc.ep.mixture.factor import LARGEST, find_factor
from dpmc.ep.mixture.states import (
    NO_CLIP,
    PER_BLOCK,
    MixtureState,
    add_noise,
    all_definite,
    clip,
    combine,
    copy,
    fill,
    finite,
    repair,
    step_on_grid,
)
from dpmc.numerics.compiled import kept
from dpmc.numerics.small_matrices import compiled

# Counts of a loop.
COUNTERS = ("skipped", "invalid", "clipped", "repaired")
SKIPPED, INVALID, CLIPPED, REPAIRED = range(4)
# Counts that follow from released states alone; the others depend on rows.
RELEASED_COUNTERS = ("repaired",)


class MixtureLoopSettings(NamedTuple):
    """MixtureLoopSettings as compiled code reads them."""

    step: float
    share: float  # of the state that counts as the factor of one row: 1 / N, 0 for ADF
    clip: int
    clip_bound: float
    skip: bool  # leave out a step whose rows would not add up to a density
    floor: float  # the least that takes the place of an eigenvalue


@kept
def shared_pass(
    rows: Any,
    order: Any,
    noise: Any,
    thresholds: Any,
    target: Any,
    settings: Any,
    state: Any,
    counters: Any,
    scratch: Any,
) -> int:
    """Go through rows with one factor for all of them; return the steps completed.

    `noise` has one vector for each step, or none at all; `thresholds` the eigenvalue up to which
    each repairs. The state stays finite: a step that would leave the finite numbers is not
    made, and no other one after it.
    """
    share, step, proposal = settings.share, settings.step, scratch.proposal
    largest = LARGEST if settings.clip == NO_CLIP else math.inf
    for i in range(order.size):
        fill(target, state, 1.0 - share, scratch.cavity)
        exists = find_factor(rows[order[i]], target, largest, scratch)
        counters[INVALID] += not exists
        if settings.skip and not exists:
            counters[SKIPPED] += 1
            continue
        if not exists:  # what changes nothing takes its place, and is clipped and gets noise
            combine(share, state, 0.0, state, scratch.factor)
        counters[CLIPPED] += clip(settings.clip, settings.clip_bound, scratch.factor)
        combine(1.0 - step * share, state, step, scratch.factor, proposal)
        if noise.shape[0] > 0:
            add_noise(noise[i], proposal)
        if not finite(proposal):
            return i
        if not settings.skip:
            floor = max(settings.floor, thresholds[i])
            counters[REPAIRED] += repair(proposal, thresholds[i], floor, scratch)
        elif not all_definite(proposal.precision, scratch.a):
            counters[SKIPPED] += 1
            continue
        copy(proposal, state)
    return int(order.size)


@kept
def grid_pass(
    rows: Any,
    order: Any,
    noise: Any,
    grid: float,
    thresholds: Any,
    target: Any,
    settings: Any,
    state: Any,
    counters: Any,
    scratch: Any,
) -> int:
    """Make the steps of `shared_pass` with noise on a grid; return how many, which is all."""
    share, step, factor = settings.share, settings.step, scratch.factor
    kept_share = 1.0 - share
    for i in range(order.size):
        fill(target, state, kept_share, scratch.cavity)
        if not find_factor(rows[order[i]], target, math.inf, scratch):
            counters[INVALID] += 1
            combine(share, state, 0.0, state, factor)
        counters[CLIPPED] += clip(settings.clip, settings.clip_bound, factor)
        weights = 1.0 - step * share, step
        step_on_grid(weights[0], state, weights[1], factor, grid, noise[i], scratch.proposal)
        floor = max(settings.floor, thresholds[i])
        counters[REPAIRED] += repair(scratch.proposal, thresholds[i], floor, scratch)
        copy(scratch.proposal, state)
    return int(order.size)


@compiled
def site(sites: Any, n: int) -> Any:
    """Factor of row n, a view."""
    return MixtureState(sites.h[n], sites.precision[n])


@compiled
def is_density(target: Any, settings: Any, proposal: Any, scratch: Any) -> bool:
    """True if the rows, or the prior and they, add up to a density."""
    if settings.skip:
        return bool(all_definite(proposal.precision, scratch.a))
    fill(target, proposal, 1.0, scratch.cavity)
    return bool(all_definite(scratch.cavity.precision, scratch.a))


@kept
def sites_pass(
    rows: Any,
    order: Any,
    target: Any,
    settings: Any,
    sites: Any,
    state: Any,
    counters: Any,
    scratch: Any,
) -> int:
    """Go through rows with a factor for each; return the steps completed.

    A step without a factor, or without a density after it, is left out.
    """
    proposal = scratch.proposal
    for i in range(order.size):
        row_site = site(sites, order[i])
        combine(1.0, state, -1.0, row_site, proposal)
        fill(target, proposal, 1.0, scratch.cavity)
        if not find_factor(rows[order[i]], target, LARGEST, scratch):
            counters[INVALID] += 1
            counters[SKIPPED] += 1
            continue
        combine(1.0, scratch.factor, -1.0, row_site, scratch.factor)
        combine(1.0, state, settings.step, scratch.factor, proposal)
        if not finite(proposal):
            return i
        if not is_density(target, settings, proposal, scratch):
            counters[SKIPPED] += 1
            continue
        combine(1.0, row_site, settings.step, scratch.factor, row_site)
        copy(proposal, state)
    return int(order.size)


@compiled
def add_mirrored(
    normals: Any, h_sd: float, precision_sd: float, num: int, dim: int, state: Any
) -> None:
    """Add the noise of the public code: d x d normals for each precision, then those of h.

    Of a square the upper triangle counts, and is mirrored.
    """
    for j in range(num):
        for i in range(dim):
            state.h[j, i] += h_sd * normals[num * dim * dim + j * dim + i]
            for k in range(i, dim):
                state.precision[j, i, k] += precision_sd * normals[(j * dim + i) * dim + k]
                state.precision[j, k, i] = state.precision[j, i, k]


@kept
def published_pass(
    rows: Any,
    normals: Any,
    h_sd: float,
    precision_sd: float,
    target: Any,
    settings: Any,
    shared: Any,
    state: Any,
    counters: Any,
    scratch: Any,
) -> tuple[int, int]:
    """Go through rows as the public code of the paper does; return steps and normals used.

    `shared` is the factor of all rows: the state over N, clipped. `normals` has a row for
    each step that may be accepted; a skipped one uses none.
    """
    used, proposal = 0, scratch.proposal
    num, dim = state.h.shape
    for i in range(rows.shape[0]):
        combine(1.0, state, -1.0, shared, proposal)
        fill(target, proposal, 1.0, scratch.cavity)
        if not find_factor(rows[i], target, LARGEST, scratch):
            counters[INVALID] += 1
            counters[SKIPPED] += 1
            continue
        counters[CLIPPED] += clip(PER_BLOCK, settings.clip_bound, scratch.factor)
        combine(1.0, scratch.factor, -1.0, shared, scratch.factor)
        combine(1.0, state, settings.step, scratch.factor, proposal)
        if not all_definite(proposal.precision, scratch.a):
            counters[SKIPPED] += 1
            continue
        add_mirrored(normals[used], h_sd, precision_sd, num, dim, proposal)
        used += 1
        if not finite(proposal):
            return i, used
        counters[REPAIRED] += repair(proposal, 0.0, settings.floor, scratch)
        copy(proposal, state)
        combine(settings.share, state, 0.0, state, shared)
        clip(PER_BLOCK, settings.clip_bound, shared)
    return int(rows.shape[0]), used
