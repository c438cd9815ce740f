"""Text of functions that compute expressions, line by line, and their values for arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

from dpmc.autodiff.expression import COMPARISONS, CONSTANT, INPUT, Node, Tape
from dpmc.numerics import vector_math
from dpmc.numerics.vector_math import digamma
from dpmc.types import Array

BINARY = ("+", "-", "*", "/", "**", *COMPARISONS)
# Functions whose compiled form is ours.
OWN: Mapping[str, Any] = {
    "digamma": digamma, "exp": vector_math.exp, "log": vector_math.log, "log1p": vector_math.log1p,
}  # fmt: skip
# Powers that are written as products.
SMALL = {2.0: "{a} * {a}", 3.0: "{a} * {a} * {a}", -1.0: "1.0 / {a}", 0.5: "math.sqrt({a})"}


def needed(nodes: Iterable[Node], given: Iterable[int] = ()) -> list[int]:
    """Indices of all operations that nodes rest on, up to those given, in order."""
    nodes = list(nodes)
    known, found = set(given), set[int]()
    waiting = [node.index for node in nodes]
    while waiting:
        index = waiting.pop()
        if index in found or index in known:
            continue
        found.add(index)
        name, arguments = nodes[0].tape.operations[index]
        if name not in (INPUT, CONSTANT):
            waiting += arguments
    return sorted(found)


def lines(
    nodes: Sequence[Node], inputs: Mapping[str, str], given: Mapping[int, str]
) -> tuple[list[str], list[str]]:
    """Lines that compute nodes, and what the nodes are called after them.

    Parameters
    ----------
    nodes : sequence of Node
    inputs : mapping of str to str
        The text of the inputs of each kind, with their number as ``{k}``.
    given : mapping of int to str
        Text of what is computed elsewhere, by its index.
    """
    if not nodes:
        return [], []
    tape = nodes[0].tape
    names = dict(given)
    text = []
    for index in needed(nodes, given):
        operation, arguments = tape.operations[index]
        if operation == INPUT:
            kind, number = arguments
            names[index] = inputs[kind].format(k=number)
        elif operation == CONSTANT:
            names[index] = _number(arguments[0])
        else:
            names[index] = f"t{index}"
            text.append(f"t{index} = {_formula(tape, operation, arguments, names)}")
    return text, [names[node.index] for node in nodes]


def _number(value: float) -> str:
    if math.isfinite(value):
        return f"({value!r})"
    return "math.nan" if math.isnan(value) else f"({'-' if value < 0 else ''}math.inf)"


def _formula(tape: Tape, operation: str, arguments: Sequence[int], names: Mapping[int, str]) -> str:
    texts = [names[argument] for argument in arguments]
    if operation == "**":
        exponent = Node(tape, arguments[1]).number
        if exponent in SMALL:
            return SMALL[exponent].format(a=texts[0])
    if operation in BINARY:
        return f"{texts[0]} {operation} {texts[1]}"
    if operation == "where":
        return f"{texts[1]} if {texts[0]} else {texts[2]}"
    if operation == "neg":
        return f"-{texts[0]}"
    if operation in ("abs", "min", "max", *OWN):
        return f"{operation}({', '.join(texts)})"
    return f"math.{operation}({', '.join(texts)})"


_UFUNCS: Mapping[str, Any] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "**": np.power,
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal,
    "neg": np.negative, "atan": np.arctan, "erf": special.erf, "erfc": special.erfc,
    "lgamma": special.gammaln, "digamma": special.digamma, "min": np.minimum, "max": np.maximum,
    "where": np.where,
}  # fmt: skip


def values(nodes: Sequence[Node], inputs: Mapping[str, Sequence[Any]]) -> list[Array]:
    """Values of nodes where inputs are arrays of equal shapes."""
    found: dict[int, Any] = {}
    tape = nodes[0].tape
    with np.errstate(all="ignore"):
        for index in needed(nodes):
            operation, arguments = tape.operations[index]
            if operation == INPUT:
                kind, number = arguments
                found[index] = inputs[kind][number]
            elif operation == CONSTANT:
                found[index] = arguments[0]
            else:
                function = _UFUNCS.get(operation) or getattr(np, operation)
                found[index] = function(*(found[argument] for argument in arguments))
    return [found[node.index] for node in nodes]
