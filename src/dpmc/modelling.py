"""A model from the log-likelihood of one row in plain Python: no gradients, no transforms."""

from __future__ import annotations

import keyword
import re
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.autodiff import source
from dpmc.autodiff.expression import INPUT, Node, Tape, gradient
from dpmc.autodiff.tracing import traced
from dpmc.numerics.compiled import compile_source
from dpmc.priors import Prior
from dpmc.types import Array, DpmcError, Model

THETA, ROW = "theta", "row"
# What generated code may name.
NAMES = {**source.OWN, "np": np}


@dataclass(frozen=True, eq=False, repr=False)
class ParametricModel(Model):
    """A model whose parameters have names and priors, sampled on an unbounded scale.

    Parameters
    ----------
    priors : tuple of (str, Prior)
        In the order of theta.
    num_columns : int, optional
        Columns of the rows that it reads.
    written : callable, optional
        The log-likelihood as its user wrote it.
    """

    priors: tuple[tuple[str, Prior], ...] = ()
    num_columns: int | None = None
    written: Callable[..., Any] | None = None

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        """Name and the parameters: functions say nothing to a reader."""
        given = ", ".join(f"{label} ({prior.support})" for label, prior in self.priors)
        return f"<model {self.name!r}: {given}>"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers that `bounded` returns."""
        return tuple(name for label, prior in self.priors for name in prior.names(label))

    def bounded(self, theta: Array) -> Array:
        """Parameters on their own scale.

        Parameters
        ----------
        theta : ndarray of shape (..., d)
            On the unbounded scale.

        Returns
        -------
        ndarray of shape (..., m)
            One number for each of `names`.
        """
        tape = Tape()
        nodes = [tape.input(THETA, k) for k in range(self.dim)]
        values, _ = _parameters(self.priors, nodes)
        shown = [
            tape.of(number)
            for (_, prior), value in zip(self.priors, values, strict=True)
            for number in prior.shown(value)
        ]
        columns = source.values(shown, {THETA: [theta[..., k] for k in range(self.dim)]})
        return np.stack(np.broadcast_arrays(*columns), axis=-1)


def model(
    log_likelihood: Callable[..., Any],
    priors: Mapping[str, Any],
    *,
    num_columns: int,
    name: str | None = None,
    example_rows: Array | None = None,
) -> ParametricModel:
    """Posterior of the parameters of a log-likelihood written in plain Python.

    Parameters
    ----------
    log_likelihood : callable ``(parameters, row) -> float``
        Log-likelihood of one row. `parameters` has the parameters by name, numbers or tuples of
        them; `row` is a tuple of `num_columns` numbers. It may use arithmetic, ``abs``, ``min``,
        ``max``, functions of ``math``, ``dpmc.models.dot`` and ``dpmc.where`` in place of ``if``,
        and call functions that do. What depends on the row alone may be left out.
    priors : mapping of str to Prior
        Of each parameter, from :mod:`dpmc.priors`; its support makes the transform.
    num_columns : int
        Columns of the rows.
    name : str, optional
        Used in messages; by default that of the function.
    example_rows : ndarray of shape (k, num_columns), optional
        Public rows, made up, where the function exists for some rows only: see `Model`.

    Returns
    -------
    ParametricModel
        Its gradient is exact and compiled together with the log-likelihood. What depends on
        parameters alone is computed once, not for every row.

    Raises
    ------
    DpmcError
        If the function does what cannot be differentiated, or a name is not one.

    Examples
    --------
    >>> import math
    >>> from dpmc import priors
    >>> def log_likelihood(p, row):
    ...     x, y = row
    ...     return -math.log(p.sigma) - 0.5 * ((y - p.a - p.b * x) / p.sigma) ** 2
    >>> line = model(
    ...     log_likelihood,
    ...     {"a": priors.normal(0, 10), "b": priors.normal(0, 10), "sigma": priors.half_normal(5)},
    ...     num_columns=2,
    ... )
    >>> line.dim, line.names
    (3, ('a', 'b', 'sigma'))
    >>> line.bounded(np.zeros(3)).tolist()
    [0.0, 0.0, 1.0]
    """
    called = str(getattr(log_likelihood, "__name__", "model")) if name is None else name
    checks.instance("name", called, str, "a text")
    checks.at_least("num_columns", num_columns, 1)
    given = _checked(called, log_likelihood, priors)
    tape = Tape()
    theta = [tape.input(THETA, k) for k in range(sum(p.num_unbounded for _, p in given))]
    row = tuple(tape.input(ROW, k) for k in range(num_columns))
    values, log_prior = _parameters(given, theta)
    parameters = _container(called, given)(*values)
    value = traced(called, log_likelihood, parameters, row)
    if THETA not in _kinds(tape)[value.index]:
        raise DpmcError(f"model {called!r}: the log-likelihood must depend on the parameters")
    value = _without_rows_alone(value)
    slopes = gradient(value, theta)
    hoisted = _hoisted([value, *slopes])
    density = tape.of(log_prior)
    return ParametricModel(
        name=called,
        dim=len(theta),
        log_likelihood=_row_function([value], hoisted, scalar=True),
        gradient=_row_function(slopes, hoisted),
        log_prior=_theta_function([density], scalar=True),
        log_prior_gradient=_theta_function(gradient(density, theta)),
        coefficients=_theta_function(hoisted) if hoisted else None,
        example_rows=example_rows,
        priors=given,
        num_columns=int(num_columns),
        written=log_likelihood,
    )


def _checked(
    called: str, log_likelihood: object, priors: Mapping[str, Any]
) -> tuple[tuple[str, Prior], ...]:
    """Priors of a model, after a look at them and at the function."""
    if not callable(log_likelihood):
        raise DpmcError(
            f"model {called!r}: `log_likelihood` must be a function, got {log_likelihood!r}"
        )
    if not isinstance(priors, Mapping) or not priors:
        got = "none" if isinstance(priors, Mapping) else type(priors).__name__
        raise DpmcError(
            f"model {called!r}: `priors` must be a mapping of names to priors of dpmc.priors, got "
            f"{got}"
        )
    for label, prior in priors.items():
        named = isinstance(label, str) and label.isidentifier() and not keyword.iskeyword(label)
        if not named or label.startswith("_"):
            raise DpmcError(
                f"model {called!r}: a parameter must have a name of Python, without an "
                f"underscore in front, got {label!r}"
            )
        if not isinstance(prior, Prior):
            kind = type(prior).__name__
            raise DpmcError(f"model {called!r}: `{label}` must be of dpmc.priors, got {kind}")
    return tuple(priors.items())


def _parameters(
    priors: Sequence[tuple[str, Prior]], theta: Sequence[Node]
) -> tuple[list[Any], Any]:
    """Values of all parameters, and the log-density of theta."""
    values, total, first = [], theta[0].tape.constant(0.0), 0
    for _, prior in priors:
        value, log_density = prior.of(theta[first : first + prior.num_unbounded])
        values.append(value)
        total = total + log_density
        first += prior.num_unbounded
    return values, total


def _container(name: str, priors: Sequence[tuple[str, Prior]]) -> Any:
    return namedtuple(re.sub(r"\W", "_", f"Parameters_{name}"), [label for label, _ in priors])


def _kinds(tape: Tape) -> list[frozenset[str]]:
    """For each operation which kinds of inputs it depends on."""
    kinds: list[frozenset[str]] = []
    for operation, arguments in tape.operations:
        if operation == INPUT:
            kinds.append(frozenset({arguments[0]}))
        elif operation == "constant":
            kinds.append(frozenset())
        else:
            kinds.append(frozenset().union(*(kinds[argument] for argument in arguments)))
    return kinds


def _without_rows_alone(value: Node) -> Node:
    """Leave out what is added and does not depend on theta: it changes no ratio and no gradient."""
    tape, kinds = value.tape, _kinds(value.tape)

    every, open_ = [], [(1.0, value)]
    while open_:
        sign, node = open_.pop()
        operation, arguments = tape.operations[node.index]
        nodes = [Node(tape, argument) for argument in arguments]
        if operation == "+":
            open_ += [(sign, nodes[1]), (sign, nodes[0])]
        elif operation == "-":
            open_ += [(-sign, nodes[1]), (sign, nodes[0])]
        elif operation == "neg":
            open_ += [(-sign, nodes[0])]
        else:
            every.append((sign, node))
    kept = [(sign, node) for sign, node in every if THETA in kinds[node.index]]
    if len(kept) == len(every):
        return value
    total: Any = 0.0
    for sign, node in kept:
        total = total + node if sign > 0 else total - node
    return tape.of(total)


def _hoisted(nodes: Sequence[Node]) -> list[Node]:
    """Parts that depend on theta alone and are used together with rows, or by themselves."""
    tape = nodes[0].tape
    kinds = _kinds(tape)
    found: dict[int, None] = {}
    for index in source.needed(nodes):
        operation, arguments = tape.operations[index]
        if operation in (INPUT, "constant") or ROW not in kinds[index]:
            continue
        for argument in arguments:
            if kinds[argument] == {THETA}:
                found[argument] = None
    for node in nodes:
        if kinds[node.index] == {THETA}:
            found[node.index] = None
    return [Node(tape, index) for index in found]


def _row_function(nodes: Sequence[Node], hoisted: Sequence[Node], scalar: bool = False) -> Any:
    given = {node.index: f"c[{k}]" for k, node in enumerate(hoisted)}
    text, names = source.lines(nodes, {ROW: "x[{k}]"}, given)
    result = names[0] if scalar else f"({', '.join(names)},)"
    return _compiled(
        ["def kernel(c, x):", *(f"    {line}" for line in text), f"    return {result}"]
    )


def _theta_function(nodes: Sequence[Node], scalar: bool = False) -> Any:
    text, names = source.lines(nodes, {THETA: "theta[{k}]"}, {})
    body = [f"    {line}" for line in text]
    if scalar:
        body.append(f"    return {names[0]}")
    else:
        body.append(f"    out = np.empty({len(names)})")
        body += [f"    out[{k}] = {one}" for k, one in enumerate(names)]
        body.append("    return out")
    return _compiled(["def kernel(theta):", *body])


def _compiled(text: Sequence[str]) -> Any:
    return compile_source("\n".join(text) + "\n", False, **NAMES)
