"""The clip: the last thing that happens to the contribution of a row, for every float.

A number that is not a number counts as zero, and an infinity as the bound, with its sign. A
vector with an entry that is not a number counts as zero; one whose Euclidean norm is beyond
the bound is shortened to it, infinite entries taken as equally large and all others as zero
beside them. Loops over rows (:mod:`dpmc.rows.kernels`) do the same to numbers in place, and call
:func:`clip_vector` for the rows whose squared norm is not finite.
"""

from __future__ import annotations

import math
from typing import Any

from dpmc.numerics.jit import njit
from dpmc.types import DpmcError

# Squares of bounds in between neither overflow nor vanish.
SMALLEST_BOUND, LARGEST_BOUND = 1e-100, 1e100


def check_bound(name: str, bound: float) -> None:
    """Refuse a clip bound whose square is not an ordinary floating-point number.

    Raises
    ------
    DpmcError
        If `bound` is neither in [1e-100, 1e100] nor infinite.
    """
    if not (SMALLEST_BOUND <= bound <= LARGEST_BOUND or bound == math.inf):
        raise DpmcError(
            f"`{name}` must be between {SMALLEST_BOUND:g} and {LARGEST_BOUND:g}, got {bound}"
        )


# Calls nothing outside of this file, so that it can be cached on disk. Numba compiles what a
# function with fast arithmetic calls with fast arithmetic too, unless it is told not to: the
# products here would be reordered and overflow.
@njit(nogil=True, error_model="numpy", fastmath=False, cache=True)
def clip_vector(values: Any, bound: float) -> bool:
    """Clip a vector in place to a Euclidean norm, whatever floats it holds.

    Parameters
    ----------
    values : ndarray of shape (d,)
    bound : float
        Finite and > 0.

    Returns
    -------
    bool
        Whether the vector changed.
    """
    largest = 0.0
    for k in range(values.size):
        if math.isnan(values[k]):
            values[:] = 0.0
            return True
        largest = max(largest, abs(values[k]))
    if largest == 0.0:
        return False
    # Relative to the largest entry the norm is between 1 and sqrt(d): no square overflows.
    square = 0.0
    for k in range(values.size):
        if largest == math.inf:
            part = math.copysign(1.0, values[k]) if math.isinf(values[k]) else 0.0
        else:
            part = values[k] / largest
        square += part * part
    norm = math.sqrt(square)
    if norm <= bound / largest:  # zero where the largest entry is infinite
        return False
    for k in range(values.size):
        if largest == math.inf:
            part = math.copysign(1.0, values[k]) if math.isinf(values[k]) else 0.0
        else:
            part = values[k] / largest
        values[k] = bound * (part / norm)
    return True
