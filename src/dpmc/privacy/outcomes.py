"""Outcomes of a mechanism, whatever they are, and scores that distinguish two data sets.

An outcome is split into its finite numbers and its kind, which is all else: type, shape, where
it is NaN or infinite, the text of a string, the exception in its place. A score is an estimate of
the log-odds of the neighbour given the outcome: logistic regression on the numbers of a kind,
frequencies where there are none or where a value repeats itself exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmc.types import Array

Labels = npt.NDArray[np.bool_]

# Learnt from fewer outcomes than this, frequencies mislead; such kinds are pooled.
FEWEST = 25
_MOST_SQUARED = 32  # numbers of an outcome whose squares are learnt from too
_NUM_BINS = 64
_NEWTON_STEPS = 12
_MOST_NAMED = 4  # outcomes that a rule is described by
_RIDGE = 1e-2
_LARGEST = 8.0  # spreads from the median beyond which a number teaches nothing more


@dataclass(frozen=True)
class Raised:
    """Exception that a mechanism raised in place of an outcome.

    Parameters
    ----------
    name : str
        Type of the exception.
    text : str
        Its message.
    """

    name: str
    text: str


def encode(outcome: Any) -> tuple[Hashable, tuple[float, ...]]:
    """Kind of an outcome, of the form (coarse, fine), and its finite numbers."""
    if isinstance(outcome, float | int | np.floating | np.integer | np.bool_):
        try:
            number = float(outcome)
        except OverflowError:  # an integer beyond all floats
            number = math.inf
        finite = math.isfinite(number)
        return ("number", "" if finite else repr(outcome)), ((number,) if finite else ())
    if isinstance(outcome, np.ndarray) and outcome.dtype.kind in "fiub":
        values = np.asarray(outcome, dtype=np.float64).ravel()
        usual = np.isfinite(values)
        if usual.all():
            return (f"array{outcome.shape}", ""), tuple(values.tolist())
        odd = " ".join(f"{k}:{values[k]}" for k in np.flatnonzero(~usual))
        return (f"array{outcome.shape}", odd), tuple(values[usual].tolist())
    if isinstance(outcome, Mapping):
        outcome = [part for key in sorted(outcome, key=repr) for part in (repr(key), outcome[key])]
    if isinstance(outcome, list | tuple | np.ndarray):
        kinds: list[Any] = []
        numbers: list[float] = []
        for part in outcome:
            kind, values_of_part = encode(part)
            kinds.append(kind)
            numbers.extend(values_of_part)
        coarse = tuple(kind[0] for kind in kinds)
        return (("sequence", *coarse), tuple(kinds)), tuple(numbers)
    if isinstance(outcome, Raised):
        return (f"raises {outcome.name}", outcome.text), ()
    return (type(outcome).__name__, repr(outcome)), ()


class Outcomes:
    """Outcomes of many runs, those of a kind together.

    Parameters
    ----------
    outcomes : sequence
        One for each run.
    """

    def __init__(self, outcomes: Sequence[Any]) -> None:
        self.values = outcomes
        encoded = [encode(outcome) for outcome in outcomes]
        places: dict[Hashable, list[int]] = {}
        for i, (kind, _) in enumerate(encoded):
            places.setdefault(kind, []).append(i)
        self.kinds: dict[Hashable, tuple[npt.NDArray[np.int64], Array]] = {}
        for kind, indices in places.items():
            matrix = np.array([encoded[i][1] for i in indices], dtype=np.float64)
            self.kinds[kind] = np.array(indices), matrix.reshape(len(indices), -1)

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Log-odds of the neighbour given the numbers of outcomes of one kind."""

    centre: Array
    spread: Array
    weights: Array
    squares: bool
    atoms: Mapping[bytes, float]

    @classmethod
    def learn(cls, numbers: Array, labels: Labels, squares: bool) -> _Numbers:
        """Learn from numbers of shape (m, k) and whether each came from the neighbour."""
        atoms = _atoms(numbers, labels)
        centre = np.median(numbers, axis=0)
        spread = np.quantile(np.abs(numbers - centre), 0.7, axis=0)
        spread = np.where(spread > 0, spread, np.abs(numbers - centre).max(axis=0))
        spread = np.where((spread > 0) & np.isfinite(spread), spread, 1.0)
        squares = squares and numbers.shape[1] <= _MOST_SQUARED
        made = cls(centre, spread, np.zeros(0), squares, atoms)
        weights = _logistic(made._features(numbers, _LARGEST), labels)
        return cls(centre, spread, weights, squares, atoms)

    def _features(self, numbers: Array, largest: float) -> Array:
        with np.errstate(over="ignore"):
            scaled = np.clip((numbers - self.centre) / self.spread, -largest, largest)
        parts = [np.ones((len(numbers), 1)), scaled]
        return np.concatenate(parts + [scaled**2] * self.squares, axis=1)

    def __call__(self, numbers: Array) -> Array:
        score: Array = self._features(numbers, 1e100 if not self.squares else 1e9) @ self.weights
        if self.atoms:
            for i, row in enumerate(numbers):
                score[i] = self.atoms.get(row.tobytes(), score[i])
        return score

    def threshold(self, score: float) -> float | None:
        """Number that has a score, where there is one number and no other rule."""
        if self.squares or self.atoms or self.weights.size != 2 or self.weights[1] == 0:
            return None
        return float(self.centre[0] + self.spread[0] * (score - self.weights[0]) / self.weights[1])


