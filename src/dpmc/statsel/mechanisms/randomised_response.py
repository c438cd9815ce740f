"""Randomised response: a bit kept with probability e^epsilon / (1 + e^epsilon), else flipped.

[alparslan2023thesis, example 6]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmc.numerics.compiled import kept
from dpmc.statsel import noise
from dpmc.statsel.types import Mechanism
from dpmc.types import DpmcError, NoParams

Params = NoParams


def keep_probability(sensitivity: float, n: int, epsilon: float) -> float:
    """Return the probability of keeping a bit; 1 at epsilon = inf.

    Raises
    ------
    DpmcError
        If the records are not bits, of sensitivity 1.
    """
    if sensitivity != 1:
        raise DpmcError(
            f"`sensitivity` must be 1 (bits) for randomised_response, got {sensitivity}"
        )
    return 1.0 / (1.0 + math.exp(-epsilon))


@kept
def log_density(v: Any, scale: Any) -> Any:
    """Return the log-probability that a bit was kept (v = 0), or flipped; scalars alone."""
    return np.log(scale) if v == 0.0 else np.log1p(-scale)


def build(params: Params) -> Mechanism:
    """Return the mechanism."""
    return Mechanism(
        "randomised_response",
        "bits",
        per_record=True,
        needs_delta=False,
        scale=keep_probability,
        guarantee=noise.pure_guarantee("randomised response"),
        log_density=log_density,
    )
