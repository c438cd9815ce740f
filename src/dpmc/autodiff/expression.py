"""Expressions that remember how they were computed, and their derivatives.

A function called with expressions in place of numbers leaves a tape: every operation once, in an
order in which it can be computed. Derivatives are found backwards along it, as more operations of
the same tape, so that what a function and its gradient share is computed once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dpmc.types import DpmcError

INPUT, CONSTANT = "input", "constant"
COMPARISONS = ("<", "<=", ">", ">=", "==")
UNARY = (
    "neg", "abs", "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh",
    "tanh", "atan", "erf", "erfc", "lgamma", "digamma",
)  # fmt: skip


class Tape:
    """Operations in the order in which they were made, each of them once."""

    def __init__(self) -> None:
        self.operations: list[tuple[str, tuple[Any, ...]]] = []
        self._known: dict[tuple[str, tuple[Any, ...]], Node] = {}

    def node(self, name: str, *arguments: Any) -> Node:
        """Node of an operation on indices, or of an input or constant."""
        # 0.0 and -0.0 are equal and not the same.
        key = (name, tuple(map(repr, arguments)) if name == CONSTANT else arguments)
        if key not in self._known:
            self._known[key] = Node(self, len(self.operations))
            self.operations.append((name, arguments))
        return self._known[key]

    def input(self, kind: str, number: int) -> Node:
        """Node of an input, such as ``("theta", 0)``."""
        return self.node(INPUT, kind, number)

    def constant(self, value: float) -> Node:
        """Node of a number."""
        return self.node(CONSTANT, float(value))

    def of(self, value: Any) -> Node:
        """Node of this tape, of a number too."""
        if isinstance(value, Node):
            return value
        try:
            return self.constant(float(value))
        except (TypeError, ValueError):
            kind = type(value).__name__
            raise DpmcError(f"a log-likelihood must be computed from numbers, got {kind}") from None

    def operation(self, name: str, *values: Any) -> Node:
        """Node of an operation, simplified where that changes nothing."""
        nodes = [self.of(value) for value in values]
        numbers = [node.number for node in nodes]
        simple = _simplified(name, nodes, numbers)
        if simple is not None:
            return simple
        return self.node(name, *(node.index for node in nodes))


class Node:
    """A number that is not known yet."""

    __slots__ = ("index", "tape")
    __array_ufunc__ = None  # NumPy's numbers leave operations to this class

    def __init__(self, tape: Tape, index: int) -> None:
        self.tape = tape
        self.index = index

    @property
    def number(self) -> float | None:
        """The number of a constant; None of anything else."""
        name, arguments = self.tape.operations[self.index]
        return arguments[0] if name == CONSTANT else None

    def _made(self, name: str, *values: Any) -> Node:
        return self.tape.operation(name, *values)

    def __add__(self, other: Any) -> Node:
        return self._made("+", self, other)

    def __radd__(self, other: Any) -> Node:
        return self._made("+", other, self)

    def __sub__(self, other: Any) -> Node:
        return self._made("-", self, other)

    def __rsub__(self, other: Any) -> Node:
        return self._made("-", other, self)

    def __mul__(self, other: Any) -> Node:
        return self._made("*", self, other)

    def __rmul__(self, other: Any) -> Node:
        return self._made("*", other, self)

    def __truediv__(self, other: Any) -> Node:
        return self._made("/", self, other)

    def __rtruediv__(self, other: Any) -> Node:
        return self._made("/", other, self)

    def __pow__(self, other: Any) -> Node:
        return self._made("**", self, other)

    def __rpow__(self, other: Any) -> Node:
        return self._made("**", other, self)

    def __neg__(self) -> Node:
        return self._made("neg", self)

    def __pos__(self) -> Node:
        return self

    def __abs__(self) -> Node:
        return self._made("abs", self)

    def __lt__(self, other: Any) -> Node:
        return self._made("<", self, other)

    def __le__(self, other: Any) -> Node:
        return self._made("<=", self, other)

    def __gt__(self, other: Any) -> Node:
        return self._made(">", self, other)

    def __ge__(self, other: Any) -> Node:
        return self._made(">=", self, other)

    def __eq__(self, other: Any) -> Any:
        return self._made("==", self, other)

    def __hash__(self) -> int:
        return hash((id(self.tape), self.index))

    def __bool__(self) -> bool:
        raise DpmcError(
            "a function that is differentiated must not branch on a row or parameter: "
            "dpmc.where(condition, a, b), min and max say the same without `if`"
        )

    def __float__(self) -> float:
        raise DpmcError(
            "a function that is differentiated must use functions of `math`, or of NumPy by the "
            f"same names, of these: {', '.join(sorted(set(UNARY) - {'neg', 'digamma'}))}; also in "
            "functions that it calls (by a plain name, not as `self.f`), got one that needs a "
            "number"
        )


def _simplified(name: str, nodes: Sequence[Node], numbers: Sequence[float | None]) -> Node | None:
    """Value of an operation without making it, None where it must be made."""
    tape = nodes[0].tape
    if all(number is not None for number in numbers):
        value = _computed(name, numbers)
        return None if value is None else tape.constant(value)
    first = nodes[0]
    if name == "where":
        return nodes[1] if nodes[1].index == nodes[2].index else None
    if len(nodes) == 1:
        return None
    second, (a, b) = nodes[1], numbers
    if name == "+" and a == 0:
        return second
    if name in ("+", "-") and b == 0:
        return first
    if name == "-" and a == 0:
        return -second
    if name == "*":
        return _product(first, second, a, b)
    if name in ("/", "**") and b == 1:
        return first
    if name == "/":
        return first if a == 0 else _inside(name, first, second)
    if name == "**" and b == 0:
        return tape.constant(1.0)
    return None


def _product(first: Node, second: Node, a: float | None, b: float | None) -> Node | None:
    if a == 0 or b == 0:
        return first.tape.constant(0.0)
    if a == 1:
        return second
    if b == 1:
        return first
    if a == -1:
        return -second
    if b == -1:
        return -first
    inside = _inside("*", first, second)
    return _inside("*", second, first) if inside is None else inside


def _inside(operation: str, chosen: Node, other: Node) -> Node | None:
    """Multiply or divide what is chosen: what is not may be infinite, and 0 times it is NaN."""
    name, arguments = chosen.tape.operations[chosen.index]
    if name != "where":
        return None
    condition, yes, no = (Node(chosen.tape, index) for index in arguments)
    if yes.number != 0 and no.number != 0:
        return None
    make = chosen.tape.operation
    return make("where", condition, make(operation, yes, other), make(operation, no, other))


def _is_choice(node: Node) -> bool:
    """Test of a node: zero where something else is chosen."""
    name, arguments = node.tape.operations[node.index]
    return name == "where" and any(Node(node.tape, one).number == 0 for one in arguments[1:])


_OF_NUMBERS: dict[str, Callable[..., float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "neg": operator.neg,
    "abs": abs,
    "min": min,
    "max": max,
}


def _computed(name: str, numbers: Sequence[Any]) -> float | None:
    """Value of an operation on numbers, None where that is for the compiled code."""
    if name in COMPARISONS or name in ("where", "digamma"):
        return None
    try:
        return float((_OF_NUMBERS.get(name) or getattr(math, name))(*numbers))
    except (ArithmeticError, ValueError, TypeError):
        return None


def gradient(value: Node, inputs: Iterable[Node]) -> list[Node]:
    """Derivative of a value by each of the inputs."""
    tape = value.tape
    slopes: dict[int, Node] = {value.index: tape.constant(1.0)}
    # Slopes that may be zero by a choice: what is not chosen may be infinite, and 0 times it NaN.
    doubtful: set[int] = set()
    for index in range(value.index, -1, -1):
        if index not in slopes:
            continue
        name, arguments = tape.operations[index]
        if name in (INPUT, CONSTANT):
            continue
        nodes = [Node(tape, argument) for argument in arguments]
        whole = slopes[index]
        chosen = whole.index in doubtful or _is_choice(whole)
        for node, part in _slopes(name, Node(tape, index), nodes, whole):
            slope = part
            if chosen and part.index != whole.index and not _is_choice(part):
                slope = tape.operation("where", whole == 0.0, 0.0, part)
            known = slopes.get(node.index)
            slopes[node.index] = slope if known is None else known + slope
            if chosen or _is_choice(slope) or (known is not None and known.index in doubtful):
                doubtful.add(slopes[node.index].index)
    zero = tape.constant(0.0)
    return [slopes.get(one.index, zero) for one in inputs]


def _slopes(
    name: str, value: Node, nodes: Sequence[Node], slope: Node
) -> Iterable[tuple[Node, Node]]:
    """Slope by each argument of an operation, from that of its value."""
    make = value.tape.operation
    if name in COMPARISONS:
        return
    if len(nodes) == 1:
        yield nodes[0], _unary_slope(name, value, nodes[0], slope)
        return
    if name == "where":
        condition, yes, no = nodes
        yield yes, make("where", condition, slope, 0.0)
        yield no, make("where", condition, 0.0, slope)
        return
    a, b = nodes
    if name in ("min", "max"):
        first = a <= b if name == "min" else a >= b
        yield a, make("where", first, slope, 0.0)
        yield b, make("where", first, 0.0, slope)
    elif name == "+":
        yield a, slope
        yield b, slope
    elif name == "-":
        yield a, slope
        yield b, -slope
    elif name == "*":
        yield a, slope * b
        yield b, slope * a
    elif name == "/":
        yield a, slope / b
        yield b, -(slope * value / b)
    else:
        if b.number is None:
            bent = slope * value * make("log", a)
            yield b, bent if a.number else make("where", a == 0.0, 0.0, bent)
        yield a, slope * b * a ** (b - 1.0)


def _unary_slope(name: str, value: Node, a: Node, slope: Node) -> Node:
    make = value.tape.operation
    if name == "neg":
        return -slope
    if name == "abs":
        return make("where", a >= 0.0, slope, -slope)
    if name in ("log", "log1p"):
        return slope / (a if name == "log" else 1.0 + a)
    if name == "sqrt":
        return slope / (2.0 * value)
    if name == "tan":
        return slope * (1.0 + value * value)
    if name == "tanh":
        return slope * (1.0 - value * value)
    if name == "atan":
        return slope / (1.0 + a * a)
    if name in ("erf", "erfc"):
        bell = 2.0 / math.sqrt(math.pi) * make("exp", -(a * a))
        return slope * bell if name == "erf" else -(slope * bell)
    if name == "digamma":
        raise DpmcError("the derivative of digamma must not be needed, and is")
    simple = {
        "exp": lambda: value,
        "expm1": lambda: value + 1.0,
        "sin": lambda: make("cos", a),
        "cos": lambda: -make("sin", a),
        "sinh": lambda: make("cosh", a),
        "cosh": lambda: make("sinh", a),
        "lgamma": lambda: make("digamma", a),
    }
    return slope * simple[name]()
