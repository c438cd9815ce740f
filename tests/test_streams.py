"""Streams: every part of a key counts, and noise shares no numbers with moves."""

from __future__ import annotations

import numpy as np
import pytest

from dpmc.rng import Streams, stream

KEYS = [
    (1, "data", "banana", 0),
    (2, "data", "banana", 0),
    (1, "init", "banana", 0),
    (1, "data", "circle", 0),
    (1, "data", "banana", 1),
    (1, "data", "banana"),
    (1, "data", "banana", 0, 0),
    (1, "data", "banana", "0"),
]


def words(generator: np.random.Generator, count: int = 1000) -> set[int]:
    """Return the next words of 64 bits, of which two streams have none in common.

    Two independent streams share one of a thousand with probability 1e6 / 2**64.
    """
    return set(generator.integers(0, 2**64, count, dtype=np.uint64).tolist())


def test_every_part_of_a_key_counts():
    drawn = [words(stream(*key)) for key in KEYS]
    assert len(set.union(*drawn)) == 1000 * len(KEYS)


@pytest.mark.parametrize("key", KEYS)
def test_the_same_key_gives_the_same_numbers(key):
    assert words(stream(*key)) == words(stream(*key))


@pytest.mark.parametrize("seed", [5, None])
def test_noise_has_a_stream_of_its_own(seed):
    streams = Streams.of(seed, "dp_penalty", 0)
    assert words(streams.chain).isdisjoint(words(streams.noise))
    # One key for both, the fault that this is about.
    assert not words(stream(5, "chain", 0)).isdisjoint(words(stream(5, "chain", 0)))


def test_streams_of_different_chains_differ():
    one, other = Streams.of(5, "dp_penalty", 0), Streams.of(5, "dp_penalty", 1)
    drawn = [words(g) for g in (one.chain, one.noise, other.chain, other.noise)]
    assert len(set.union(*drawn)) == 4000


def test_without_a_seed_streams_differ():
    assert words(stream(None, "noise", 1)).isdisjoint(words(stream(None, "noise", 1)))
    assert words(Streams.of(None, 1).noise).isdisjoint(words(Streams.of(None, 1).noise))
