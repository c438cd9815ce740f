"""Calling a plain Python function with expressions in place of numbers."""

from __future__ import annotations

import builtins
import functools
import math
import operator
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dpmc.autodiff.expression import UNARY, Node
from dpmc.rows import tuples
from dpmc.types import DpmcError

# Modules whose functions are known by their names.
MODULES = {"math": math, "numpy": np}
# Functions of NumPy that have another name in `math`.
OTHER_NAMES = {"arctan": "atan", "absolute": "abs", "fabs": "abs"}


def _unary(name: str) -> Callable[[Any], Any]:
    def function(value: Any) -> Any:
        if isinstance(value, Node):
            return value.tape.operation(name, value)
        if name in ("neg", "abs"):
            return -value if name == "neg" else abs(value)
        return getattr(math, name)(value)

    function.__name__ = name
    return function


OPERATIONS: dict[str, Callable[..., Any]] = {
    name: _unary(name) for name in UNARY if name not in ("neg", "digamma")
}


def _two(name: str, values: tuple[Any, ...]) -> Any:
    given: Iterable[Any] = values[0] if len(values) == 1 else values
    return functools.reduce(lambda a, b: _choice(name, a, b), given)


def _choice(name: str, a: Any, b: Any) -> Any:
    for one in (a, b):
        if isinstance(one, Node):
            return one.tape.operation(name, a, b)
    return min(a, b) if name == "min" else max(a, b)


def least(*values: Any) -> Any:
    """Least of several values, or of those in a sequence."""
    return _two("min", values)


def largest(*values: Any) -> Any:
    """Largest of several values, or of those in a sequence."""
    return _two("max", values)


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return `a` where a condition holds and `b` elsewhere: `if` for row functions.

    Both are computed whatever the condition is.

    Examples
    --------
    >>> where(2.0 < 3.0, "less", "more")
    'less'
    """
    if isinstance(condition, Node):
        return condition.tape.operation("where", condition, a, b)
    return a if condition else b


def power(a: Any, b: Any) -> Any:
    """Return ``a**b``."""
    return a**b


def _product(values: Iterable[Any]) -> Any:
    return functools.reduce(operator.mul, values, 1.0)


def dot(a: Any, b: Any) -> Any:
    """Inner product of two tuples, over the length of the shorter."""
    return sum(p * q for p, q in zip(a, b, strict=False))


_NAMED: dict[str, Callable[..., Any]] = {
    **OPERATIONS,
    **{name: OPERATIONS[other] for name, other in OTHER_NAMES.items()},
    "minimum": least,
    "maximum": largest,
    "min": least,
    "max": largest,
    "pow": power,
    "power": power,
    "where": where,
    "fsum": sum,
    "prod": _product,
}
# Functions that have a form for expressions, by what they are.
_KNOWN: list[tuple[Any, Callable[..., Any]]] = [
    (getattr(module, name), function)
    for module in MODULES.values()
    for name, function in _NAMED.items()
    if hasattr(module, name)
]
_KNOWN += [(builtins.min, least), (builtins.max, largest), (builtins.abs, OPERATIONS["abs"])]
_KNOWN += [(builtins.pow, power), (tuples.dot, dot), (where, where)]


class _Module:
    """A module whose functions take expressions."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _symbolic(getattr(self._module, name), {})


def _symbolic(value: Any, done: dict[int, Any]) -> Any:
    """Stand-in for a value in a function that is traced."""
    for known, function in _KNOWN:
        if value is known:
            return function
    if isinstance(value, types.ModuleType):
        return _Module(value) if value.__name__ in (*MODULES, "dpmc") else value
    python = getattr(value, "py_func", value)
    if isinstance(python, types.MethodType | functools.partial):
        return symbolic(python, done)
    if isinstance(python, types.FunctionType) and python.__module__ not in ("dpmc.rows.tuples",):
        return symbolic(python, done)
    return python


def symbolic(function: Callable[..., Any], done: dict[int, Any] | None = None) -> Any:
    """Function, and the functions that it calls by name, with forms for expressions.

    A method, an object that is called and a partial function come down to the function within.
    """
    done = {} if done is None else done
    python = getattr(function, "py_func", function)
    if isinstance(python, functools.partial):
        return functools.partial(symbolic(python.func, done), *python.args, **python.keywords)
    if isinstance(python, types.MethodType):
        return functools.partial(symbolic(python.__func__, done), python.__self__)
    if not isinstance(python, types.FunctionType):
        call = type(python).__call__
        if isinstance(call, types.FunctionType):
            return functools.partial(symbolic(call, done), python)
        return function
    if id(python) in done:
        return done[id(python)]
    space = {"__builtins__": builtins, "__name__": python.__module__}
    copy = types.FunctionType(
        python.__code__, space, python.__name__, python.__defaults__, None or python.__closure__
    )
    copy.__kwdefaults__ = python.__kwdefaults__
    done[id(python)] = copy
    for name in _names(python.__code__):
        if name in python.__globals__:
            space[name] = _symbolic(python.__globals__[name], done)
        elif hasattr(builtins, name):
            space[name] = _symbolic(getattr(builtins, name), done)
    if python.__closure__:
        cells = [_cell(cell, done) for cell in python.__closure__]
        again = types.FunctionType(
            python.__code__, space, python.__name__, python.__defaults__, tuple(cells)
        )
        again.__kwdefaults__ = python.__kwdefaults__
        done[id(python)] = again
        return again
    return copy


def _cell(cell: types.CellType, done: dict[int, Any]) -> types.CellType:
    try:
        return types.CellType(_symbolic(cell.cell_contents, done))
    except ValueError:  # not filled yet
        return cell


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def traced(name: str, function: Callable[..., Any], *arguments: Any) -> Node:
    """Value of a function of expressions."""
    try:
        value = symbolic(function)(*arguments)
    except DpmcError as error:
        raise DpmcError(f"model {name!r}: {error}") from None
    except Exception as error:  # of the function, whatever it is
        called = getattr(function, "__name__", "the function")
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise DpmcError(
            f"model {name!r}: `{called}` must be a function of the parameters and of one row, got "
            f"{reason}"
        ) from None
    if not isinstance(value, Node):
        kind = type(value).__name__
        raise DpmcError(
            f"model {name!r}: the log-likelihood must be one number that depends on the "
            f"parameters, got {kind}"
        )
    return value
