"""Columns and priors of a regression as its arguments give them, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.families.likelihoods import LIKELIHOODS
from dpmc.fits.predictive import (
    BINOMIAL,
    LINEAR,
    LOGISTIC,
    MULTINOMIAL,
    NEGATIVE_BINOMIAL,
    ORDINAL,
    POISSON,
    STUDENT_T,
    WEIBULL,
)
from dpmc.fitting import AUTOMATIC
from dpmc.types import Array, DpmcError, InvalidRows

# Likelihoods with a search of their own; those of responses with a scale.
SEARCHED = LINEAR, STUDENT_T, LOGISTIC, POISSON
SCALED = LINEAR, STUDENT_T
# What responses must be, where not every number is one.
RESPONSES: Mapping[str, tuple[str, Callable[[Array], Any]]] = {
    LOGISTIC: ("0 or 1", lambda y: (y == 0) | (y == 1)),
    POISSON: ("at least 0", lambda y: y >= 0),
}


def check_beside(likelihood: str, automatic: bool, beside: Mapping[str, Any], classes: Any) -> None:
    """Refuse columns, or a number of classes, that a likelihood has nothing for."""
    shift = {"offset", "exposure"}
    allowed = {
        "offset": (*SEARCHED, *(name for name, one in LIKELIHOODS.items() if one.size)),
        "exposure": (POISSON, NEGATIVE_BINOMIAL),
        "trials": (BINOMIAL,),
        "event": (WEIBULL,),
    }
    for name, given in beside.items():
        if given is None:
            continue
        if likelihood not in allowed[name]:
            raise DpmcError(f"`{name}` must be None with likelihood {likelihood!r}")
        if name in shift and not automatic and likelihood not in SCALED:
            raise DpmcError(
                f"`{name}` must be None beside a `method` with likelihood {likelihood!r}"
            )
    if likelihood == BINOMIAL and beside["trials"] is None:
        raise DpmcError("`trials` must be given with likelihood 'binomial'")
    if likelihood in (MULTINOMIAL, ORDINAL):
        checks.at_least("classes", classes, 3)
    elif classes is not None:
        raise DpmcError(f"`classes` must be None with likelihood {likelihood!r}, got {classes!r}")


def check_general(likelihood: str, **given: Any) -> None:
    """Refuse what a likelihood with the general search has nothing for."""
    for name, value in given.items():
        usual = {"method": AUTOMATIC, "covariance": "auto"}.get(name)
        if value is not None and not (isinstance(value, str) and value == usual):
            raise DpmcError(f"`{name}` must be {usual!r} with likelihood {likelihood!r}")


def others(likelihood: str, classes: int | None) -> tuple[str, ...]:
    """Names of the components behind the coefficients."""
    if likelihood == ORDINAL and classes is not None:
        return tuple(f"threshold[{k}]" for k in range(1, classes))
    shape = LIKELIHOODS[likelihood].shape if likelihood in LIKELIHOODS else ""
    return (shape,) if shape else ()


def of_coefficients(
    name: str, given: Any, coefficients: Sequence[str], others: float | None = None
) -> Array:
    """Number of each coefficient: given one for all, in their order, or by name."""
    if isinstance(given, Mapping):
        unknown = [one for one in given if one not in coefficients]
        missing = [one for one in coefficients if one not in given]
        if unknown or (missing and others is None):
            wrong = f"got {unknown[0]!r}" if unknown else f"got none of {missing[0]!r}"
            raise DpmcError(f"`{name}` must be of {', '.join(map(repr, coefficients))}, {wrong}")
        given = [given.get(one, others) for one in coefficients]
    numbers = checks.real_array(name, [given] if np.ndim(given) == 0 else given)
    if numbers.ndim != 1 or len(numbers) not in (1, len(coefficients)):
        raise DpmcError(
            f"`{name}` must be one number, or {len(coefficients)}, one for each coefficient, got "
            f"{len(numbers)}"
        )
    if not np.isfinite(numbers).all():
        raise DpmcError(f"`{name}` must be finite, got {given!r}")
    return np.broadcast_to(numbers, (len(coefficients),)).copy()


def behind(
    likelihood: str,
    invalid_rows: InvalidRows,
    classes: int | None,
    y: Array,
    offset: Array | None = None,
    exposure: Array | None = None,
    trials: Array | None = None,
    event: Array | None = None,
) -> Array:
    """Columns behind the features: an offset and events, where there are such, and responses."""
    special = LIKELIHOODS.get(likelihood)
    if likelihood in RESPONSES or special is not None:
        wanted, allowed = (
            RESPONSES[likelihood] if special is None else (special.wanted, special.allowed)
        )
        found = np.asarray(allowed(y)) & (True if classes is None else y < classes)
        y = _possible("y", y, f"{wanted} with likelihood {likelihood!r}", found, invalid_rows)
    if exposure is not None:
        positive = _possible("exposure", exposure, "positive", exposure > 0, invalid_rows)
        offset = np.log(positive) + (0.0 if offset is None else offset)
    if likelihood in SCALED:
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would tell of a row
            return y if offset is None else y - offset
    if special is not None and special.size is not None and offset is None:
        offset = np.zeros_like(y)
    if likelihood == WEIBULL:
        event = np.ones_like(y) if event is None else event
        happened = (event == 0) | (event == 1)
        event = _possible("event", event, "0 or 1", happened, invalid_rows)
    if trials is not None:
        counted = (trials > 0) & (trials == np.floor(trials))
        trials = _possible("trials", trials, "a positive count", counted, invalid_rows)
        within = ~(y > trials)  # where trials are valid
        y = _possible("y", y, "at most `trials`", within, invalid_rows)
    columns = [one for one in (offset, trials, event, y) if one is not None]
    return np.concatenate(columns, axis=1)


def _possible(
    name: str, values: Array, wanted: str, allowed: Any, invalid_rows: InvalidRows
) -> Array:
    """Numbers, those that are not allowed refused or marked as invalid."""
    wrong = np.isfinite(values) & ~allowed
    if not wrong.any():
        return values
    if invalid_rows != "zero":
        raise DpmcError(f"`{name}` must be {wanted}, unless `invalid_rows` is 'zero', got others")
    return np.where(wrong, np.nan, values)
