"""Records as a model has them: drawn, weighed and summed for many parameters at once."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import norm, qmc

from dpmc.autodiff import source
from dpmc.autodiff.expression import Node, Tape
from dpmc.autodiff.tracing import traced
from dpmc.modelling import ParametricModel
from dpmc.types import Array, DpmcError

THETA, ROW = "theta", "row"
Columns = tuple[Array, ...]
# Points of rules of integration by the number of uniforms, a pair of neighbours compared.
LEVELS = {1: (33, 129, 513, 2049, 8193), 2: (17, 33, 65, 129, 257), 3: (13, 17, 25, 33, 41)}
SEQUENCE = (2**12, 2**14, 2**16)
# What is left to the next rule: error of the mean in standard errors of a sum, and of the variance.
MEAN_ERROR, VARIANCE_ERROR = 0.01, 0.005
FURTHEST = 8.0


@dataclass(frozen=True, eq=False)
class Records:
    """Distribution of one record and of what is summed of it.

    Parameters
    ----------
    model : ParametricModel
    statistic : callable ``(*columns) -> array of shape (..., q)``
    sample : callable ``(parameters, *uniforms) -> columns``, optional
        A record from numbers uniform in (0, 1).
    values : tuple of ndarray of shape (v,), optional
        Columns of all possible records, in place of `sample`.
    """

    model: ParametricModel
    statistic: Callable[..., Array]
    sample: Callable[..., Any] | None = None
    values: Columns | None = None

    @cached_property
    def num_uniforms(self) -> int:
        """How many uniforms a record is made from."""
        if self.sample is None:
            return 1
        kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        try:
            given = inspect.signature(self.sample).parameters.values()
        except ValueError:  # of some functions that are not Python's own
            return 0
        return sum(one.kind in kinds and one.default is one.empty for one in given) - 1

    @cached_property
    def _nodes(self) -> tuple[list[Any], Node, Node]:
        """Values of the parameters, log-density of theta, log-likelihood of a record."""
        tape = Tape()
        theta = [tape.input(THETA, k) for k in range(self.model.dim)]
        row = tuple(tape.input(ROW, k) for k in range(self.model.num_columns or 1))
        values, density, first = [], tape.constant(0.0), 0
        for _, prior in self.model.priors:
            value, part = prior.of(theta[first : first + prior.num_unbounded])
            values.append(value)
            density, first = density + part, first + prior.num_unbounded
        names = [name for name, _ in self.model.priors]
        given = SimpleNamespace(**dict(zip(names, values, strict=True)))
        assert self.model.written is not None  # checked where the model comes in
        return values, density, traced(self.model.name, self.model.written, given, row)

    def parameters(self, theta: Array) -> Any:
        """Parameters by name, arrays of shape (m, 1), of theta, shape (m, d)."""
        inputs = {THETA: [column[:, None] for column in theta.T]}
        names = [name for name, _ in self.model.priors]
        found = [_evaluated(value, inputs) for value in self._nodes[0]]
        return SimpleNamespace(**dict(zip(names, found, strict=True)))

    def log_prior(self, theta: Array) -> Array:
        """Log-densities of theta, shape (m,), on the scale that samplers move."""
        (found,) = source.values([self._nodes[1]], {THETA: list(theta.T)})
        return _finite(np.broadcast_to(found, len(theta)))

    def log_likelihood(self, theta: Array, rows: Columns) -> Array:
        """Log-likelihoods of records, shape (m, n), of columns of shape (m or 1, n)."""
        inputs = {THETA: [column[:, None] for column in theta.T], ROW: list(rows)}
        (found,) = source.values([self._nodes[2]], inputs)
        return _finite(np.broadcast_to(found, (len(theta), rows[0].shape[-1])))

    def probabilities(self, theta: Array) -> Array:
        """Probabilities of `values`, shape (m, v), as they are: they need not add up to 1."""
        assert self.values is not None
        with np.errstate(over="ignore"):
            return np.exp(self.log_likelihood(theta, tuple(one[None] for one in self.values)))

    def weights(self, theta: Array) -> Array:
        """Probabilities of `values` that add up to 1, shape (m, v)."""
        found = self.probabilities(theta)
        with np.errstate(all="ignore"):
            return np.asarray(found / found.sum(axis=1, keepdims=True))

    def drawn_by(self, theta: Array) -> Callable[[Array], Columns]:
        """Function that makes columns of records, shape (m, n), of uniforms, shape (k, m, n)."""
        if self.sample is not None:
            given = self.parameters(theta)
            return lambda uniforms: self._made(given, tuple(uniforms), len(theta))
        assert self.values is not None
        values = self.values
        bounds = np.cumsum(self.weights(theta), axis=1)
        bounds[:, -1] = 1.0
        # Of all chains one after the other, so that one search finds all records.
        chain = np.arange(len(theta))[:, None]
        ends = (bounds + chain).ravel()

        def draw(uniforms: Array) -> Columns:
            place = np.searchsorted(ends, uniforms[0] + chain) - chain * len(values[0])
            return tuple(one[np.clip(place, 0, len(one) - 1)] for one in values)

        return draw

    def _made(self, given: Any, uniforms: Columns, chains: int) -> Columns:
        """Columns of `sample` for parameters, shape (m, n)."""
        assert self.sample is not None
        with np.errstate(all="ignore"):
            try:
                made = self.sample(SimpleNamespace(**vars(given)), *uniforms)
            except Exception as error:  # of the function, whatever it is
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise DpmcError(
                    f"`sample` must be a function of the parameters and of uniforms, got {reason}"
                ) from None
        columns = made if isinstance(made, tuple | list) else (made,)
        shape = chains, uniforms[0].shape[-1]
        return tuple(numbers("sample", one, shape) for one in columns)

    def sums_of(self, rows: Columns) -> Array:
        """Statistics of records, shape (..., q)."""
        with np.errstate(all="ignore"):
            return self.statistic(*rows)

    def moments(self, theta: Array, level: int) -> tuple[Array, Array, Array]:
        """Mean (m, q), covariance (m, q, q) and skewness (m, q) of the statistic of a record.

        Parameters
        ----------
        theta : ndarray of shape (m, d)
        level : int
            Which rule of integration.
        """
        if self.values is not None:
            weights = self.weights(theta)
            statistic = self.sums_of(tuple(one[None] for one in self.values))
        else:
            uniforms, weights = rule(self.num_uniforms, level)
            statistic = self.sums_of(
                self._made(self.parameters(theta), tuple(one[None] for one in uniforms), len(theta))
            )
            weights = weights[None]
        with np.errstate(all="ignore"):
            mean = (weights[..., None] * statistic).sum(axis=1)
            centred = statistic - mean[:, None]
            weighted = weights[..., None] * centred
            covariance = np.swapaxes(weighted, 1, 2) @ centred
            variance = np.diagonal(covariance, axis1=1, axis2=2)
            third = (weighted * centred**2).sum(axis=1)
            skewness = np.where(variance > 0, third / variance**1.5, 0.0)
        return mean, covariance, skewness

    def level(self, theta: Array, num_records: float) -> int | None:
        """Least rule that is good enough for sums of so many records; None if none is."""
        if self.values is not None:
            return 0
        found = [self.moments(theta, 0)]
        for level in range(1, num_levels(self.num_uniforms)):
            found.append(self.moments(theta, level))
            (mean, covariance, _), (better, larger, _) = found[-2:]
            before, after = (np.diagonal(one, axis1=1, axis2=2) for one in (covariance, larger))
            with np.errstate(all="ignore"):
                apart = np.abs(mean - better) * np.sqrt(num_records / after)
                wide = np.abs(before / after - 1)
            still = after <= 1e-12 * better**2  # constants have neither
            if np.all(still | ((apart < MEAN_ERROR) & (wide < VARIANCE_ERROR))):
                return level - 1
        return None


def num_levels(num_uniforms: int) -> int:
    """How many rules of integration there are."""
    return len(LEVELS.get(num_uniforms, SEQUENCE))


@lru_cache(maxsize=8)
def rule(num_uniforms: int, level: int) -> tuple[Array, Array]:
    """Points in the unit cube, shape (k, n), and their weights.

    The trapezoidal rule on normal quantiles, which converges fast for smooth functions and whose
    ends do no harm; in more than three dimensions a scrambled Sobol sequence.
    """
    if num_uniforms not in LEVELS:
        number = SEQUENCE[level]
        points = qmc.Sobol(num_uniforms, rng=np.random.default_rng(0)).random(number)
        return points.T, np.full(number, 1 / number)
    one = np.linspace(-FURTHEST, FURTHEST, LEVELS[num_uniforms][level])
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*[one] * num_uniforms)])
    weights = norm.pdf(grid).prod(axis=0)
    kept = weights > 1e-11 * weights.max()
    return ndtr(grid[:, kept]), weights[kept] / weights[kept].sum()


def numbers(name: str, found: Any, shape: tuple[int, ...]) -> Array:
    """Numbers that a function of a user returned for records, read-only, in their shape.

    Raises
    ------
    DpmcError
        If they are no real numbers, or as many as records in no way.
    """
    array = np.empty(0, dtype=object)
    with contextlib.suppress(ValueError):  # rows of several lengths
        array = np.asarray(found)
    with contextlib.suppress(ValueError):  # of another shape
        if array.dtype.kind in "biuf" and not np.ma.isMaskedArray(found):
            return np.broadcast_to(array.astype(np.float64, copy=False), shape)
    raise DpmcError(
        f"`{name}` must return real numbers, one for each record, got {type(found).__name__} of "
        f"{array.dtype} with shape {array.shape} for records of shape {shape}"
    )


def _evaluated(value: Any, inputs: Any) -> Any:
    if isinstance(value, Node):
        (found,) = source.values([value], inputs)
        return np.broadcast_to(found, np.shape(found))  # read-only
    if isinstance(value, tuple):
        return tuple(_evaluated(one, inputs) for one in value)
    return value


def _finite(values: Array) -> Array:
    """Log-densities, of which what is no number is minus infinity."""
    return np.where(np.isnan(values), -np.inf, values)


def check(records: Records, theta: Array) -> None:
    """Refuse functions of a user that do not fit together, at a few parameters of the prior."""
    if records.values is not None:
        total = records.probabilities(theta).sum(axis=1)
        if total.max() > 1 + 1e-6:
            raise DpmcError(
                "the model must have log-likelihoods whose exponentials add up to at most 1 over "
                f"`values`, got {total.max():.6g}: no term may be left out"
            )
        if total.max() < 0.5:
            raise DpmcError(
                "`values` must be all records that the model has, got ones with a probability of "
                f"at most {total.max():.3g} in all"
            )
        return
    _check_score(records, theta)


def _check_score(records: Records, theta: Array) -> None:
    """Refuse samples of another model: the mean of its score is zero under its own records."""
    uniforms, weights = rule(records.num_uniforms, 1)
    rows = records.drawn_by(theta)(uniforms[:, None])
    if len(rows) != (records.model.num_columns or 1):
        raise DpmcError(
            f"`sample` must return {records.model.num_columns} columns, as the model has, got "
            f"{len(rows)}"
        )
    step = 1e-5
    for k in range(records.model.dim):
        moved = np.zeros(records.model.dim)
        moved[k] = step
        ends = [records.log_likelihood(theta + sign * moved, rows) for sign in (-1, 1)]
        with np.errstate(invalid="ignore"):
            score = (ends[1] - ends[0]) / (2 * step)
        known = np.isfinite(score)
        score = np.where(known, score, 0.0)
        mean, square = score @ weights, score**2 @ weights
        # Half of the parameters may be so far out that the rule says nothing.
        far = np.abs(mean) > 0.05 * np.sqrt(square) + 1e-6
        if np.mean(far) > 0.5:
            raise DpmcError(
                "`sample` must draw records of the model: the mean of the slope of the "
                f"log-likelihood is not zero under its records, for coordinate {k} of theta"
            )
