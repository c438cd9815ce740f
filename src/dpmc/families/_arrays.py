"""Arrays and data frames of users as arrays, and what all ways in check alike."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from dpmc import callers
from dpmc.fits import Fit
from dpmc.fits.remarks import weak
from dpmc.fitting import PosteriorWarning
from dpmc.privacy import spending
from dpmc.privacy.ledger import Noise
from dpmc.types import (
    LOW_BITS,
    SEED,
    Array,
    Dataset,
    DpmcError,
    Guarantee,
    InvalidRows,
    as_numbers,
    frames,
    is_frame,
    is_lazy,
    is_name,
    labels,
    refuse_not_finite,
)


def rows_of(
    x: Any,
    y: Any,
    invalid_rows: InvalidRows,
    names: Sequence[str] = (),
    possible: Callable[..., Array] = lambda responses: responses,
    beside: Mapping[str, Any] | None = None,
    hidden: bool = False,
) -> tuple[Dataset, tuple[str, ...]]:
    """Rows of features and what comes behind them, the response last, and names of the features.

    Parameters
    ----------
    x : array_like of shape (n, p) or data frame
        Features; the columns of a data frame give their names.
    y : array_like of shape (n,)
        Responses.
    invalid_rows : {"refuse", "zero"}
        As in `Dataset`.
    names : sequence of str
        Names that the components are given in the place of those of the columns.
    possible : callable
        Gives what comes behind the features, shape (n, k), from responses, shape (n, 1), and what
        is `beside` them, by name: NaN, or a refusal, where there are no such numbers.
    beside : mapping of str to array_like of shape (n,), optional
        Further columns, None for those that are not given.
    hidden : bool
        As of `Dataset.of`.
    """
    if invalid_rows not in ("refuse", "zero"):
        raise DpmcError(f"`invalid_rows` must be 'refuse' or 'zero', got {invalid_rows!r}")
    if is_lazy(x) or is_lazy(y):
        raise DpmcError(
            "`x` and `y` must be in memory, got a query, of whose rows the order is not known: "
            "give a formula and the query, or collect it"
        )
    features = as_numbers("data 'x':", x, invalid_rows)
    if features.ndim != 2 or not features.shape[1] or not (hidden or len(features)):
        got = f"{features.ndim} dimensions" if hidden else f"shape {features.shape}"
        got += ": give one column as x[:, None], or frame[['age']]" if features.ndim == 1 else ""
        raise DpmcError(f"data 'x': `x` must have rows and columns, got {got}")
    if invalid_rows == "refuse":
        refuse_not_finite("data 'x':", features, x)
    number = None if hidden else len(features)
    if y is None or isinstance(y, str):
        got = "None" if y is None else f"the text {y!r}"
        raise DpmcError(f"`y` must be one response for {_each(number)}, got {got}")
    told = x, len(features), invalid_rows, number
    response = _column_beside("y", y, "response", *told)
    others = {
        name: _column_beside(name, given, "number", *told)
        for name, given in (beside or {}).items()
        if given is not None
    }
    joined = np.concatenate([features, possible(response, **others)], axis=1)
    return Dataset.of("rows", joined, invalid_rows, hidden), column_names(
        x, features.shape[1], names
    )


def _column_beside(
    name: str,
    given: Any,
    what: str,
    x: Any,
    num_rows: int,
    invalid_rows: InvalidRows,
    number: int | None,
) -> Array:
    """Column of an argument beside features `x`, shape (n, 1); None is a number not to be told."""
    column = as_numbers(f"data {name!r}:", given, invalid_rows)
    column = column[:, None] if column.ndim == 1 else column
    if column.shape != (num_rows, 1):
        got = "another number" if number is None else column.shape
        raise DpmcError(f"`{name}` must have one {what} for {_each(number)} of `x`, got {got}")
    frames.check_index(name, given, "x", x)
    if invalid_rows == "refuse" and not np.isfinite(column).all():
        raise DpmcError(f"`{name}` must hold finite numbers only, unless `invalid_rows` is 'zero'")
    return column


def _each(number: int | None) -> str:
    return "each row" if number is None else f"each of {number} rows"


def fields_of(module: Any) -> tuple[str, ...]:
    """Names of the parameters of a method."""
    return tuple(field.name for field in fields(module.Params))


def with_columns(likelihood: Mapping[str, Any], x: Any) -> dict[str, Any]:
    """Likelihood that a plan names, with the names of the columns if they have some."""
    if not is_frame(x) or not all(map(is_name, labels(x))):
        return dict(likelihood)
    return {**likelihood, "columns": [str(label) for label in labels(x)]}


def column_names(x: Any, num_columns: int, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Names of the columns of a data frame; numbered ones of anything else.

    Parameters
    ----------
    x : array_like or data frame
    num_columns : int
    names : sequence of str
        What the components are called instead, if anything: columns need no names then.
    """
    if not is_frame(x) or names:
        return tuple(f"x{k}" for k in range(1, num_columns + 1))
    given = labels(x)
    for k, label in enumerate(given):
        if isinstance(label, tuple):
            raise DpmcError(
                "`x` must have one text or integer for the name of each column, got several, as "
                "of a MultiIndex: join them"
            )
        if not is_name(label):
            raise DpmcError(
                f"`x` must have texts or integers for names of columns, and column {k} has none, "
                "as in a file without a header: name its columns, or the components by `names`"
            )
    if len({*given}) < len(given):
        twice = next(label for label in given if given.count(label) > 1)
        raise DpmcError(f"`x` must have columns of different names, got {twice!r} twice")
    return tuple(map(str, given))


def named(
    names: Sequence[str], default: tuple[str, ...], others: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Names of the components, as given or the default.

    Parameters
    ----------
    names, default : sequence of str
    others : tuple of str
        Names of further components.
    """
    listed = isinstance(names, Iterable) and not isinstance(names, str)
    given = tuple(names) if listed else (None,)
    if not given:
        both = (*default, *others)
        if len({*both}) < len(both):
            taken = next(name for name in default if both.count(name) > 1)
            raise DpmcError(
                f"`x` must have no column {taken!r}, which is another component of the fit: "
                "rename it, or name all components by `names`"
            )
        return default
    texts = tuple(name for name in given if isinstance(name, str))
    if len(given) != len(default) or len({*texts, *others}) != len(default) + len(others):
        shown = list(given) if listed else names
        raise DpmcError(f"`names` must be {len(default)} different names, got {shown!r}")
    return texts


def with_randomness(guarantee: Guarantee, seed: int | None, noise: Noise) -> Guarantee:
    """Guarantee with its noise, that names a seed and noise in floating point as outside of it."""
    if not guarantee.private:
        return guarantee
    named = [*guarantee.outside]
    named += [] if seed is None else [SEED]
    named += [] if noise == "discrete" else [LOW_BITS]
    return replace(guarantee, outside=tuple(named), noise=noise)


def finished(fit: Fit, remarks: Iterator[str] | Sequence[str], num_rows: int) -> Fit:
    """Fit with remarks, each of which is also a warning to the caller of the way in."""
    told = (*remarks, *weak(fit.guarantee, num_rows))
    with spending.told(fit.guarantee, lambda: None):
        for remark in told:
            warnings.warn(remark, PosteriorWarning, stacklevel=callers.stacklevel())
    return replace(fit, remarks=told)