@dataclass(frozen=True, eq=False)
class Score:
    """Estimated log-odds of the neighbour given an outcome.

    Parameters
    ----------
    numbers : mapping of kind to callable
        Of the kinds that were learnt from their numbers.
    frequencies : mapping of kind to float
        Log-odds of the others, and of coarse kinds that took in what is rare.
    edges, levels : ndarray
        Bins of the log-odds and what takes their place; empty for none.
    """

    numbers: Mapping[Hashable, _Numbers]
    frequencies: Mapping[Hashable, float]
    edges: Array = field(default_factory=lambda: np.empty(0))
    levels: Array = field(default_factory=lambda: np.empty(0))

    @classmethod
    def learn(
        cls, outcomes: Outcomes, labels: Labels, squares: bool = False, binned: bool = False
    ) -> Score:
        """Learn from outcomes and whether each came from the neighbour."""
        numbers: dict[Hashable, _Numbers] = {}
        frequencies: dict[Hashable, float] = {}
        rare: dict[Hashable, list[npt.NDArray[np.int64]]] = {}
        for kind, (indices, matrix) in outcomes.kinds.items():
            if len(indices) < FEWEST:
                rare.setdefault(_coarse(kind), []).append(indices)
            elif matrix.shape[1]:
                numbers[kind] = _Numbers.learn(matrix, labels[indices], squares)
            else:
                frequencies[kind] = _log_odds(labels[indices])
        for coarse, parts in rare.items():
            frequencies[coarse] = _log_odds(labels[np.concatenate(parts)])
        score = cls(numbers, frequencies)
        if not binned:
            return score
        values = score(outcomes)
        edges = np.unique(np.quantile(values, np.arange(1, _NUM_BINS) / _NUM_BINS))
        bins = np.searchsorted(edges, values, side="right")
        levels = np.array([_log_odds(labels[bins == k]) for k in range(len(edges) + 1)])
        return cls(numbers, frequencies, edges, levels)

    def __call__(self, outcomes: Outcomes) -> Array:
        """Score of each outcome, shape (m,)."""
        values = np.zeros(len(outcomes))
        for kind, (indices, matrix) in outcomes.kinds.items():
            if kind in self.numbers:
                values[indices] = self.numbers[kind](matrix)
            else:
                known = self.frequencies.get(kind, self.frequencies.get(_coarse(kind), 0.0))
                values[indices] = known
        if self.levels.size:
            values = self.levels[np.searchsorted(self.edges, values, side="right")]
        return values

    def region(self, outcomes: Outcomes, threshold: float, above: bool, name: str) -> str:
        """Describe the outcomes whose score is at least, or below, a threshold."""
        sign = ">=" if above else "<"
        if not self.levels.size and len(self.numbers) == 1 and not self.frequencies:
            (only,) = self.numbers.values()
            number = only.threshold(threshold)
            if number is not None:
                rising = (only.weights[1] > 0) == above
                return f"{name} {'>=' if rising else '<='} {number:.4g}"
        scores = self(outcomes)
        inside = np.flatnonzero(scores >= threshold if above else scores < threshold)
        texts: set[str] = set()
        for i in inside.tolist():
            texts.add(_text(outcomes.values[i]))
            if len(texts) > _MOST_NAMED:
                break
        if 0 < len(texts) <= min(_MOST_NAMED, len(inside) // FEWEST):
            return f"{name} is {' or '.join(sorted(texts))}"
        return f"log-odds learnt from the {name} {sign} {threshold:.4g}"


def candidates(outcomes: Outcomes, labels: Labels) -> list[Score]:
    """Scores to choose from: of the numbers, of their squares too, and in bins."""
    learn: Callable[..., Score] = Score.learn
    return [
        learn(outcomes, labels),
        learn(outcomes, labels, squares=True),
        learn(outcomes, labels, binned=True),
    ]


def _coarse(kind: Any) -> Hashable:
    coarse, _ = kind
    return ("rare", coarse)


def _text(outcome: Any) -> str:
    if isinstance(outcome, Raised):
        return f"an exception {outcome.name}"
    text = repr(outcome.item() if isinstance(outcome, np.generic) else outcome)
    return text if len(text) <= 40 else text[:37] + "..."


def _log_odds(labels: Labels) -> float:
    ones = int(np.count_nonzero(labels))
    return math.log((ones + 0.5) / (len(labels) - ones + 0.5))


def _atoms(numbers: Array, labels: Labels) -> dict[bytes, float]:
    """Log-odds of values that repeat themselves exactly."""
    rows: dict[bytes, list[int]] = {}
    for i, row in enumerate(numbers):
        rows.setdefault(row.tobytes(), []).append(i)
    return {key: _log_odds(labels[where]) for key, where in rows.items() if len(where) >= FEWEST}


def _logistic(features: Array, labels: Labels) -> Array:
    """Weights of logistic regression with a small ridge, by Newton's method."""
    weights = np.zeros(features.shape[1])
    ridge = _RIDGE * np.eye(weights.size)
    for _ in range(_NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
        slope = features.T @ (labels - chance) - _RIDGE * weights
        curvature = (features * (chance * (1 - chance))[:, None]).T @ features + ridge
        step = np.linalg.solve(curvature, slope)
        size = np.abs(step).max()
        weights = weights + step * min(1.0, 4.0 / size if size else 1.0)
        if size < 1e-8:
            break
    return weights
