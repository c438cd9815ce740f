"""Arrays and numbers: what counts as one, and what is refused."""

from __future__ import annotations

import math
import sys

import numpy as np
import numpy.typing as npt

from dpmc.types.errors import DpmcError

Array = npt.NDArray[np.float64]


def is_real(value: object) -> bool:
    """Whether a value is a real number of Python or NumPy; a flag is none.

    Nor is an integer beyond all floats: comparing it is fine, and computing with it is not.
    """
    if isinstance(value, int) and value.bit_length() > sys.float_info.max_exp:
        return False
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_integer(value: object) -> bool:
    """Whether a value is an integer of Python or NumPy; a flag is none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_epsilon_delta(epsilon: float, delta: float) -> None:
    """Refuse an epsilon that is not positive and finite, or a delta outside (0, 1)."""
    check_epsilon(epsilon)
    check_delta(delta)


def check_epsilon(epsilon: float, *, zero: bool = False, infinite: bool = False) -> None:
    """Refuse an epsilon that is not positive and finite.

    Parameters
    ----------
    epsilon : float
    zero : bool
        Whether 0 is allowed too, as it is where delta is asked for at an epsilon.
    infinite : bool
        Whether infinity is allowed too, as it is where it means no noise.
    """
    real = is_real(epsilon) and (epsilon > 0 or (zero and epsilon == 0))
    if not (real and (infinite or math.isfinite(epsilon))):
        sign = "at least 0" if zero else "positive"
        raise DpmcError(
            f"`epsilon` must be {sign}{'' if infinite else ' and finite'}, got {epsilon!r}"
        )


def check_delta(delta: float | None, needed_by: str = "") -> float:
    """Delta, refusing one outside (0, 1) or none at all.

    Parameters
    ----------
    delta : float or None
    needed_by : str
        Name of the mechanism that needs it.
    """
    if delta is None or not is_real(delta) or not 0 < delta < 1:
        needed = f" for {needed_by}" if needed_by else ""
        raise DpmcError(f"`delta` must be in (0, 1){needed}, got {delta!r}")
    return float(delta)
