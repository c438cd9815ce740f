"""Tuple helpers for the row functions of models; compiled, they are unrolled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import overload

from dpmc.numerics.jit import PartCompiler

OWN: Any = {"pipeline_class": PartCompiler}


def dot(a: Any, b: Any) -> float:
    """Return the inner product of two tuples, over the length of the shorter.

    Examples
    --------
    >>> dot((1.0, 2.0), (3.0, 4.0))
    11.0
    """
    return float(sum(p * q for p, q in zip(a, b, strict=False)))


def scale(s: float, x: Any) -> Any:
    """Return the tuple ``s * x``.

    Examples
    --------
    >>> scale(2.0, (1.0, 3.0))
    (2.0, 6.0)
    """
    return tuple(s * entry for entry in x)


def subtract(x: Any, c: Any) -> Any:
    """Return the tuple ``x - c``, over the length of the shorter.

    Examples
    --------
    >>> subtract((3.0, 5.0), (1.0, 2.0))
    (2.0, 3.0)
    """
    return tuple(p - q for p, q in zip(x, c, strict=False))


def tail(c: Any, x: Any) -> Any:
    """Return the entries of the tuple `c` after its first ``len(x)``."""
    return tuple(c[len(x) :])


def _unrolled(entry: str, join: str, count: int) -> Callable[..., Any]:
    text = join.join(entry.format(k=k) for k in range(count))
    namespace: dict[str, Any] = {}
    exec(f"def unrolled(a, b):\n    return ({text})", namespace)  # the text is ours alone
    result: Callable[..., Any] = namespace["unrolled"]
    return result


# The compiled forms of the four: unrolled for the length of the tuples, because a
# loop over a tuple of more than about ten entries is not unrolled by the compiler
# and then costs a hundred times more.
@overload(dot, strict=False, jit_options=OWN)
def _dot(a: Any, b: Any) -> Callable[..., Any]:
    return _unrolled("a[{k}] * b[{k}]", " + ", min(len(a), len(b)))


@overload(scale, strict=False, jit_options=OWN)
def _scale(a: Any, b: Any) -> Callable[..., Any]:
    return _unrolled("a * b[{k}],", " ", len(b))


@overload(subtract, strict=False, jit_options=OWN)
def _subtract(a: Any, b: Any) -> Callable[..., Any]:
    return _unrolled("a[{k}] - b[{k}],", " ", min(len(a), len(b)))


@overload(tail, strict=False, jit_options=OWN)
def _tail(a: Any, b: Any) -> Callable[..., Any]:
    text = "".join(f"a[{k}]," for k in range(len(b), len(a)))
    return _unrolled(text, "", 1)
