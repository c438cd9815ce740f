"""Mean and variance of a statistic of one record, as functions of theta, in closed form.

[alparslan2023thesis, examples 3 to 6]. They are those of records before clipping: with bounds
at which clipping is rare the difference is below the error of what they are used for.

Every one is a polynomial in theta or a power of it. For N(theta, 1) the moments follow
``m_k = theta m_(k-1) + (k - 1) m_(k-2)``.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import polynomial
from scipy.special import gamma

from dpmc.numerics.compiled import kept
from dpmc.statsel.types import Population, Statistic
from dpmc.types import DpmcError


@dataclass(frozen=True)
class Moments:
    """Mean and variance of s(X) with their derivatives by theta.

    Parameters
    ----------
    mean, variance, d_mean, d_variance : compiled function ``(theta) -> value``
        Of a number or, entry by entry, of an array.
    """

    mean: Any
    variance: Any
    d_mean: Any
    d_variance: Any


def of(population: Population, statistic: Statistic) -> Moments:
    """Moments of a statistic of one record of a population."""
    if statistic.kind != "mean":
        raise DpmcError(
            f"`statistic` must be a mean of x^a or |x|^a to have moments, got {statistic.name!r}"
        )
    if population.name not in _CLOSED_FORMS:
        known = ", ".join(_CLOSED_FORMS)
        raise DpmcError(
            f"`population` must be one of {known} to have moments, got {population.name!r}"
        )
    moments: Moments = _CLOSED_FORMS[population.name](statistic.power, statistic.absolute)
    return moments


@functools.cache
def _normal_mean(power: float, absolute: bool) -> Moments:
    if absolute or power % 2 == 0:
        name = f"|x|^{power:g}" if absolute else f"x^{power:g}"
        raise DpmcError(f"`statistic` must be x^a with odd a for normal_mean, got {name!r}")
    moments = normal_moments(2 * int(power))
    mean = moments[int(power)]
    return _polynomials(mean, polynomial.polysub(moments[-1], polynomial.polymul(mean, mean)))


@functools.cache
def _normal_variance(power: float, absolute: bool) -> Moments:
    _check_even("normal_variance", power, absolute)
    first = float(gamma((power + 1) / 2)) / math.sqrt(math.pi)
    second = float(gamma(power + 0.5)) / math.sqrt(math.pi)
    mean, variance = 2 ** (power / 2) * first, 2**power * (second - first**2)
    return _powers(mean, power / 2, variance, power)


@functools.cache
def _uniform_width(power: float, absolute: bool) -> Moments:
    _check_even("uniform_width", power, absolute)
    variance = power**2 / ((power + 1) ** 2 * (2 * power + 1))
    return _powers(1 / (power + 1), power, variance, 2 * power)


@functools.cache
def _bernoulli(power: float, absolute: bool) -> Moments:
    return _polynomials(np.array([0.0, 1.0]), np.array([0.0, 1.0, -1.0]))


_CLOSED_FORMS = {
    "normal_mean": _normal_mean,
    "normal_variance": _normal_variance,
    "uniform_width": _uniform_width,
    "bernoulli": _bernoulli,
}


def normal_moments(order: int) -> list[Any]:
    """E X^k of N(theta, 1) for k = 0..order, each as coefficients of powers of theta."""
    moments = [np.array([1.0]), np.array([0.0, 1.0])]
    for k in range(2, order + 1):
        raised = polynomial.polymulx(moments[k - 1])
        moments.append(polynomial.polyadd(raised, (k - 1) * moments[k - 2]))
    return moments


def _check_even(population: str, power: float, absolute: bool) -> None:
    if not absolute and power % 2:
        raise DpmcError(
            f"`statistic` must be |x|^a or x^a with even a for {population}, whose odd moments are "
            f"0, got 'x^{power:g}'"
        )


def _polynomials(mean: Any, variance: Any) -> Moments:
    return Moments(
        _polynomial(tuple(mean.tolist())),
        _polynomial(tuple(variance.tolist())),
        _polynomial(tuple(polynomial.polyder(mean).tolist())),
        _polynomial(tuple(polynomial.polyder(variance).tolist())),
    )


def _powers(mean: float, of_mean: float, variance: float, of_variance: float) -> Moments:
    return Moments(
        _power(mean, of_mean),
        _power(variance, of_variance),
        _power(mean * of_mean, of_mean - 1),
        _power(variance * of_variance, of_variance - 1),
    )


@functools.cache
def _polynomial(coefficients: tuple[float, ...]) -> Any:
    last, others = coefficients[-1], tuple(reversed(coefficients[:-1]))
    if not others:

        def constant(theta: Any) -> Any:
            return 0.0 * theta + last

        return kept(constant)
    first, rest = others[0], others[1:]
    if not rest:

        def affine(theta: Any) -> Any:
            return last * theta + first

        return kept(affine)

    def horner(theta: Any) -> Any:
        value = last * theta + first
        for coefficient in rest:
            value = value * theta + coefficient
        return value

    return kept(horner)


@functools.cache
def _power(factor: float, exponent: float) -> Any:
    if exponent == 0.5:

        def root(theta: Any) -> Any:
            return factor * np.sqrt(theta)

        return kept(root)
    if exponent == int(exponent) and abs(exponent) <= 8:
        whole = int(exponent)

        def multiplied(theta: Any) -> Any:
            return factor * theta**whole

        return kept(multiplied)

    def raised(theta: Any) -> Any:
        return factor * theta**exponent

    return kept(raised)
