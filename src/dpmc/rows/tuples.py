"""Tuple helpers for the row functions of models; compiled, they are unrolled."""

from __future__ import annotations

from typing import Any

from numba.extending import overload

from dpmc.numerics.compiled import OPTIONS


def dot(a: Any, b: Any) -> float:
    """Inner product of two tuples, over the length of the shorter.

    Examples
    --------
    >>> dot((1.0, 2.0), (3.0, 4.0))
    11.0
    """
    return float(sum(p * q for p, q in zip(a, b, strict=False)))


def scale(s: float, x: Any) -> Any:
    """Tuple ``s * x``.

    Examples
    --------
    >>> scale(2.0, (1.0, 3.0))
    (2.0, 6.0)
    """
    return tuple(s * entry for entry in x)


def subtract(x: Any, c: Any) -> Any:
    """Tuple ``x - c``, over the length of the shorter.

    Examples
    --------
    >>> subtract((3.0, 5.0), (1.0, 2.0))
    (2.0, 3.0)
    """
    return tuple(p - q for p, q in zip(x, c, strict=False))


def tail(c: Any, x: Any) -> Any:
    """Entries of the tuple `c` after its first ``len(x)``."""
    return tuple(c[len(x) :])


def _unrolled(name: str, entry: str, join: str, a: Any, b: Any, numbers: range) -> Any:
    text = join.join(entry.format(k=k) for k in numbers)
    namespace: dict[str, Any] = {"__name__": __name__}
    # A name for each pair of lengths: see :mod:`dpmc.numerics.compiled`.
    name = f"{name}_{'x'.join(str(len(c)) for c in (a, b) if hasattr(c, '__len__'))}"
    exec(f"def {name}(a, b):\n    return ({text})", namespace)  # the text is ours alone
    return namespace[name]


# The compiled forms of the four: unrolled for the length of the tuples, because a
# loop over a tuple of more than about ten entries is not unrolled by the compiler
# and then costs a hundred times more.
@overload(dot, strict=False, jit_options=OPTIONS)
def _dot(a: Any, b: Any) -> Any:
    return _unrolled("dot", "a[{k}] * b[{k}]", " + ", a, b, range(min(len(a), len(b))))


@overload(scale, strict=False, jit_options=OPTIONS)
def _scale(a: Any, b: Any) -> Any:
    return _unrolled("scale", "a * b[{k}],", " ", a, b, range(len(b)))


@overload(subtract, strict=False, jit_options=OPTIONS)
def _subtract(a: Any, b: Any) -> Any:
    return _unrolled("subtract", "a[{k}] - b[{k}],", " ", a, b, range(min(len(a), len(b))))


@overload(tail, strict=False, jit_options=OPTIONS)
def _tail(a: Any, b: Any) -> Any:
    return _unrolled("tail", "a[{k}],", " ", a, b, range(len(b), len(a)))
