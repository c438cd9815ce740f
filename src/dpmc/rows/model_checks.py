"""Checks of what a model declares, on public probes, before any private row is used.

A check on probes finds mistakes and proves nothing. That `affine` holds and that `features`
are row-wise are promises of the author of a model, and a guarantee rests on them; all else,
a wrong gradient or Lipschitz constant among it, costs exactness only, because what a row
contributes is clipped whatever it is.

A prior is checked at the start points, which are public.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpmc.numerics.compiled import compile_once
from dpmc.rows import probes, row_functions
from dpmc.rows.probes import Probes, RowFunction
from dpmc.types import Array, DpmcError, Model

# Lines on which a function is tried for a bend, with the parameters of each.
NUM_LINES = 64
NUM_THETAS = 3
# Pairs of a parameter and a row at which gradients are compared with differences, and how
# many numbers one comparison may take before directions take the place of components.
NUM_PAIRS = 24
MOST_COMPONENTS = 16
STEP = 1e-5
# Largest relative disagreement of a gradient with differences.
LOOSE = 1e-3
# Largest relative disagreement of two values of one function.
CLOSE = 1e-7
# Rounding per unit of what a sum is made of.
ROUNDING = 1e-12


def check_rows(model: Model, num_columns: int) -> Probes:
    """Refuse a model on which the sensitivity of sums over rows could not rest.

    Parameters
    ----------
    model : Model
        The posterior, written for one row.
    num_columns : int
        Columns p of the rows.

    Returns
    -------
    Probes
        Where it was tried.
    """
    examples = model.example_rows, model.example_thetas  # which no comparison of models regards
    key = (None if one is None else (one.shape, one.tobytes()) for one in examples)
    return _checked_rows(model, num_columns, *key)


@functools.lru_cache(maxsize=64)
def _checked_rows(model: Model, num_columns: int, *examples: object) -> Probes:
    row_functions.refuse_errors(model)
    _check_features(model, num_columns)
    made = probes.make(model, num_columns)
    _check_components(model, made)
    if model.linear:
        _check_linear(model, made)
    if model.affine:
        _check_affine(model, made)
    if model.slope is not None:
        _check_slope(model, made)
    return made


def check(
    model: Model, num_columns: int, bounds: Mapping[str, float], nan_rows: bool = False
) -> None:
    """Refuse a model whose declarations fail on a public probe.

    Parameters
    ----------
    model : Model
        The posterior, written for one row.
    num_columns : int
        Columns p of the rows.
    bounds : mapping of str to float
        Bounds of every row; ``row_norm`` says which rows a Lipschitz constant is for.
    nan_rows : bool
        Whether rows of NaN are to contribute nothing.
    """
    made = check_rows(model, num_columns)
    _check_gradient(model)(made)
    if model.lipschitz is not None:
        _check_lipschitz(model, num_columns, bounds.get("row_norm"))
    if nan_rows:
        _check_nan(model, made)


def _check_features(model: Model, num_columns: int) -> None:
    """Refuse features of a row that depend on other rows or on their order."""
    if model.features is None:
        return
    x = probes.usable_rows(model, probes.rows(model, num_columns))
    alone = [probes.describe(model, row[None].copy())[:, 0] for row in x]
    count = len(alone[0])
    several = range(len(x) // 3)
    for which in (range(len(x)), range(len(x) - 1, -1, -1), several):
        rows = [*which]
        together = probes.describe(model, x[rows])
        expected = np.stack([alone[k] for k in rows], axis=1)
        if together.shape != expected.shape:
            raise DpmcError(
                f"model {model.name!r}: `features` of {len(rows)} rows must have shape "
                f"({count}, {len(rows)}), got {together.shape}"
            )
        scale = np.abs(expected).max(axis=0)
        if not (np.abs(together - expected) <= CLOSE * scale + ROUNDING).all():
            raise DpmcError(
                f"model {model.name!r}: `features` must be a function of each row by itself, got "
                "other values with other rows"
            )


def _check_components(model: Model, made: Probes) -> None:
    functions = (model.log_likelihood, 1), (model.gradient, model.dim)
    for function, dim in functions:
        row = RowFunction(model, function)
        values = (row(made.coefficients[i], made.points[j]) for i, j in made.pairs())
        first = next((value for value in values if value is not None), None)
        if first is None:
            raise probes.needs_examples(model, row.name, row.reason)
        which = "gradient" if function is model.gradient else "log_likelihood"
        if function is model.gradient and row.scalar:
            raise DpmcError(
                f"model {model.name!r}: `gradient` must return a tuple of {dim} numbers, got one "
                "number"
            )
        if first.size != dim:
            raise DpmcError(
                f"model {model.name!r}: `{which}` must have {dim} components, got {first.size}"
            )


def _magnitude(*points: probes.Tuple) -> float:
    """Bound on what the terms of a sum of products of the entries of points add up to."""
    product = 1.0
    for point in points:
        product *= 1.0 + sum(map(abs, point))
    return product


def _check_linear(model: Model, made: Probes) -> None:
    """Refuse a log-likelihood whose difference is not its value at the difference."""
    row = RowFunction(model, model.log_likelihood)
    tried = 0
    for i, j in made.pairs():
        a, b = made.coefficients[i], made.coefficients[(i + 1) % len(made.coefficients)]
        x = made.points[j]
        change = tuple(q - p for p, q in zip(a, b, strict=True))
        old, new, direct = row(a, x), row(b, x), row(change, x)
        if old is None or new is None or direct is None:
            continue
        tried += 1
        scale = abs(old[0]) + abs(new[0]) + abs(direct[0])
        rounding = ROUNDING * _magnitude(
            tuple(abs(p) + abs(q) for p, q in zip(a, b, strict=True)), x
        )
        if abs(new[0] - old[0] - direct[0]) > CLOSE * scale + rounding:
            raise DpmcError(
                f"model {model.name!r}: `linear` must be False, got True: {row.name} is not "
                "linear in the coefficients"
            )
        if tried == NUM_LINES:
            return
    if not tried:
        raise probes.needs_examples(model, row.name, row.reason)


def _check_slope(model: Model, made: Probes) -> None:
    """Refuse a slope that is not the gradient over the last features."""
    assert model.slope is not None
    gradient, dim = RowFunction(model, model.gradient), model.dim
    before = len(made.points[0]) - dim
    if before < 0 or len(made.coefficients[0]) != dim:
        raise DpmcError(
            f"model {model.name!r}: `slope` must be None unless there are {dim} features and "
            f"coefficients or more, got {before + dim} and {len(made.coefficients[0])}"
        )
    slope: Any = RowFunction(model, model.slope)  # its first argument is a number here
    for i, j in made.pairs():
        x = made.points[j]
        found = gradient(made.coefficients[i], x)
        inner = float(np.dot(made.coefficients[i], x[before:]))
        value = slope(inner, x[:before])
        if found is None or value is None:
            continue
        off = np.abs(found - value[0] * np.array(x[before:]))
        if np.any(off > CLOSE * np.abs(found).max() + ROUNDING * _magnitude(x)):
            raise DpmcError(
                f"model {model.name!r}: `slope` times the last {dim} features must be `gradient`, "
                "got another vector"
            )


def _check_affine(model: Model, made: Probes) -> None:
    """Refuse a row function that is bent on a line between the features of two probes."""
    rng = np.random.default_rng(probes.SEED)
    first, second = rng.integers(made.features.shape[1], size=(2, NUM_LINES))
    shares = rng.random(NUM_LINES)
    spread = np.abs(made.features).max(axis=1) * rng.standard_normal((NUM_LINES, 1))
    for function in (model.log_likelihood, model.gradient):
        row = RowFunction(model, function)
        tried = 0
        for c in made.coefficients[-NUM_THETAS:]:
            for k, share in enumerate(shares.tolist()):
                start = made.features[:, first[k]]
                end = spread[k] if k % 4 == 0 else made.features[:, second[k]]
                tried += _straight(model, row, c, start, end, share)
        if not tried:
            raise probes.needs_examples(model, row.name, row.reason)


def _straight(
    model: Model, row: RowFunction, c: probes.Tuple, start: Array, end: Array, share: float
) -> bool:
    """Whether a function could be tried on a line; refuse one that is bent there."""
    middle = (1 - share) * start + share * end
    points = [tuple(point.tolist()) for point in (start, middle, end)]
    values = [row(c, point) for point in points]
    low, inside, high = values
    if low is None or inside is None or high is None:
        return False
    bend = np.abs((1 - share) * low + share * high - inside)
    scale = np.abs(low) + np.abs(inside) + np.abs(high)
    rounding = ROUNDING * max(_magnitude(c, point) for point in points)
    if np.any(bend > CLOSE * scale + rounding):
        raise DpmcError(
            f"model {model.name!r}: `affine` must be False, got True: {row.name} is not affine in "
            "the features"
        )
    return True


def _check_gradient(model: Model) -> Callable[[Probes], None]:
    """Comparison of a model's gradient with differences of its log-likelihood."""
    value, slope = RowFunction(model, model.log_likelihood), RowFunction(model, model.gradient)

    def difference(theta: Array, direction: Array, x: probes.Tuple) -> tuple[float, float] | None:
        """Slope along a direction, and what rounding may do to it."""
        step = STEP * max(1.0, float(np.abs(theta).max()))
        ends = [probes.coefficients(model, theta + sign * step * direction) for sign in (1, -1)]
        if ends[0] is None or ends[1] is None:
            return None
        high, low = value(ends[0], x), value(ends[1], x)
        if high is None or low is None:
            return None
        size = abs(high[0]) + abs(low[0]) + _magnitude(ends[0], x)
        return float(high[0] - low[0]) / (2 * step), 1e-2 * ROUNDING * size / step

    def disagrees(made: Probes, direction: Array) -> bool:
        """Whether most informative pairs disagree along a direction."""
        informative, wrong = 0, 0
        for i, j in made.pairs():
            analytic = slope(made.coefficients[i], made.points[j])
            numeric = difference(made.thetas[i], direction, made.points[j])
            if numeric is None:
                continue
            along = 0.0 if analytic is None else float(analytic @ direction)
            rounding = numeric[1]
            size = abs(along) + abs(numeric[0])
            if size <= 10 * rounding:
                continue
            informative += 1
            wrong += analytic is None or abs(along - numeric[0]) > LOOSE * size + rounding
            if informative == NUM_PAIRS:
                break
        return 2 * wrong > informative

    def compare(made: Probes) -> None:
        axes = np.eye(model.dim)
        if model.dim > MOST_COMPONENTS:
            rng = np.random.default_rng(probes.SEED)
            if not any(disagrees(made, rng.standard_normal(model.dim)) for _ in range(3)):
                return
        for k, axis in enumerate(axes):
            if disagrees(made, axis):
                raise DpmcError(
                    f"model {model.name!r}: `gradient` must be that of log_likelihood with respect "
                    f"to theta, got another derivative in component {k} at most probes, or none "
                    "that is finite"
                )

    return compare


