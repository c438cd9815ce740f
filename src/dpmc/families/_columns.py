"""Columns and priors of a regression as its arguments give them, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.families.likelihoods import ALL, LIKELIHOODS
from dpmc.fits.predictive import (
    BINOMIAL,
    LINEAR,
    MULTINOMIAL,
    NEGATIVE_BINOMIAL,
    ORDINAL,
    POISSON,
    STUDENT_T,
    WEIBULL,
)
from dpmc.fitting import AUTOMATIC
from dpmc.formulas.columns import places
from dpmc.formulas.syntax import checked_levels
from dpmc.types import Array, DpmcError, InvalidRows, frames

# Likelihoods of responses with a scale.
SCALED = LINEAR, STUDENT_T


def check_beside(likelihood: str, beside: Mapping[str, Any], classes: Any) -> None:
    """Refuse columns, or a number of classes, that a likelihood has nothing for."""
    allowed = {
        "offset": tuple(name for name, one in ALL.items() if one.offset),
        "exposure": (POISSON, NEGATIVE_BINOMIAL),
        "trials": (BINOMIAL,),
        "event": (WEIBULL,),
        "group": tuple(name for name, one in ALL.items() if one.offset),
        "weights": tuple(ALL),
    }
    for name, given in beside.items():
        if given is None:
            continue
        if likelihood not in allowed[name]:
            raise DpmcError(f"`{name}` must be None with likelihood {likelihood!r}")
    if likelihood == BINOMIAL and beside["trials"] is None:
        raise DpmcError("`trials` must be given with likelihood 'binomial'")
    if likelihood in (MULTINOMIAL, ORDINAL):
        if classes is None:
            raise DpmcError(
                f"`classes` must be given with likelihood {likelihood!r}, an integer of at least "
                "3, or by a formula: C(y, levels=[0, 1, 2]) as its response"
            )
        checks.at_least("classes", classes, 3)
    elif classes is not None:
        raise DpmcError(f"`classes` must be None with likelihood {likelihood!r}, got {classes!r}")


def check_general(likelihood: str, grouped: bool, **given: Any) -> None:
    """Refuse what the general search has nothing for."""
    named = f"with likelihood {likelihood!r}"
    refused: dict[str, tuple[str | None, str]] = {}
    if grouped:
        refused["method"] = AUTOMATIC, "beside `group`"
    if likelihood in (MULTINOMIAL, ORDINAL):
        refused["prior_mean"] = None, named
    if likelihood == ORDINAL or grouped:
        refused["start"] = None, named if likelihood == ORDINAL else "beside `group`"
    for name, (usual, where) in refused.items():
        got = given[name]
        if got is not None and not (isinstance(got, str) and got == usual):
            raise DpmcError(f"`{name}` must be {usual!r} {where}")


def group_of(given: Any, levels: Any) -> tuple[Any, tuple[str, ...]]:
    """Place of each entry among levels, -1 where it is none, and names of the levels."""
    if given is None or levels is None:
        if given is not None or levels is not None:
            raise DpmcError("`group` and `levels` must both be given, or neither")
        return None, ()
    if isinstance(levels, str) or not isinstance(levels, Sequence):
        raise DpmcError(f"`levels` must be a list of texts or numbers, got {levels!r}")
    found = checked_levels("`levels` must have", levels)
    entries = frames.array("`group`", given)
    if entries.ndim != 1:
        raise DpmcError(f"`group` must be one level for each row, got shape {entries.shape}")
    codes = places(entries, found).astype(np.float64)
    # Whose index is to be that of the features.
    labelled = hasattr(given, "reindex") and hasattr(given, "index")
    return type(given)(codes, given.index) if labelled else codes, tuple(map(str, found))


def others(likelihood: str, classes: int | None) -> tuple[str, ...]:
    """Names of the components behind the coefficients and groups."""
    if likelihood == ORDINAL and classes is not None:
        return tuple(f"threshold[{k}]" for k in range(1, classes))
    shape = ALL[likelihood].shape
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
    group: Array | None = None,
    weights: Array | None = None,
) -> Array:
    """Columns behind the features: group, weight, offset and events, if there are, and responses.

    Those of the general search have an offset, of zeros where none is given.
    """
    one = ALL[likelihood]
    general = likelihood in LIKELIHOODS or group is not None or weights is not None
    found = np.asarray(one.allowed(y)) & (True if classes is None else y < classes)
    y = _possible("y", y, f"{one.wanted} with likelihood {likelihood!r}", found, invalid_rows)
    if exposure is not None:
        positive = _possible("exposure", exposure, "positive", exposure > 0, invalid_rows)
        offset = np.log(positive) + (0.0 if offset is None else offset)
    if likelihood in SCALED:
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would tell of a row
            y, offset = y if offset is None else y - offset, None
    if general and one.offset and offset is None:
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
    if group is not None:
        group = _possible("group", group, "a level that is declared", group >= 0, invalid_rows)
    if weights is not None:
        weights = _possible("weights", weights, "at least 0", weights >= 0, invalid_rows)
    columns = [one for one in (group, weights, offset, trials, event, y) if one is not None]
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
