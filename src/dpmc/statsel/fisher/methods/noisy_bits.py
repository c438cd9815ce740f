"""The mean of bits with Gaussian noise on each: F_2 of [alparslan2023thesis, example 6]."""

from __future__ import annotations

import numpy as np

from dpmc.statsel.fisher import information
from dpmc.statsel.fisher.information import InformationEstimate, ReleaseSetting
from dpmc.statsel.fisher.methods import _bits
from dpmc.statsel.fisher.methods._bits import Params


def evaluate(
    params: Params, release: ReleaseSetting, rng: np.random.Generator
) -> InformationEstimate:
    """Return the information; `rng` is not used."""
    return _bits.evaluate(information.noisy_bits, params, release)