def _check_lipschitz(model: Model, num_columns: int, row_norm: float | None) -> None:
    """Refuse a constant that a row gradient exceeds, at examples or rows of the largest norm."""
    if model.example_rows is not None:
        x = model.example_rows[: probes.MOST_EXAMPLES]
    elif row_norm is not None:
        x = probes.bounded_rows(row_norm, num_columns)
    else:
        return  # which rows are admissible is not known
    row, largest = RowFunction(model, model.gradient), 0.0
    for theta in probes.thetas(model):
        c = probes.coefficients(model, theta)
        if c is None:
            continue
        for point in probes.describe(model, x).T.tolist():
            gradient = row(c, tuple(point))
            if gradient is not None:
                largest = max(largest, float(np.linalg.norm(gradient)))
    if model.lipschitz is not None and largest > model.lipschitz * (1 + 1e-9):
        raise DpmcError(
            f"model {model.name!r}: `lipschitz` must be at least {largest:.6g}, the length of a "
            f"gradient on a probe (`example_rows` say which rows are admissible), got "
            f"{model.lipschitz}"
        )


def _check_nan(model: Model, made: Probes) -> None:
    """Refuse row functions that give a row of NaN a contribution."""
    nothing = tuple([float("nan")] * len(made.points[0]))
    a, b = made.coefficients[0], made.coefficients[-1]
    value, slope = compile_once(model.log_likelihood), compile_once(model.gradient)
    if model.linear:
        ratio = value(tuple(q - p for p, q in zip(a, b, strict=True)), nothing)
    else:
        ratio = value(b, nothing) - value(a, nothing)
    gradient = np.asarray(slope(b, nothing))
    for name, entries in ("log_likelihood", np.atleast_1d(ratio)), ("gradient", gradient):
        if not (np.isnan(entries).any() or (entries == 0).all()):
            raise DpmcError(
                f"model {model.name!r}: `{name}` of a row of NaN must be NaN with invalid_rows "
                "'zero', got a number"
            )


