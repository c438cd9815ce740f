"""Exact sensitivities of the statistics of a regression to one row.

A row is x with ||x|| <= B and y with |y| <= Y. It adds xx' to S, xy to z and y^2 to u. What
is released has each off-diagonal entry of S once: vech S, in whose norm
``|vech(xx')|**2 = (|x|**4 + sum x_i**4) / 2``, largest (B^4) along an axis.

Two relations: ``add_remove`` (one row more or less) and ``replace`` (one row becomes another,
as in the definitions of [alparslan2023thesis, section 2.1]). The sensitivity printed there,
``sqrt(B**4 + B**2 Y**2)``, is that of the first.

Replacing (x, y) by (x', y') moves (vech S, z) by at most, with c = x'x' and yy' < 0,
``|x|**4 + |x'|**4 - 2 c**2 + |x|**2 y**2 + |x'|**2 y'**2 + 2 c |y y'|``; in two dimensions
or more it is attained for every c > 0, by an x and x' that differ in the order of two
components. It grows in |x|, |x'|, |y| and |y'|, and is quadratic in c.
"""

from __future__ import annotations

import math

from dpmc import checks
from dpmc.types import NEIGHBOURS, DpmcError, Neighbours

# Least and largest bound: their fourth powers are ordinary numbers.
SCALES = 1e-75, 1e75


def statistics_sensitivity(
    x_bound: float,
    y_bound: float,
    dim: int,
    neighbours: Neighbours = "replace",
    with_u: bool = False,
) -> float:
    """Largest Euclidean change of (vech S, z), or of (vech S, z, u).

    Attained by some pair of rows within the bounds.

    Parameters
    ----------
    x_bound, y_bound : float
        B and Y, > 0.
    dim : int
        Number d of features; the value is the same for all d >= 2.
    with_u : bool
        Whether u = y'y is released too.
    """
    check_bounds(x_bound, y_bound, dim, neighbours)
    b2, y2 = x_bound**2, y_bound**2
    if neighbours == "add_remove":
        return math.sqrt(b2**2 + b2 * y2 + (y2**2 if with_u else 0.0))
    # u is moved most by y' = 0, z by y' = -Y.
    moved_u = (2 if dim > 1 else 1) * b2**2 + b2 * y2 + y2**2
    if dim == 1:
        # With u, the squared change is a convex parabola along any ray from (x'^2, y'^2) = 0:
        # its maximum is there, or where x' or y' is at its bound.
        squared = _on_edge(b2, y2)
        return math.sqrt(max(squared, _on_edge(y2, b2), moved_u) if with_u else squared)
    # c = Y^2 / 2 if it can be, otherwise B^2. With u, the squared change is convex in y'^2 as
    # long as c is below B^2, and falls before it rises from there on: one end is the maximum.
    squared = 2 * b2**2 + 2 * b2 * y2 + y2**2 / 2 if y2 <= 2 * b2 else 4 * b2 * y2
    return math.sqrt(max(squared, moved_u) if with_u else squared)


def scaled_sensitivity(
    x_bound: float, y_bound: float, dim: int, neighbours: Neighbours, s_sd: float, z_sd: float
) -> float:
    """Largest change of (vech S / s_sd, z / z_sd).

    How far one row moves a release of S and z, in standard deviations of its noise: its
    inverse is the noise multiplier of both together.

    `x_bound`, `y_bound`, `dim`, `neighbours`: bounds on the rows, number of features and relation,
    as in `statistics_sensitivity`. `s_sd`, `z_sd`: noise on an entry of S and of z, > 0.
    """
    checks.positive("s_sd", s_sd)
    checks.positive("z_sd", z_sd)
    root = math.sqrt(s_sd)  # rows x / root, y root / z_sd have these statistics
    return statistics_sensitivity(x_bound / root, y_bound * root / z_sd, dim, neighbours)


def s_sensitivity(x_bound: float, dim: int, neighbours: Neighbours = "replace") -> float:
    """Largest change of vech S: B^2, or sqrt(2) B^2 by replacement from d = 2 on."""
    check_bounds(x_bound, 1.0, dim, neighbours)
    return x_bound**2 * (math.sqrt(2) if neighbours == "replace" and dim > 1 else 1.0)


def z_sensitivity(x_bound: float, y_bound: float, neighbours: Neighbours = "replace") -> float:
    """Largest change of z: BY, or 2BY by replacement."""
    check_bounds(x_bound, y_bound, 1, neighbours)
    return x_bound * y_bound * (2.0 if neighbours == "replace" else 1.0)


def smallest_eigenvalue_sensitivity(x_bound: float) -> float:
    """Largest change of the smallest eigenvalue of S: B^2 under both relations.

    A row adds between 0 and its squared norm to it (Weyl), whatever the other rows are.
    """
    checks.positive("x_bound", x_bound)
    return x_bound**2


def check_scale(name: str, bound: float) -> None:
    """Refuse a bound whose fourth power, and so the sensitivity, is 0 or infinite as a float."""
    low, high = SCALES
    if not low <= bound <= high:
        raise DpmcError(f"`{name}` must be from {low:g} to {high:g}, got {bound:g}")


def check_bounds(x_bound: float, y_bound: float, dim: int, neighbours: Neighbours) -> None:
    """Refuse bounds that are not finite and > 0, a dimension below 1, an unknown relation."""
    checks.positive("x_bound", x_bound)
    checks.positive("y_bound", y_bound)
    checks.at_least("dim", dim, 1)
    checks.one_of("neighbours", neighbours, tuple(NEIGHBOURS))


def _on_edge(a2: float, b2: float) -> float:
    """Maximum over s in [0, 1] of ``a2 (1 + s)**2 (a2 (1 - s)**2 + b2)``.

    The derivative has the sign of ``2 s**2 - 2 s + b2 / a2``: a local maximum at the smaller
    root, if there is one, and the other at s = 1.
    """
    at_one, q = 4 * a2 * b2, b2 / a2
    if q > 0.5:
        return at_one
    s = q / (1 + math.sqrt(1 - 2 * q))
    return max(at_one, a2 * (1 + s) ** 2 * (a2 * (1 - s) ** 2 + b2))
