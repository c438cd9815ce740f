"""Random bits that cannot be predicted: what noise is drawn from where nobody gives a generator."""

from __future__ import annotations

import os

import numpy as np


def cryptographic() -> np.random.Generator:
    """New generator of random bits that cannot be predicted from earlier ones.

    Returns
    -------
    numpy.random.Generator
        ChaCha with 20 rounds [Bernstein 2008], its key 256 bits of the operating system.
        Its words have 64 bits, as those of PCG64.
    """
    from randomgen import ChaCha  # takes long: only where it is needed

    return np.random.Generator(ChaCha(key=int.from_bytes(os.urandom(32), "little"), rounds=20))