def check_prior(model: Model, starts: Array) -> None:
    """Refuse a prior that is no density at a start point, or a gradient of another shape.

    Parameters
    ----------
    model : Model
        The posterior; its prior is tried.
    starts : ndarray of shape (chains, d)
        Where chains begin.
    """
    for start in np.unique(starts, axis=0):
        value = _numbers(model.log_prior(start.copy()))
        if value is None or value.size != 1:
            raise DpmcError(f"model {model.name!r}: `log_prior` must return a number, got another")
        density = float(value.ravel()[0])
        where = f"theta = {_shown(start)}"
        if math.isnan(density) or density == math.inf:
            raise DpmcError(
                f"model {model.name!r}: `log_prior` must be a number at the start, got {density} "
                f"at {where}"
            )
        if density == -math.inf:
            raise DpmcError(
                f"`start` must be where the prior has density, got {where}, which model "
                f"{model.name!r} rules out"
            )
        gradient = _numbers(model.log_prior_gradient(start.copy()))
        if gradient is None or gradient.shape != (model.dim,) or not np.isfinite(gradient).all():
            got = "others" if gradient is None else f"shape {gradient.shape}"
            raise DpmcError(
                f"model {model.name!r}: `log_prior_gradient` must return {model.dim} finite "
                f"numbers at the start, got {got} at {where}"
            )


def _numbers(value: Any) -> Array | None:
    """Array of real numbers, None of anything else."""
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind in "biuf" else None


def _shown(theta: Array) -> str:
    """Point as a reader wants to see it."""
    first = ", ".join(f"{value:.4g}" for value in theta[:4])
    return f"({first}{', ...' if len(theta) > 4 else ''})"
