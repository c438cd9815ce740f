"""Random streams keyed by what they are for, so that no two uses share one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import numpy as np

from dpmc.random_bits import cryptographic

Key = str | int | float | bool | None


def stream(seed: int | None, purpose: str, *key: Key) -> np.random.Generator:
    """Generator of one purpose and key.

    Parameters
    ----------
    seed : int or None
        Root of all streams. ``None`` is the only choice under which a released result is
        private, since whoever knows the seed can subtract the noise.
    purpose : str
        What the stream is for, such as ``"data"``, ``"init"``, ``"chain"`` or ``"noise"``.
    *key : str, int, float, bool or None
        The rest of the key. The whole of it is hashed.

    Returns
    -------
    numpy.random.Generator
        PCG64 seeded by the SHA-256 digest of the key; without a seed `cryptographic`.
    """
    if seed is None:
        return cryptographic()
    text = json.dumps([seed, purpose, *key], separators=(",", ":"), allow_nan=False)
    words = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype="<u4")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words.tolist())))


@dataclass(frozen=True)
class Streams:
    """The streams of one chain: its moves and its privacy noise are never mixed.

    Parameters
    ----------
    chain : numpy.random.Generator
        Proposals, uniforms and step-size jitter: what the draws may show.
    noise : numpy.random.Generator
        Privacy noise; only a ledger draws from it.
    batches : numpy.random.Generator
        Which rows a batch has: secret, since amplification by sampling rests on it. With a
        seed, where nothing is secret, `chain` itself.
    """

    chain: np.random.Generator
    noise: np.random.Generator
    batches: np.random.Generator

    @classmethod
    def of(cls, seed: int | None, *key: Key) -> Streams:
        """Streams of the chain that `key` names; without a seed they are three."""
        chain, noise = stream(seed, "chain", *key), stream(seed, "noise", *key)
        return cls(chain, noise, cryptographic() if seed is None else chain)
