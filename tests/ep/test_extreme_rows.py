"""No row moves an update of DP-SEP by more than its sensitivity, whatever floats it is made of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpmc.ep.mixture.loops import COUNTERS, MixtureLoopSettings, shared_pass
from dpmc.ep.mixture.model import MixtureModel
from dpmc.ep.mixture.states import (
    JOINT,
    NO_CLIP,
    PER_BLOCK,
    MixtureScratch,
    MixtureState,
    MixtureTarget,
    clip,
)
from dpmc.ep.network import engine as network_engine
from dpmc.ep.network.layout import Architecture
from dpmc.ep.network.loops import clip_extreme, sweep
from dpmc.ep.network.variants import private
from dpmc.ep.settings import CLIPS
from dpmc.rng import stream
from dpmc.rows.clipping import clip_together
from tests.support.ep_settings import svec

MAGNITUDES = (0.0, 5e-324, 1e-310, 1e-160, 1.0, 1e17, 1e30, 1e100, 1e154, 1e200, 1.7e308)
HOSTILE = tuple(sign * size for size in MAGNITUDES for sign in (1.0, -1.0))
SPECIAL = (*HOSTILE, math.inf, -math.inf, math.nan)
SLACK = 1 + 1e-9
BOUNDS = (1e-200, 1e-3, 0.3, 8.0, 1e170)


def floats(values=SPECIAL):
    return st.one_of(st.sampled_from(values), st.floats(-3, 3))


def arrays(shape, values=SPECIAL):
    size = math.prod(shape)
    return st.lists(floats(values), min_size=size, max_size=size).map(
        lambda entries: np.array(entries).reshape(shape)
    )


def length(values) -> float:
    """Return a norm that neither overflows nor vanishes."""
    return math.hypot(*np.ravel(values))


def plain_clip(bound: float, values):
    """Clip as it is usually written: NaN passes, and so does infinity."""
    with np.errstate(all="ignore"):
        return values * min(1.0, bound / np.sqrt(np.sum(values * values)))


def is_clipped(before, after, bound: float) -> bool:
    """Return whether a clip kept its promise."""
    if np.isnan(before).any():
        return bool((after == 0).all())
    infinite = np.isinf(before)
    if infinite.any():
        expected = np.where(infinite, np.sign(before), 0.0) * (bound / math.sqrt(infinite.sum()))
        return bool(np.allclose(after, expected, rtol=1e-12, atol=0))
    if length(before) <= bound:
        return bool(np.allclose(after, before, rtol=1e-12, atol=0))
    # Of an overflowing or ordinary vector: the bound itself, and nothing longer.
    return bool(np.isfinite(after).all()) and abs(length(after) / bound - 1) <= 1e-9


# --- the clip itself


@settings(max_examples=300, deadline=None)
@given(arrays((7,)), st.sampled_from(BOUNDS))
def test_three_vectors_are_clipped_as_one(values, bound):
    clipped = values.copy()
    clip_together(bound, clipped[:3], clipped[3:6], clipped[6:])
    assert is_clipped(values, clipped, bound)


@settings(max_examples=300, deadline=None)
@given(arrays((2, 2)), arrays((2, 2, 2)), st.sampled_from(BOUNDS))
@example(np.full((2, 2), 1e200), np.zeros((2, 2, 2)), 1.0)
@example(np.zeros((2, 2)), np.full((2, 2, 2), math.nan), 1.0)
@example(np.full((2, 2), 1e-178), np.ones((2, 2, 2)), 1e-200)
def test_the_factor_of_a_mixture_is_clipped(h, precision, bound):
    state, before = MixtureState(h.copy(), precision.copy()), np.append(h, precision)
    clip(JOINT, bound, state)
    assert is_clipped(before, np.append(state.h, state.precision), bound)
    state = MixtureState(h.copy(), precision.copy())
    clip(PER_BLOCK, bound, state)
    assert max(length(state.h), length(state.precision)) <= bound * SLACK


@pytest.mark.parametrize(
    "values", [[1.0, math.nan], [math.inf, 1.0], [1e200, 1e200], [1.7e308, -1.7e308]]
)
def test_a_clip_as_it_is_usually_written_fails_the_same_check(values):
    before = np.array(values)
    assert not is_clipped(before, plain_clip(1.0, before), 1.0)
    clipped = before.copy()
    assert clip_together(1.0, clipped[:1], clipped[1:], np.zeros(0))
    assert is_clipped(before, clipped, 1.0)
    ordinary = np.array([3.0, 4.0])
    assert is_clipped(ordinary, plain_clip(1.0, ordinary), 1.0)


# --- one step on a mixture

MIXTURE = MixtureModel.isotropic(0.7, [[1.0, 0.0], [0.0, 2.0], [-1.0, -1.0]], 0.1)
STEP, NUM_ROWS = 0.5, 10
CLIPPED = MixtureLoopSettings(STEP, 1 / NUM_ROWS, JOINT, 2.0, False, 0.0)
UNCLIPPED = CLIPPED._replace(clip=NO_CLIP, clip_bound=math.inf)
# A repair would hide a change: thresholds that no eigenvalue is below.
NO_REPAIR = np.full(1, -1e300)


def mixture_state(seed: int, size: float) -> MixtureState:
    """Return a state of a run: `size` times that of a few rows."""
    rng = stream(seed, "state of a mixture")
    square = rng.standard_normal((3, 2, 2))
    return MixtureState(
        size * rng.standard_normal((3, 2)), size * (square @ np.swapaxes(square, 1, 2))
    )


def mixture_step(row, state: MixtureState, chosen: MixtureLoopSettings, model=MIXTURE):
    """Return theta after one step, before it is repaired."""
    moved = MixtureState(state.h.copy(), state.precision.copy())
    counters, scratch = (
        np.zeros(len(COUNTERS), np.int64),
        MixtureScratch.of(model.num_components, 2),
    )
    first = np.zeros(1, dtype=np.int64)
    noise = np.zeros((1, model.num_coordinates))
    given_ = (
        row[None],
        first,
        noise,
        NO_REPAIR,
        MixtureTarget.of(model),
        chosen._replace(floor=-1e300),
    )
    shared_pass(*given_, moved, counters, scratch)
    return svec(scratch.proposal.h, scratch.proposal.precision)


def mixture_change(a, b, state, chosen) -> float:
    return length(mixture_step(a, state, chosen) - mixture_step(b, state, chosen))


SENSITIVITY = 2 * STEP * CLIPPED.clip_bound


@settings(max_examples=300, deadline=None)
@given(arrays((2,)), arrays((2,)), st.integers(0, 5), st.sampled_from((0.0, 1e-3, 1.0, 30.0, -1.0)))
@example(np.array([1e150, 0.0]), np.array([-1e150, 0.0]), 0, 1.0)
@example(np.array([math.nan, 0.0]), np.array([3.0, -3.0]), 1, 1.0)
def test_a_row_moves_a_mixture_by_at_most_the_sensitivity(a, b, seed, size):
    """With ``size=-1`` the cavity is no density and no factor exists."""
    assert mixture_change(a, b, mixture_state(seed, size), CLIPPED) <= SENSITIVITY * SLACK


def test_a_mixture_without_a_clip_fails_the_same_check():
    state, far = mixture_state(0, 1.0), np.array([1e17, 0.0])
    assert mixture_change(far, np.zeros(2), state, UNCLIPPED) > 1e6 * SENSITIVITY
    assert mixture_change(far, np.zeros(2), state, CLIPPED) <= SENSITIVITY * SLACK


@pytest.mark.parametrize("size", [1e10, 1e120, -1e150])
def test_a_huge_factor_of_a_mixture_ends_at_the_bound(size):
    """Its direction is that of the row; a square of its entries may overflow."""
    model = MixtureModel.isotropic(0.7, [[0.0, 0.0]], 0.1)
    moved = mixture_step(np.array([size, 0.0]), MixtureState.zeros(1, 2), CLIPPED, model)
    far = math.copysign(STEP * CLIPPED.clip_bound, size)
    np.testing.assert_allclose(moved, [far, 0, 0, 0, 0], rtol=1e-9, atol=1e-8)


# --- one step on a network

HIDDEN, INPUTS = 6, 3
ARCHITECTURE = Architecture(HIDDEN, INPUTS)
NETWORK = private(HIDDEN, 4, 0.3, 1.0, None)
BARE = network_engine.loop_settings(ARCHITECTURE, NETWORK, 20)._replace(
    # Floors come after the noise and would hide a change.
    noise_sd=0.0,
    floor_share=0.0,
    floor_base=-1e300,
)
NETWORK_SENSITIVITY = 2 * BARE.step * BARE.clip_bound


def network_arrays(seed: int, size: float):
    """Return the state after a few ordinary rows; means of the top layer `size` times as large."""
    rng = stream(seed, "state of a network")
    held = network_engine.first_arrays(ARCHITECTURE, NETWORK, 20, rng)
    x, y = rng.standard_normal((20, INPUTS)), rng.standard_normal(20)
    sweep(x, y, np.arange(20), held, BARE)
    first, second = ARCHITECTURE.unpack(held.shift)
    held.shift[:] = ARCHITECTURE.pack(first, second * size, 0.0)
    return held


def network_step(row, held, chosen):
    """Return all coordinates after one step, before floors."""
    moved = type(held)(*(np.copy(array) for array in held))
    sweep(row[None, :-1], row[-1:], np.zeros(1, dtype=np.int64), moved, chosen)
    return np.concatenate([moved.shift, moved.precision, moved.gamma])


def network_change(a, b, held, chosen) -> float:
    return length(network_step(a, held, chosen) - network_step(b, held, chosen))


@settings(max_examples=300, deadline=None)
@given(
    arrays((INPUTS + 1,)),
    arrays((INPUTS + 1,)),
    st.integers(0, 3),
    st.sampled_from((1.0, 0.0, 1e4)),
    st.sampled_from(("joint", "per_block")),
)
@example(np.array([1e200, 0, 0, 1.0]), np.array([0, 0, 0, 1e200]), 0, 1.0, "joint")
@example(np.array([math.nan, 0, 0, 1.0]), np.array([1.0, 0, 0, 1e30]), 0, 1.0, "joint")
def test_a_row_moves_a_network_by_at_most_the_sensitivity(a, b, seed, size, clip_name):
    held = network_arrays(seed, size)
    chosen = BARE._replace(clip=CLIPS.index(clip_name))
    blocks = 5 if clip_name == "per_block" else 1
    # A state of size 1e4 in an ulp of 1e-12, of which a step makes a few.
    limit = NETWORK_SENSITIVITY * math.sqrt(blocks) * SLACK + 1e-11 * (size > 1)
    assert network_change(a, b, held, chosen) <= limit


def test_a_network_without_a_clip_fails_the_same_check():
    held, far = network_arrays(0, 1.0), np.array([1.0, 0.0, 0.0, 1e5])
    near = np.array([1.0, 0.0, 0.0, 0.1])
    assert network_change(far, near, held, BARE._replace(clip=0)) > 2 * NETWORK_SENSITIVITY
    assert network_change(far, near, held, BARE) <= NETWORK_SENSITIVITY * SLACK


@settings(max_examples=200, deadline=None)
@given(arrays((4,)), arrays((2,)), st.booleans(), st.sampled_from(BOUNDS))
def test_the_factor_of_a_network_is_clipped(entries, law, learned, bound):
    held = network_engine.first_arrays(ARCHITECTURE, NETWORK, 20, stream(1, "any"))
    held.factor_shift[:2], held.factor_precision[:2] = entries[:2], entries[2:]
    chosen = BARE._replace(clip_bound=bound, learned=learned)
    a, b, _ = clip_extreme(held, chosen, *law)
    after = np.array([*held.factor_shift[:2], *held.factor_precision[:2], a, b])
    before = np.append(entries, law)
    if not learned:  # a law that is fixed is no part of the vector
        np.testing.assert_array_equal(after[4:], law)
        before, after = before[:4], after[:4]
    assert is_clipped(before, after, bound)
