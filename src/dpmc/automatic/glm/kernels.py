"""Sums over private rows of a regression, in coordinates that whiten its features.

A row of features x is described by v = (1, (x - location) / scale), and u = basis @ v. Its weight
w = min(1, R / |u|, R T / |u|^2) bounds |w u| by R and w |u|^2 by R T, whatever the row and the
point. Residuals of a normal model are bounded such that |w u rho| is. Residuals of counts are
relative to their usual size at a rate, and may have weights of this size instead of 1. What is not
a finite number contributes nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmc.numerics.compiled import njit
from dpmc.types import Array

LINEAR, STUDENT_T, LOGISTIC, POISSON = range(4)
# Places in the array of numbers that a pass reads: of the response, the likelihood and the bounds.
Y_LOCATION, Y_INVERSE, SIGMA, FREEDOM, RATE, RESIDUAL, CURVATURE, LENGTH, LONGEST, SCORE = range(10)
SAFE, GRADIENT = 10, 11
# Column of the offset, 0 where there is none, and the public number it is taken from.
OFFSET, CENTRE = 12, 13
# Bounds on the gradient and the curvature of a person with several rows.
PERSON, PERSON_CURVED, NUMBERS = 14, 15, 16
# Logarithms of a rate beyond this have rates beyond any bound on a residual.
LARGEST = 300.0
# Where the table of mean clipped counts begins, and its entries per unit.
FIRST_RATE, PER_RATE = -8.0, 10.0
# What a pass adds up beside gradient and curvature.
SCALE, DISPERSION, MEAN, FAR = range(4)
# Numbers of columns are padded to multiples of it.
LANES = 16
# Sums may be reordered; numbers that are not finite stay what they are.
SUMS = {"reassoc", "contract"}
# Deviations from which on a residual of a normal model is far.
FAR_AWAY = 3.5


@njit(fastmath=SUMS)
def _described(x: Any, location: Any, inverse: Any, constant: int, v: Any) -> float:
    """Write the description of a row, and return its squared length."""
    total = 0.0
    if constant:
        v[0] = 1.0
        total = 1.0
    for j in range(len(location)):
        value = (x[j] - location[j]) * inverse[j]
        v[constant + j] = value
        total += value * value
    return total


@njit(fastmath=SUMS)
def _whitened(v: Any, basis: Any, u: Any) -> float:
    """Write the whitened description of a row, and return its squared length."""
    for k in range(len(u)):
        u[k] = 0.0
    for j in range(len(v)):
        value = v[j]
        for k in range(len(u)):
            u[k] += value * basis[j, k]
    total = 0.0
    for k in range(len(u)):
        total += u[k] * u[k]
    return total


@njit(fastmath=SUMS)
def _add_square(u: Any, factor: float, total: Any) -> None:
    """Add ``factor * outer(u, u)``."""
    for j in range(total.shape[0]):
        value = factor * u[j]
        for k in range(total.shape[1]):
            total[j, k] += value * u[k]


@njit
def moments(x: Any, location: Any, inverse: Any, constant: int, bound: float, total: Any) -> None:
    """Add the second moments of rows, clipped to length `bound`; `total` is padded."""
    v = np.zeros(total.shape[1])
    for i in range(x.shape[0]):
        length = _described(x[i], location, inverse, constant, v)
        y = x[i, x.shape[1] - 1]
        if not (math.isfinite(length) and math.isfinite(y)):
            continue
        factor = 1.0 if length <= bound * bound else bound * bound / length
        _add_square(v, factor, total)


@njit
def lengths(
    x: Any, location: Any, inverse: Any, basis: Any, constant: int, edges: Any, counts: Any
) -> None:
    """Count rows by the whitened length of their features: bins between squared `edges`."""
    v, u = np.empty(basis.shape[0]), np.empty(basis.shape[1])
    for i in range(x.shape[0]):
        _described(x[i], location, inverse, constant, v)
        length = _whitened(v, basis, u)
        if math.isfinite(length) and math.isfinite(x[i, x.shape[1] - 1]):
            counts[np.searchsorted(edges, length)] += 1.0


@njit
def _offset(x: Any, numbers: Any) -> float:
    """Known part of the linear predictor of a row."""
    column = int(numbers[OFFSET])
    return x[column] - numbers[CENTRE] if column else 0.0


@njit
def _usual_size(rate: float, numbers: Any) -> float:
    """Size of a residual of a count, over that at the mean rate; at least 1."""
    return max(1.0, math.sqrt(rate / numbers[RATE]))


@njit
def _scores(y: float, eta: float, kind: int, bound: float, numbers: Any, table: Any) -> Any:
    """Residual score of a row, its curvature, its variance, and its score of log sigma.

    The first is within `bound`, the second within that on curvatures, the last
    within that on scores.
    """
    largest = numbers[CURVATURE]
    score, size = 0.0, 1.0
    if kind == LOGISTIC:
        small = math.exp(-abs(eta))
        p = 1.0 / (1.0 + small) if eta >= 0 else small / (1.0 + small)
        rho, h = y - p, small / ((1.0 + small) * (1.0 + small))
    elif kind == POISSON:
        rate = math.exp(min(eta, LARGEST))
        size = _usual_size(rate, numbers)
        rho, h = (y - rate) / size, rate / size
    else:
        r = ((y - numbers[Y_LOCATION]) * numbers[Y_INVERSE] - eta) / numbers[SIGMA]
        if kind == LINEAR:
            rho, h = r, 1.0
            score = min(r * r, numbers[SCORE])
        else:
            freedom = numbers[FREEDOM]
            share = (freedom + 1.0) / (freedom + r * r)
            rho = share * r
            if math.isinf(r * r):
                rho = 0.0
            h = share
            if not numbers[SAFE]:
                h = share * (freedom - r * r) / (freedom + r * r)
            score = min(share * r * r, numbers[SCORE]) if math.isfinite(r * r) else freedom + 1.0
            score = min(score, numbers[SCORE])
    if kind == LINEAR and abs(rho) > bound:
        h = 0.0
    rho = min(max(rho, -bound), bound)
    variance = h
    if kind == POISSON:
        # Less its mean under the model, so that a model that is right keeps its parameters.
        place = min(max((eta - FIRST_RATE) * PER_RATE, 0.0), table.shape[1] - 1.0)
        below = min(int(place), table.shape[1] - 2)
        part = place - below
        mean = table[0, below] + part * (table[0, below + 1] - table[0, below])
        rho = min(max(rho - mean, -bound), bound)
        variance = h / size * (table[2, below] + part * (table[2, below + 1] - table[2, below]))
        h *= table[1, below] + part * (table[1, below + 1] - table[1, below])
    # The least curvature of a Student-t likelihood is an eighth of the largest, below zero.
    h = min(max(h, -largest / 8.0), largest)
    return rho, h, variance, score, size


@njit
def residuals(
    x: Any,
    location: Any,
    inverse: Any,
    constant: int,
    beta: Any,
    kind: int,
    numbers: Any,
    edges: Any,
    counts: Any,
) -> None:
    """Count rows by their residual: bins between `edges`, of either sign."""
    dim = len(beta)
    v = np.empty(dim)
    for i in range(x.shape[0]):
        _described(x[i], location, inverse, constant, v)
        eta = _offset(x[i], numbers)
        for j in range(dim):
            eta += v[j] * beta[j]
        y = x[i, x.shape[1] - 1]
        if kind == POISSON:
            rate = math.exp(min(eta, LARGEST))
            r = (y - rate) / _usual_size(rate, numbers)
        else:
            r = ((y - numbers[Y_LOCATION]) * numbers[Y_INVERSE] - eta) / numbers[SIGMA]
        if not math.isnan(r):
            counts[np.searchsorted(edges, r)] += 1.0


@njit(fastmath=SUMS)
def scores(
    x: Any,
    location: Any,
    inverse: Any,
    basis: Any,
    constant: int,
    phi: Any,
    kind: int,
    numbers: Any,
    table: Any,
    gradient: Any,
    curvature: Any,
    meat: Any,
    extra: Any,
) -> None:
    """Add weighted gradients, curvatures, squares of gradients, and sums.

    Curvatures and squares are left out where their arrays have no rows. All but `phi` are padded.
    """
    dim = basis.shape[0]
    v, u = np.empty(dim), np.empty(basis.shape[1])
    reach, longest = numbers[LENGTH], numbers[LONGEST]
    spread = max(numbers[GRADIENT] ** 2, reach**2 * numbers[CURVATURE])
    for i in range(x.shape[0]):
        y = x[i, x.shape[1] - 1]
        _described(x[i], location, inverse, constant, v)
        length = _whitened(v, basis, u)
        eta = _offset(x[i], numbers)
        if not (math.isfinite(length) and math.isfinite(y) and math.isfinite(eta)):
            continue
        for k in range(len(phi)):
            eta += u[k] * phi[k]
        if math.isnan(eta):
            continue
        root = math.sqrt(length)
        most = min(reach, reach * longest / root) if root > 0 else reach
        bound = numbers[RESIDUAL]
        if kind == LINEAR and bound * min(root, most) > numbers[GRADIENT]:
            bound = numbers[GRADIENT] / min(root, most)
        rho, h, variance, score, size = _scores(y, eta, kind, bound, numbers, table)
        weight = size
        if root * weight > most:
            weight = most / root
        if math.isnan(rho) or math.isnan(h) or math.isnan(score):
            continue
        factor = weight * rho
        for k in range(len(gradient)):
            gradient[k] += factor * u[k]
        if curvature.shape[0]:
            _add_square(u, weight * h, curvature)
        if meat.shape[0]:
            _add_square(u, (weight * rho) ** 2, meat)
        extra[SCALE] += score
        change = weight * weight * length * (rho * rho - variance)
        extra[DISPERSION] += min(max(change, -spread), spread)
        extra[MEAN] += rho
        if kind == LINEAR and abs(rho) >= min(bound, FAR_AWAY):
            r = ((y - numbers[Y_LOCATION]) * numbers[Y_INVERSE] - eta) / numbers[SIGMA]
            if abs(r) > FAR_AWAY:
                extra[FAR] += 1.0


def padded(matrix: Array) -> Array:
    """Matrix with columns of zeros behind, of whose length inner loops are vectors."""
    spare = -matrix.shape[1] % LANES
    return np.pad(matrix, ((0, 0), (0, spare)))


def mirrored(total: Array) -> Array:
    """Symmetric matrix of the upper triangle of a padded sum."""
    upper = np.triu(total[:, : len(total)])
    return np.asarray(upper + np.triu(upper, 1).T)
