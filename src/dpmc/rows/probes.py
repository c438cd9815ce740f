"""Public probes of a model: made-up rows and parameters, and its functions in plain Python there.

Nothing here reads a private row. Probes come from one fixed seed, at several scales, or from
the examples that the model declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from dpmc.types import Array, DpmcError, Model

SEED = 20260101
# Standard deviations of normal rows, and of normal parameters.
ROW_SCALES = (0.1, 1.0, 10.0, 1000.0)
THETA_SCALES = (0.1, 1.0, 3.0)
PER_SCALE = 16
MOST_EXAMPLES = 64

Tuple = tuple[float, ...]


class Probes(NamedTuple):
    """Public points at which the functions of a model are tried.

    Parameters
    ----------
    features : ndarray of shape (q, m)
        What the row functions read of each probe row; finite.
    points : list of tuple of float
        The same, one tuple for each row.
    thetas : list of ndarray of shape (d,)
        Parameters whose coefficients are finite.
    coefficients : list of tuple of float
        Their coefficients.
    """

    features: Array
    points: list[Tuple]
    thetas: list[Array]
    coefficients: list[Tuple]

    def pairs(self) -> Iterator[tuple[int, int]]:
        """All pairs of a parameter and a row, in an order that mixes both."""
        order = np.random.default_rng(SEED).permutation(len(self.thetas) * len(self.points))
        return zip(*(part.tolist() for part in divmod(order, len(self.points))), strict=True)


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Python function of one that may be compiled."""
    python: Callable[..., Any] = getattr(function, "py_func", function)
    return python


def needs_examples(model: Model, what: str, reason: str = "") -> DpmcError:
    """Error of a model that is finite on no probe."""
    return DpmcError(
        f"model {model.name!r}: {what} is finite on no probe{reason}, so the model must have "
        "`example_rows`, and `example_thetas`, where it is"
    )


def rows(model: Model, num_columns: int) -> Array:
    """Probe rows, shape (m, p): normal, positive, labels and counts, or from examples."""
    rng = np.random.default_rng(SEED)
    if model.example_rows is not None:
        given = model.example_rows[:MOST_EXAMPLES]
        if given.shape[1] != num_columns:
            raise DpmcError(
                f"model {model.name!r}: `example_rows` must have {num_columns} columns, got "
                f"{given.shape[1]}"
            )
        first, second = rng.integers(len(given), size=(2, PER_SCALE))
        share = rng.random((PER_SCALE, 1))
        return np.concatenate([given, share * given[first] + (1 - share) * given[second]])
    shape = (PER_SCALE, num_columns)
    parts = [scale * rng.standard_normal(shape) for scale in ROW_SCALES]
    parts += [np.exp(rng.standard_normal(shape)), rng.random(shape)]
    parts += [rng.choice([-1.0, 1.0], shape), rng.choice([0.0, 1.0], shape)]
    parts += [rng.poisson(3.0, shape).astype(np.float64)]
    return np.concatenate(parts)


def bounded_rows(norm: float, num_columns: int) -> Array:
    """Rows of one Euclidean norm, shape (m, p): in random directions and along the axes."""
    directions = np.random.default_rng(SEED).standard_normal((PER_SCALE, num_columns))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    axes = np.eye(num_columns)[:PER_SCALE]
    return norm * np.concatenate([directions, axes, -axes])


def thetas(model: Model) -> Array:
    """Probe parameters, shape (k, d): of several scales, also positive ones."""
    if model.example_thetas is not None:
        given = model.example_thetas[:MOST_EXAMPLES]
        if given.shape[1] != model.dim:
            raise DpmcError(
                f"model {model.name!r}: `example_thetas` must have {model.dim} components, got "
                f"{given.shape[1]}"
            )
        return given
    rng = np.random.default_rng(SEED + 1)
    normal = np.concatenate([s * rng.standard_normal((2, model.dim)) for s in THETA_SCALES])
    return np.concatenate([normal, np.abs(normal)])


def describe(model: Model, x: Array) -> Array:
    """Features of `x`, shape (q, m), without warnings."""
    with np.errstate(all="ignore"):
        if model.features is None:
            return x.T
        return np.asarray(model.features(x), dtype=np.float64)


def coefficients(model: Model, theta: Array) -> Tuple | None:
    """Coefficients of `theta`, None where they are not finite."""
    try:
        with np.errstate(all="ignore"):
            c = theta if model.coefficients is None else plain(model.coefficients)(theta.copy())
    except (ArithmeticError, ValueError):
        return None
    c = np.asarray(c, dtype=np.float64)
    return tuple(c.tolist()) if np.isfinite(c).all() else None


def usable_rows(model: Model, x: Array) -> Array:
    """Rows of `x` whose features are finite when they are described alone."""
    kept, reason = [], ""
    for row in x:
        try:
            one = describe(model, row[None].copy())
        except Exception as error:  # of the author of the model, on a made-up row
            reason = f" ({type(error).__name__}: {error})"
            continue
        if one.ndim == 2 and one.shape[1] == 1 and np.isfinite(one).all():
            kept.append(row)
    if not kept:
        raise needs_examples(model, "what features returns", reason)
    return np.stack(kept)


def make(model: Model, num_columns: int) -> Probes:
    """Probes of a model for rows of `num_columns` columns."""
    x = rows(model, num_columns)
    features = describe(model, usable_rows(model, x))
    every = [(theta, coefficients(model, theta)) for theta in thetas(model)]
    finite = [(theta, c) for theta, c in every if c is not None]
    if not finite:
        raise needs_examples(model, "what coefficients returns")
    return Probes(
        features,
        [tuple(point) for point in features.T.tolist()],
        [theta for theta, _ in finite],
        [c for _, c in finite],
    )


class RowFunction:
    """A row function in plain Python, where it gives finite numbers.

    Parameters
    ----------
    model : Model
        Named in messages.
    function : callable ``(c, x)``
        Log-likelihood or gradient, compiled or not.
    """

    def __init__(self, model: Model, function: Callable[..., Any]) -> None:
        self._model, self._function = model, plain(function)
        self.name = self._function.__name__
        self.reason = ""
        self.scalar = False  # whether the last value was a number by itself

    def __call__(self, c: Tuple, x: Tuple) -> Array | None:
        """Value, shape (components,), None where it is not finite or an error."""
        try:
            with np.errstate(all="ignore"):
                given = np.asarray(self._function(c, x), dtype=np.float64)
                self.scalar = given.ndim == 0
                value = np.atleast_1d(given)
        except IndexError as error:
            raise DpmcError(
                f"model {self._model.name!r}: row functions do not fit rows of {len(x)} features: "
                f"{error}"
            ) from None
        except Exception as error:  # outside of its domain, on a made-up row
            self.reason = f" ({type(error).__name__}: {error})"
            return None
        return value if np.isfinite(value).all() else None
