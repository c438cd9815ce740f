"""Prior distributions of parameters, with the transform that makes each of them unbounded.

A prior knows its support: samplers move an unbounded u, and the parameter is a function of it. Log
densities are those of u, the logarithm of the derivative included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.autodiff.tracing import OPERATIONS, dot
from dpmc.types import DpmcError, is_real

exp, log, log1p, sqrt, tanh = (OPERATIONS[n] for n in ("exp", "log", "log1p", "sqrt", "tanh"))
REAL, POSITIVE, INTERVAL, SIMPLEX, CORRELATION = (
    "real",
    "positive",
    "interval",
    "simplex",
    "correlation",
)


@dataclass(frozen=True)
class Prior:
    """The distribution of a parameter: a number, a vector of independent ones, or more.

    Parameters
    ----------
    support : str
        ``"real"``, ``"positive"``, ``"interval"``, ``"simplex"`` or ``"correlation"``.
    log_density : callable
        Of one number, up to a constant; on an interval of the logarithms of its share of the way
        and of what is left, of a simplex of those of all entries. A share may be a rounded 0.
    size : int, optional
        Of a vector, simplex or correlation matrix; None of a number.
    low, high : float
        Ends of an interval.
    concentration : float
        Eta of a correlation matrix.
    """

    support: str
    log_density: Callable[[Any], Any] = field(repr=False)
    size: int | None = None
    low: float = 0.0
    high: float = 1.0
    concentration: float = 1.0

    def __post_init__(self) -> None:
        if self.size is not None:
            least = 2 if self.support in (SIMPLEX, CORRELATION) else 1
            checks.at_least("size", self.size, least)

    @property
    def num_unbounded(self) -> int:
        """Number of coordinates that a sampler moves."""
        size = 1 if self.size is None else self.size
        if self.support == SIMPLEX:
            return size - 1
        return size * (size - 1) // 2 if self.support == CORRELATION else size

    def names(self, name: str) -> tuple[str, ...]:
        """Names of the numbers that a fit shows, see `shown`."""
        if self.size is None:
            return (name,)
        if self.support == CORRELATION:
            return tuple(f"{name}[{i},{j}]" for i in range(self.size) for j in range(i))
        return tuple(f"{name}[{k}]" for k in range(self.size))

    def shown(self, value: Any) -> list[Any]:
        """Numbers of a value: of a correlation matrix those below the diagonal."""
        if self.size is None:
            return [value]
        if self.support == CORRELATION:
            return [value[i][j] for i in range(self.size) for j in range(i)]
        return list(value)

    def of(self, u: Sequence[Any]) -> tuple[Any, Any]:
        """Value of unbounded numbers, and their log-density up to a constant."""
        if self.support == SIMPLEX:
            return self._simplex(u)
        if self.support == CORRELATION:
            return self._correlation(u)
        pairs = [self._one(one) for one in u]
        total = _total([density for _, density in pairs])
        values = tuple(value for value, _ in pairs)
        return (values[0] if self.size is None else values), total

    def _one(self, u: Any) -> tuple[Any, Any]:
        """Value of one number, and its log-density."""
        if self.support == REAL:
            return u, self.log_density(u)
        if self.support == POSITIVE:
            value = exp(u)
            return value, self.log_density(value) + u
        width, share, rest = self.high - self.low, log_sigmoid(u), log_sigmoid(-u)
        log_slope = share + rest + math.log(width)
        return self.low + width * sigmoid(u), self.log_density((share, rest)) + log_slope

    def _simplex(self, u: Sequence[Any]) -> tuple[Any, Any]:
        # Stick breaking: each entry is a share of what is left, all equal at u = 0.
        left: Any = 1.0
        log_left: Any = 0.0
        values, logs, parts = [], [], []
        for k, one in enumerate(u):
            moved = one - math.log(len(u) - k)
            values.append(left * sigmoid(moved))
            logs.append(log_left + log_sigmoid(moved))
            parts.append(log_left + log_sigmoid(moved) + log_sigmoid(-moved))
            left = left * sigmoid(-moved)
            log_left = log_left + log_sigmoid(-moved)
        values.append(left)
        return tuple(values), _total(parts) + self.log_density((*logs, log_left))

    def _correlation(self, u: Sequence[Any]) -> tuple[Any, Any]:
        # Partial correlations z = tanh(u) are independent: (1 + z) / 2 is beta [Lewandowski et al.
        # 2009], with a parameter that depends on the column.
        size = self.size or 0
        rows: list[list[Any]] = [[1.0] + [0.0] * (size - 1)]
        total: Any = 0.0
        numbers = iter(u)
        for i in range(1, size):
            row: list[Any] = []
            rest: Any = 1.0
            for j in range(i):
                z = next(numbers)
                total = total + (self.concentration + (size - 2 - j) / 2) * log_one_minus_square(z)
                row.append(tanh(z) * sqrt(rest))
                rest = rest * exp(log_one_minus_square(z))
            rows.append([*row, sqrt(rest), *[0.0] * (size - 1 - i)])
        matrix = tuple(
            tuple(1.0 if i == j else dot(a, b) for j, b in enumerate(rows))
            for i, a in enumerate(rows)
        )
        return matrix, total


def _total(parts: Sequence[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def sigmoid(u: Any) -> Any:
    """Return 1 / (1 + exp(-u)), without an overflow."""
    return 0.5 + 0.5 * tanh(0.5 * u)


def log_sigmoid(u: Any) -> Any:
    """Log(1 / (1 + exp(-u))), exact on both sides."""
    return -0.5 * (abs(u) - u) - log1p(exp(-abs(u)))


def log_one_minus_square(u: Any) -> Any:
    """Log(1 - tanh(u)**2)."""
    return 2.0 * (math.log(2.0) - abs(u) - log1p(exp(-2.0 * abs(u))))


def normal(mean: float = 0.0, sd: float = 1.0, size: int | None = None) -> Prior:
    """Normal distribution."""
    _finite("mean", mean)
    checks.positive("sd", sd)
    return Prior(REAL, lambda x: -0.5 * ((x - mean) / sd) ** 2, size)


def student_t(
    degrees_of_freedom: float, location: float = 0.0, scale: float = 1.0, size: int | None = None
) -> Prior:
    """Student-t distribution."""
    _finite("location", location)
    checks.positive("degrees_of_freedom", degrees_of_freedom)
    checks.positive("scale", scale)
    return Prior(REAL, lambda x: _log_t((x - location) / scale, degrees_of_freedom), size)


def cauchy(location: float = 0.0, scale: float = 1.0, size: int | None = None) -> Prior:
    """Cauchy distribution."""
    return student_t(1.0, location, scale, size)


def half_normal(sd: float = 1.0, size: int | None = None) -> Prior:
    """Distribution of the absolute value of a normal variable around 0."""
    checks.positive("sd", sd)
    return Prior(POSITIVE, lambda x: -0.5 * (x / sd) ** 2, size)


def half_student_t(degrees_of_freedom: float, scale: float = 1.0, size: int | None = None) -> Prior:
    """Distribution of the absolute value of a Student-t variable around 0."""
    checks.positive("degrees_of_freedom", degrees_of_freedom)
    checks.positive("scale", scale)
    return Prior(POSITIVE, lambda x: _log_t(x / scale, degrees_of_freedom), size)


def half_cauchy(scale: float = 1.0, size: int | None = None) -> Prior:
    """Distribution of the absolute value of a Cauchy variable around 0."""
    return half_student_t(1.0, scale, size)


def exponential(rate: float = 1.0, size: int | None = None) -> Prior:
    """Exponential distribution."""
    checks.positive("rate", rate)
    return Prior(POSITIVE, lambda x: -rate * x, size)


def gamma(shape: float, rate: float, size: int | None = None) -> Prior:
    """Gamma distribution."""
    checks.positive("shape", shape)
    checks.positive("rate", rate)
    return Prior(POSITIVE, lambda x: (shape - 1.0) * log(x) - rate * x, size)


def inverse_gamma(shape: float, rate: float, size: int | None = None) -> Prior:
    """Distribution of 1 over a gamma variable."""
    checks.positive("shape", shape)
    checks.positive("rate", rate)
    return Prior(POSITIVE, lambda x: -(shape + 1.0) * log(x) - rate / x, size)


def log_normal(mean: float = 0.0, sd: float = 1.0, size: int | None = None) -> Prior:
    """Distribution of exp(x), x normal."""
    _finite("mean", mean)
    checks.positive("sd", sd)
    return Prior(POSITIVE, lambda x: -log(x) - 0.5 * ((log(x) - mean) / sd) ** 2, size)


def uniform(low: float, high: float, size: int | None = None) -> Prior:
    """Uniform distribution."""
    _finite("low", low)
    _finite("high", high)
    if not low < high:
        raise DpmcError(f"`low` must be below `high`, got {low!r} and {high!r}")
    return Prior(INTERVAL, lambda x: 0.0, size, low, high)


def beta(a: float, b: float, size: int | None = None) -> Prior:
    """Beta distribution."""
    checks.positive("a", a)
    checks.positive("b", b)
    return Prior(INTERVAL, lambda logs: (a - 1.0) * logs[0] + (b - 1.0) * logs[1], size)


def dirichlet(concentrations: Sequence[float]) -> Prior:
    """Dirichlet distribution: shares that add up to 1."""
    listed: Any = concentrations
    if isinstance(listed, str) or not isinstance(listed, Sequence | np.ndarray):
        raise DpmcError(f"`concentrations` must be a number for each share, got {concentrations!r}")
    given = tuple(concentrations)
    for one in given:
        checks.positive("concentrations", one)

    def log_density(logs: Any) -> Any:
        return _total([(a - 1.0) * one for a, one in zip(given, logs, strict=True)])

    return Prior(SIMPLEX, log_density, len(given))


def lkj(size: int, concentration: float = 1.0) -> Prior:
    """Distribution of correlation matrices with density ``det(R)**(eta - 1)``.

    Parameters
    ----------
    size : int
        Rows of the matrix.
    concentration : float
        Eta: 1 is uniform, more prefers small correlations [Lewandowski et al. 2009].
    """
    checks.positive("concentration", concentration)
    return Prior(CORRELATION, lambda x: 0.0, size, concentration=concentration)


def _finite(name: str, value: Any) -> None:
    """Refuse anything but a finite number; a vector has `size` equal ones."""
    if not is_real(value) or not math.isfinite(value):
        raise DpmcError(f"`{name}` must be a finite number, got {value!r}")


def _log_t(x: Any, freedom: float) -> Any:
    return -0.5 * (freedom + 1.0) * log1p(x * x / freedom)
