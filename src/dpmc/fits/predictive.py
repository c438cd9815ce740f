"""What a fit says of new rows: predictors, means, probabilities and responses under its draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmc import checks
from dpmc.fits import new_rows
from dpmc.types import Array, DpmcError, frames, is_frame, labels

LINEAR, STUDENT_T, LOGISTIC, POISSON = "linear", "student_t", "logistic", "poisson"
NEGATIVE_BINOMIAL, BINOMIAL = "negative_binomial", "binomial"
GAMMA, WEIBULL = "gamma", "weibull"
MULTINOMIAL, ORDINAL = "multinomial", "ordinal"
NETWORK, MIXTURE = "network", "mixture"
RESPONSE, MEAN, PROBABILITY, PREDICTOR = "response", "mean", "probability", "linear"
CLASSES = MULTINOMIAL, ORDINAL
KINDS = RESPONSE, MEAN, PROBABILITY, PREDICTOR
# Largest rate of NumPy's counts: from 1e15 on they spread too widely, and beyond 1e18 there are
# none. A rounded normal number cannot be told from a count of skewness 1e-5.
LARGEST = 1e10
# Draws that intervals are made of at most, and numbers that are in memory at once, about.
FEWER_DRAWS, AT_ONCE = 1000, 1 << 21


class Prediction(NamedTuple):
    """Posterior means of what is predicted for new rows, and ends of intervals.

    Parameters
    ----------
    mean, low, high : ndarray of shape (m,)
        Of probabilities of classes (m, classes).
    """

    mean: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Predictor:
    """What is predicted for rows of one design.

    Parameters
    ----------
    likelihood : mapping
        What a fit says of it in its plan: a ``name``, and what the name needs. Empty for a model
        of one's own.
    kind : str or callable
        One of `KINDS`, or a function of a draw, shape (d,), and of rows, shape (m, p), that gives
        numbers of shape (m,).
    design : ndarray of shape (m, p)
        Features, the constant among them.
    offset, trials : ndarray of shape (m,)
    levels : ndarray of shape (m,)
        Place of the group of each row among the levels; zeros where there are no groups.
    """

    likelihood: Mapping[str, Any]
    kind: str | Callable[[Array, Array], Any]
    design: Array
    offset: Array
    trials: Array
    levels: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        likelihood: Mapping[str, Any],
        kind: str | Callable[[Array, Array], Any],
        num_components: int,
        x: Any,
        offset: Any = None,
        trials: Any = None,
        group: Any = None,
    ) -> Predictor:
        """Predictor for new rows, which are checked.

        Parameters
        ----------
        likelihood, kind
            As above.
        num_components : int
            Of a draw.
        x : array_like of shape (m, p)
        offset, trials, group : array_like of shape (m,), optional
        """
        name = likelihood.get("name")
        for what, given in {"offset": offset, "trials": trials, "group": group}.items():
            frames.check_index(what, given, "x", x)
        x, added, grouped = new_rows.read(likelihood, x)
        for what, own, given in (("offset", added, offset), ("group", grouped, group)):
            if own is not None and given is not None:
                raise DpmcError(f"`{what}` must be None: the formula has it")
        offset = offset if added is None else added
        group = group if grouped is None else grouped
        rows = _in_order(likelihood, checks.real_array("x", x), x)
        if rows.ndim != 2:
            raise DpmcError(f"`x` must have shape (m, p), got {rows.shape}")
        if not np.isfinite(rows).all():
            raise DpmcError("`x` must hold finite numbers only, got others")
        known = _beside("offset", offset, "offset" in likelihood, len(rows))
        counted = name == BINOMIAL and kind in (RESPONSE, MEAN)
        known_trials = _beside("trials", trials, counted, len(rows))
        if (known_trials != np.clip(np.round(known_trials), 0, LARGEST)).any():
            raise DpmcError(f"`trials` must be integers from 0 to {LARGEST:g}, got others")
        levels = new_rows.levels(group, likelihood.get("levels"), len(rows))
        if callable(kind):
            return cls(likelihood, kind, rows, known, known_trials, levels)
        refused = MEAN if name in CLASSES else PROBABILITY
        if kind == refused and name not in (LOGISTIC, BINOMIAL):
            other = MEAN if refused == PROBABILITY else PROBABILITY
            raise DpmcError(
                f"`kind` must not be {refused!r} of responses that are {name!r}: give {other!r}"
            )
        if name == NETWORK:
            return cls(likelihood, kind, rows, known, known_trials, levels)
        given = rows.shape[1]
        if likelihood["intercept"]:
            rows = np.column_stack([np.ones(len(rows)), rows])
        if name in CLASSES:
            last = int(likelihood["classes"]) - 1
            num_coefficients = num_components - last if name == ORDINAL else num_components // last
        else:
            num_coefficients = num_components - LAWS[str(name)].scaled
        if "levels" in likelihood:
            num_coefficients -= len(likelihood["levels"]) + 1
        if rows.shape[1] != num_coefficients:
            wanted = num_coefficients - bool(likelihood["intercept"])
            raise DpmcError(f"`x` must have {wanted} columns, got {given}")
        return cls(likelihood, kind, rows, known, known_trials, levels)

    def values(self, draws: Array, rows: slice, rng: np.random.Generator) -> Array:
        """Numbers for some of the rows under draws, shape (k, m); of classes (k, m, classes)."""
        design, offset = self.design[rows], self.offset[rows]
        if callable(self.kind):
            found = [checks.real_array("kind(theta, x)", self.kind(one, design)) for one in draws]
            for one in found:
                if one.shape != (len(design),):
                    raise DpmcError(
                        f"`kind` must give a number for each of {len(design)} rows, got {one.shape}"
                    )
            return np.array(found)
        if self.likelihood["name"] == NETWORK:
            return _network(self.likelihood, draws, design, self.kind == RESPONSE, rng)
        if self.likelihood["name"] == MULTINOMIAL:
            return self._multinomial(draws, design, rng)
        width = design.shape[1]
        predictor = draws[:, :width] @ design.T
        if "levels" in self.likelihood:
            predictor += draws[:, width + self.levels[rows]]
        if "offset" in self.likelihood:
            predictor += offset
        if self.kind == PREDICTOR:
            return predictor
        if self.likelihood["name"] == ORDINAL:
            cuts = draws[:, None, 1 - int(self.likelihood["classes"]) :]
            below = _chance(cuts - predictor[:, :, None])
            return self._classes(np.diff(below, axis=-1, prepend=0.0, append=1.0), rng)
        law = LAWS[self.likelihood["name"]]
        if self.kind == PROBABILITY:
            return _chance(predictor)
        scale = np.exp(draws[:, -1:]) if law.scaled else self.trials[rows]
        if self.kind == MEAN:
            return law.mean(predictor, scale)
        return law.draw(predictor, scale, self.likelihood, rng)

    def _multinomial(self, draws: Array, design: Array, rng: np.random.Generator) -> Array:
        """Probabilities of classes, drawn classes or predictors."""
        blocks = draws.reshape(len(draws), -1, design.shape[1])
        predictor = np.einsum("kcp,mp->kmc", blocks, design)
        if self.kind == PREDICTOR:
            return np.asarray(predictor, dtype=np.float64)
        whole = np.concatenate([np.zeros((*predictor.shape[:2], 1)), predictor], axis=-1)
        whole = np.exp(whole - whole.max(axis=-1, keepdims=True))
        return self._classes(whole / whole.sum(axis=-1, keepdims=True), rng)

    def _classes(self, chances: Array, rng: np.random.Generator) -> Array:
        """Probabilities of classes, or classes that are drawn by them."""
        if self.kind == PROBABILITY:
            return np.asarray(chances, dtype=np.float64)
        uniform = rng.random((*chances.shape[:2], 1))
        drawn: Array = (chances[..., :-1].cumsum(axis=-1) < uniform).sum(axis=-1).astype(np.float64)
        return drawn

    def intervals(self, draws: Array, level: float, rng: np.random.Generator) -> Prediction:
        """Means and intervals, a block of rows at a time."""
        draws = draws[:: -(-len(draws) // FEWER_DRAWS)]
        size = max(AT_ONCE // (len(draws) * int(self.likelihood.get("classes", 1))), 1)
        ends = [(1 - level) / 2, (1 + level) / 2]
        found = []
        for first in range(0, max(len(self.design), 1), size):
            values = self.values(draws, slice(first, first + size), rng)
            values = np.ascontiguousarray(np.moveaxis(values, 0, -1))
            found.append([values.mean(axis=-1), *np.quantile(values, ends, axis=-1)])
        return Prediction(*np.concatenate(found, axis=1))


def responses(
    likelihood: Mapping[str, Any], draws: Array, x: Any, rng: np.random.Generator
) -> Array:
    """Response of each new row under each draw.

    Parameters
    ----------
    likelihood : mapping
        As of a `Predictor`.
    draws : ndarray of shape (k, d)
        Of theta.
    x : array_like of shape (m, p) or int
        Features of new rows; of a mixture their number m.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (k, m), or (k, m, p) of a mixture
    """
    if likelihood["name"] == MIXTURE:
        return _mixture(likelihood, draws, x, rng)
    return Predictor.of(likelihood, RESPONSE, draws.shape[1], x).values(draws, slice(None), rng)


def _beside(name: str, given: Any, wanted: bool, num_rows: int) -> Array:
    """Column beside the features of new rows; zeros without one."""
    if (given is not None) != wanted:
        must = "be given, as to the fit" if wanted else "be None, as of the fit"
        how = ": of an exposure its logarithm" if wanted and name == "offset" else ""
        raise DpmcError(f"`{name}` must {must}{how}")
    if given is None:
        return np.zeros(num_rows)
    known = checks.real_array(name, given)
    if known.shape != (num_rows,) or not np.isfinite(known).all():
        raise DpmcError(f"`{name}` must be {num_rows} finite numbers, one for each row of `x`")
    return known


def _in_order(likelihood: Mapping[str, Any], rows: Array, x: Any) -> Array:
    """Columns of a data frame as they were fitted, by their names."""
    fitted = likelihood.get("columns")
    if fitted is None or not is_frame(x):
        return rows
    given = [str(label) for label in labels(x)]
    for label in fitted:
        if given.count(label) != 1:
            has = "has several" if label in given else "has not"
            raise DpmcError(f"`x` must have the column {label!r} of the fit, and {has}")
    return rows[:, [given.index(label) for label in fitted]]


def _linear(
    predictor: Array, scale: Array, likelihood: Mapping[str, Any], rng: np.random.Generator
) -> Array:
    return predictor + scale * rng.standard_normal(predictor.shape)


def _student_t(
    predictor: Array, scale: Array, likelihood: Mapping[str, Any], rng: np.random.Generator
) -> Array:
    return predictor + scale * rng.standard_t(likelihood["degrees_of_freedom"], predictor.shape)


def _logistic(
    predictor: Array, scale: Array, likelihood: Mapping[str, Any], rng: np.random.Generator
) -> Array:
    ones: Array = (rng.logistic(size=predictor.shape) < predictor).astype(np.float64)
    return ones


def _poisson(
    predictor: Array, scale: Array, likelihood: Mapping[str, Any], rng: np.random.Generator
) -> Array:
    """Counts; infinite ones where a rate is beyond floats, NaN where it is none."""
    rates = _rate(predictor)
    counts: Array = rng.poisson(np.where(rates <= LARGEST, rates, 0.0)).astype(np.float64)
    large = (rates > LARGEST) & np.isfinite(rates)
    if large.any():
        counts[large] = np.round(rng.normal(rates[large], np.sqrt(rates[large])))
    counts[~np.isfinite(rates)] = rates[~np.isfinite(rates)]
    return counts


def _negative_binomial(
    predictor: Array, scale: Array, likelihood: Mapping[str, Any], rng: np.random.Generator
) -> Array:
    with np.errstate(divide="ignore"):
        varied = np.log(scale * rng.standard_gamma(1 / scale, predictor.shape))
    return _poisson(predictor + varied, scale, likelihood, rng)


def _mean_of_successes(predictor: Array, trials: Array) -> Array:
    return trials * _chance(predictor)


def _successes(
    predictor: Array, trials: Array, likelihood: Mapping[str, Any], rng: np.random.Generator
) -> Array:
    return rng.binomial(trials.astype(np.int64), _chance(predictor)).astype(np.float64)


def _gamma(
    predictor: Array, scale: Array, likelihood: Mapping[str, Any], rng: np.random.Generator
) -> Array:
    return _rate(predictor) * rng.standard_gamma(scale, predictor.shape) / scale


def _weibull(
    predictor: Array, scale: Array, likelihood: Mapping[str, Any], rng: np.random.Generator
) -> Array:
    return _rate(predictor + scale * np.log(rng.standard_exponential(predictor.shape)))


def _mean_of_weibull(predictor: Array, scale: Array) -> Array:
    from scipy.special import gammaln

    return _rate(predictor + gammaln(1 + scale))


def _unchanged(predictor: Array, scale: Array) -> Array:
    return predictor


def _chance(predictor: Array, scale: Array | None = None) -> Array:
    small = np.exp(-np.abs(predictor))
    chance: Array = np.where(predictor >= 0, 1.0, small) / (1.0 + small)
    return chance


def _rate(predictor: Array, scale: Array | None = None) -> Array:
    with np.errstate(over="ignore"):
        rate: Array = np.exp(predictor)
    return rate


@dataclass(frozen=True)
class Law:
    """How responses arise from a linear predictor.

    Parameters
    ----------
    mean : callable
        Of a response, given predictors of shape (k, m) and scales of shape (k, 1), or numbers of
        trials of shape (m,).
    draw : callable
        Responses, given these, what the plan says, and a generator.
    scaled : bool
        Whether the last component of theta is the logarithm of a scale.
    """

    mean: Callable[[Array, Array], Array]
    draw: Callable[[Array, Array, Mapping[str, Any], np.random.Generator], Array]
    scaled: bool = False


LAWS: Mapping[str, Law] = {
    LINEAR: Law(_unchanged, _linear, scaled=True),
    STUDENT_T: Law(_unchanged, _student_t, scaled=True),
    LOGISTIC: Law(_chance, _logistic),
    POISSON: Law(_rate, _poisson),
    BINOMIAL: Law(_mean_of_successes, _successes),
    NEGATIVE_BINOMIAL: Law(_rate, _negative_binomial, scaled=True),
    GAMMA: Law(_rate, _gamma, scaled=True),
    WEIBULL: Law(_mean_of_weibull, _weibull, scaled=True),
}


def _network(
    likelihood: Mapping[str, Any],
    draws: Array,
    rows: Array,
    noisy: bool,
    rng: np.random.Generator,
) -> Array:
    """Outputs of networks with one hidden layer of rectified units, with noise or without.

    A draw holds the weights into each hidden unit, its bias last; the weights out of them, the
    bias last; and the logarithm of the standard deviation of the noise.
    """
    low, high = np.asarray(likelihood["x_low"]), np.asarray(likelihood["x_high"])
    hidden, width = int(likelihood["hidden"]), len(low) + 1
    if rows.shape[1] != width - 1:
        raise DpmcError(f"`x` must have {width - 1} columns, got {rows.shape[1]}")
    inputs = np.column_stack([scaled_to_unit(rows, low, high), np.ones(len(rows))])
    outputs = np.empty((len(draws), len(rows)))
    for number, draw in enumerate(draws):
        inner, outer = draw[: hidden * width].reshape(hidden, width), draw[hidden * width : -1]
        active = np.maximum(inputs @ inner.T / np.sqrt(width), 0.0)
        outputs[number] = (active @ outer[:-1] + outer[-1]) / np.sqrt(hidden + 1)
    if noisy:
        outputs += np.exp(draws[:, -1:]) * rng.standard_normal(outputs.shape)
    return scaled_back(outputs, likelihood["y_low"], likelihood["y_high"])


def _mixture(
    likelihood: Mapping[str, Any], draws: Array, num_rows: Any, rng: np.random.Generator
) -> Array:
    checks.at_least("x", num_rows, 1)
    weights = np.asarray(likelihood["weights"])
    means = draws.reshape(len(draws), len(weights), -1)
    which = rng.choice(len(weights), size=(len(draws), num_rows), p=weights)
    chosen = np.take_along_axis(means, which[:, :, None], axis=1)
    spread: Array = float(likelihood["sigma_x"]) * rng.standard_normal(chosen.shape)
    return chosen + spread


def scaled_to_unit(x: Array, low: Array | float, high: Array | float) -> Array:
    """Numbers of a public range on a scale on which the uniform one has variance 1."""
    scaled: Array = (x - (np.add(low, high) / 2)) * (np.sqrt(12) / np.subtract(high, low))
    return scaled


def scaled_back(x: Array, low: float, high: float) -> Array:
    """Numbers on the scale of a public range: the inverse of `scaled_to_unit`."""
    back: Array = x * ((high - low) / np.sqrt(12)) + (low + high) / 2
    return back
