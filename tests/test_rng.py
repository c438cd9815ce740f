"""Streams: repeatable with a seed, cryptographic and separate without one."""

from dataclasses import replace

import numba
import numpy as np
import pytest

import dpmc
from dpmc import registry
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy import Ledger, discrete, single_releases
from dpmc.random_bits import cryptographic
from dpmc.rng import Streams, stream
from dpmc.types import LOW_BITS, Dataset
from tests.support.posteriors import gaussian_model

MODEL = gaussian_model()
ROWS = Dataset("rows", np.random.default_rng(0).normal(size=(300, 2)))
WITH_BATCHES = {
    "dp_barker": {"proposal_sd": 0.05, "batch_size": 50},
    "minibatch_penalty": {
        "proposal_sd": 0.02,
        "batch_size": 50,
        "ratio_noise_multiplier": 3.0,
        "ratio_clip_bound": 2.0,
    },
    "dp_sgld": {"step_size": 0.05, "batch_size": 20, "gradient_clip_bound": 1.0},
    "dp_sgnht": {"step_size": 0.05, "batch_size": 20, "gradient_clip_bound": 1.0, "friction": 0.1},
}


def test_with_a_seed_batches_come_from_the_stream_of_the_moves():
    streams = Streams.of(3, "key")
    assert streams.batches is streams.chain
    assert streams.noise is not streams.chain
    assert type(streams.chain.bit_generator).__name__ == "PCG64"
    expected = stream(3, "chain", "key").random(4)
    assert (streams.chain.random(4) == expected).all()


def test_without_a_seed_all_streams_are_cryptographic_and_different():
    streams = [Streams.of(None, "key") for _ in range(2)]
    generators = [g for one in streams for g in (one.chain, one.noise, one.batches)]
    assert {type(g.bit_generator).__name__ for g in generators} == {"ChaCha"}
    first = {g.bit_generator.random_raw() for g in generators}
    assert len(first) == len(generators)


def test_releases_without_a_generator_draw_cryptographic_noise():
    assert type(single_releases.generator(None).bit_generator).__name__ == "ChaCha"
    given = np.random.default_rng(1)
    assert single_releases.generator(given) is given


def test_the_cipher_is_chacha_with_twenty_rounds():
    """The first block of the cipher under a key of zeros, which is published."""
    from randomgen import ChaCha

    block = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    words = np.frombuffer(bytes.fromhex(block), dtype="<u8")
    assert (ChaCha(key=0, rounds=20).random_raw(4) == words).all()
    assert (ChaCha(key=0, rounds=8).random_raw(4) != words).all()


def test_words_of_the_cipher_have_all_their_bits():
    """Each of 64 bits is set in half of 20,000 words: fails once in a million runs."""
    words = cryptographic().bit_generator.random_raw(20_000)
    set_bits = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1).sum(
        axis=0, dtype=np.int64
    )
    assert (np.abs(set_bits - 10_000) < 5.7 * np.sqrt(5000)).all()


@pytest.mark.parametrize("method", WITH_BATCHES)
def test_secret_batches_do_not_move_the_visible_stream(method):
    """Another stream of batches changes the draws, and what is drawn for moves stays."""
    module = registry.load("method", method)
    params = registry.parameters(module, WITH_BATCHES[method])
    runs = []
    for batches in (1, 2, None):
        chain = stream(5, "chain")
        own = chain if batches is None else stream(batches, "batches")
        streams = Streams(chain, stream(5, "noise"), own)
        sampler = module.sampler(Posterior(MODEL, ROWS), params)
        run = sampler(np.zeros((1, 2)), 40, [streams], Ledger())
        runs.append((run.draws, chain.bit_generator.state["state"], own))
    assert runs[0][1] == runs[1][1]
    assert not np.array_equal(runs[0][0], runs[1][0])
    # The check sees a run whose batches come from the visible stream.
    assert runs[2][1] != runs[0][1]
    fresh = stream(1, "batches").bit_generator.state
    assert runs[0][2].bit_generator.state != fresh


@pytest.mark.parametrize("method", WITH_BATCHES)
def test_a_fit_with_discrete_noise_has_the_same_guarantee(method):
    terms = {"epsilon": 4.0, "delta": 1e-4, "num_chains": 1, "max_iterations": 30}
    terms |= {"progress": False, "seed": None} | WITH_BATCHES[method]
    discretely = dpmc.fit(MODEL, ROWS, method=method, noise="discrete", **terms)
    usual = dpmc.fit(MODEL, ROWS, method=method, noise="continuous", **terms)
    assert replace(usual.guarantee, outside=(), noise="discrete") == discretely.guarantee
    assert usual.guarantee.outside == (LOW_BITS,)
    assert discretely.ledger == usual.ledger
    assert discretely.guarantee.noise == "discrete"
    assert usual.guarantee.noise == "continuous"
    assert not np.array_equal(discretely.draws, usual.draws)


@numba.njit
def update(state, prior, drift, step):
    """Move to what was released."""
    state[:] = drift


def drifts(ledger):
    """Return what a loop over batches has released, shape (iterations, d), and its grid."""
    from dpmc.mcmc import stochastic_gradient
    from dpmc.rows.batches import Batches

    batches = Batches(ROWS.num_rows, 20, 1.0, 0.05, 4.0, 100)

    sampler = stochastic_gradient.sampler(
        Posterior(MODEL, ROWS), batches, lambda theta, rng: theta.copy(), update
    )
    run = sampler(np.zeros((1, 2)), 100, [Streams.of(6, "drifts")], ledger)
    return run.draws[:, 0], discrete.grid_of(batches.sensitivity * batches.noise_multiplier)


def test_sums_of_batches_are_released_on_the_grid():
    released, grid = drifts(Ledger(noise="discrete"))
    assert (released / grid == np.rint(released / grid)).all()
    assert np.ptp(released) > 0
    released, grid = drifts(Ledger())
    assert (released / grid != np.rint(released / grid)).mean() > 0.9


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.3, 0.25),
        (-0.3, -0.25),
        (np.inf, 2.0**50),
        (-1e300, -(2.0**50)),
        (np.nan, 0.0),
        (1e-300, 0.0),
    ],
)
def test_sums_are_rounded_and_clamped(value, expected):
    from dpmc.privacy.grids import on_steps

    assert on_steps(value, 0.25) == expected
