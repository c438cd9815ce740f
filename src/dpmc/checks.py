"""Checks of single parameters, each refusing a value in one line."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpmc.types import Array, DpmcError, InvalidRows, as_numbers, is_integer, is_real

# Rules of start points, and what the problem gives with each.
START_RULES: Mapping[str, tuple[str, ...]] = {
    "around": ("centre", "scale"),
    "around_truth": ("scale",),
    "at": ("centre",),
    "at_truth": (),
}


def positive(name: str, value: float | None, optional: bool = False) -> None:
    """Refuse a number that is not finite and > 0; ``None`` passes where it is optional."""
    if value is None and optional:
        return
    if value is None or not is_real(value) or not (math.isfinite(value) and value > 0):
        raise DpmcError(f"`{name}` must be positive and finite, got {value!r}")


def at_least(name: str, value: int, least: int) -> None:
    """Refuse anything but an integer of at least `least`."""
    if not is_integer(value) or value < least:
        raise DpmcError(f"`{name}` must be an integer of at least {least}, got {value!r}")


def room(name: str, shape: tuple[int, ...], cure: str = "") -> None:
    """Refuse a number that sizes an array of floats which memory has no room for.

    Before rows are used: afterwards the budget would be spent on an array that there is none of.
    """
    try:
        np.empty(shape)
    except (MemoryError, ValueError, OverflowError):
        pass
    else:
        return
    raise DpmcError(f"`{name}` must be fewer: memory has no room for them{cure}")


def flag(name: str, value: object) -> None:
    """Refuse anything but true and false."""
    if not isinstance(value, bool | np.bool_):
        raise DpmcError(f"`{name}` must be True or False, got {value!r}")


def seed(value: Any) -> int | None:
    """Seed, refusing what is neither an integer nor None."""
    if value is None:
        return None
    if not is_integer(value):
        raise DpmcError(f"`seed` must be an integer or None, got {value!r}")
    return int(value)


def one_of(name: str, value: object, allowed: Sequence[object]) -> None:
    """Refuse a value that is not among `allowed`."""
    try:
        known = value in set(allowed)
    except TypeError:  # of lists and arrays, which have no hash
        known = False
    if not known:
        choice = "one of " if len(allowed) > 2 else ""
        values = (", " if choice else " or ").join(map(repr, allowed))
        raise DpmcError(f"`{name}` must be {choice}{values}, got {value!r}")


def positive_scales(name: str, value: float | Sequence[float]) -> None:
    """Refuse a number or sequence of numbers that are not all finite and > 0."""
    entries = np.atleast_1d(real_numbers(value))
    if entries.ndim != 1 or not (np.isfinite(entries).all() and (entries > 0).all()):
        raise DpmcError(f"`{name}` must be a positive number or a list of them, got {value!r}")


def real_array(name: str, values: Any, invalid_rows: InvalidRows = "refuse") -> Array:
    """Array of 64-bit floats of values that are real numbers or flags already.

    With ``invalid_rows="zero"`` an entry that is none is NaN.
    """
    one_of("invalid_rows", invalid_rows, ("refuse", "zero"))
    array = as_numbers(f"`{name}`", values, invalid_rows)
    with np.errstate(over="ignore", invalid="ignore"):  # longer floats become infinite
        return array.astype(np.float64, copy=False)


def generator(rng: object) -> None:
    """Refuse what is neither a generator of NumPy nor None."""
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise DpmcError(f"`rng` must be a numpy.random.Generator or None, got {rng!r}")


def instance(name: str, value: object, kind: type, wanted: str) -> None:
    """Refuse a value of another type, shown if it is a text."""
    if not isinstance(value, kind):
        got = repr(value) if isinstance(value, str) else type(value).__name__
        raise DpmcError(f"`{name}` must be {wanted}, got {got}")


def real_numbers(value: Any) -> Array:
    """Array of what is real numbers already; of anything else, text too, a single NaN.

    Flags, complex numbers and masked arrays are no real numbers: what they would be turned into
    is not what was meant.
    """
    try:
        array = np.asarray(value)
    except ValueError:  # of rows of several lengths
        array = np.asarray(None)
    if np.ma.isMaskedArray(value) or array.dtype.kind not in "iuf":
        return np.full((1,) * array.ndim, np.nan)
    return array.astype(np.float64)


def scales(name: str, value: float | Sequence[float], dim: int) -> Array:
    """One scale for each dimension, shape (d,)."""
    entries = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if entries.size not in (1, dim):
        raise DpmcError(f"`{name}` must have 1 or {dim} entries, got {entries.size}")
    return np.broadcast_to(entries, (dim,)).copy()


def shaped(name: str, values: Array, shape: tuple[int, ...], text: str) -> Array:
    """Return `values` as an array, refusing another shape (-1 is any length) or NaN."""
    array = np.asarray(values, dtype=np.float64)
    fits = array.ndim == len(shape) and all(
        b in (-1, a) for a, b in zip(array.shape, shape, strict=True)
    )
    if not fits or array.size == 0:
        raise DpmcError(f"`{name}` must have shape {text}, got {array.shape}")
    if not np.isfinite(array).all():
        raise DpmcError(f"`{name}` must hold finite numbers only, got others")
    return array


def require_extra(package: str, user: str, extra: str) -> None:
    """Refuse to go on without a package that only an extra of dpmc is sure to bring.

    Parameters
    ----------
    package : str
    user : str
        What needs it, as the caller knows it.
    extra : str
    """
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise  # the package is there, and lacks one of its own
        raise DpmcError(f"{user} needs {package}: pip install 'dpmc[{extra}]'") from None
