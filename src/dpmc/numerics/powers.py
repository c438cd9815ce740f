"""Compiled powers: of a number or, entry by entry, of an array."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dpmc.numerics.compiled import kept


@kept
def identity(x: Any) -> Any:
    """X."""
    return x


@kept
def square(x: Any) -> Any:
    """X^2."""
    return x * x


@kept
def cube(x: Any) -> Any:
    """X^3."""
    return x * x * x


@kept
def magnitude(x: Any) -> Any:
    """Return |x|."""
    return np.abs(x)


@kept
def root(x: Any) -> Any:
    """Return |x|^(1/2)."""
    return np.sqrt(np.abs(x))


_KNOWN = {
    (1.0, False): identity,
    (2.0, False): square,
    (3.0, False): cube,
    (1.0, True): magnitude,
    (2.0, True): square,
    (0.5, True): root,
}


@functools.cache
def power(exponent: float, absolute: bool) -> Any:
    """Compiled function ``(x) -> |x|^exponent`` or, if not absolute, ``x^exponent``.

    Parameters
    ----------
    exponent : float
        > 0; an integer if not absolute.
    absolute : bool
    """
    if (exponent, absolute) in _KNOWN:
        return _KNOWN[exponent, absolute]
    if absolute:

        def raised(x: Any) -> Any:
            return np.abs(x) ** exponent

        return kept(raised)
    whole = int(exponent)

    def multiplied(x: Any) -> Any:
        return x**whole

    return kept(multiplied)
