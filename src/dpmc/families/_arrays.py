"""Arrays and data frames of users as arrays, and what all ways in check alike."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpmc import callers
from dpmc.fits import Fit
from dpmc.fits.remarks import weak
from dpmc.fitting import PosteriorWarning
from dpmc.privacy import spending
from dpmc.privacy.ledger import Noise
from dpmc.types import LOW_BITS, SEED, Dataset, DpmcError, Guarantee, InvalidRows, is_frame


def rows_of(x: Any, y: Any, invalid_rows: InvalidRows) -> tuple[Dataset, tuple[str, ...]]:
    """Return rows of features and a response, the response last, and names of the features.

    Parameters
    ----------
    x : array_like of shape (n, p) or data frame
        Features; the columns of a data frame give their names.
    y : array_like of shape (n,)
        Responses.
    invalid_rows : {"refuse", "zero"}
        As in `Dataset`.

    Raises
    ------
    DpmcError
        If they are no real numbers or do not fit each other, or a row is refused.
    """
    features = matrix("x", x, "zero").x
    if y is None or isinstance(y, str):
        got = "None" if y is None else f"the text {y!r}"
        raise DpmcError(f"`y` must be one response for each of {len(features)} rows, got {got}")
    response = matrix("y", column(y), "zero").x
    if response.shape != (len(features), 1):
        raise DpmcError(
            f"`y` must have one response for each of {len(features)} rows of `x`, got {np.shape(y)}"
        )
    joined = np.concatenate([features, response], axis=1)
    return Dataset.of("rows", joined, invalid_rows), column_names(x, features.shape[1])


def matrix(name: str, values: Any, invalid_rows: InvalidRows) -> Dataset:
    """Return a two-dimensional array of real numbers as a data set.

    Raises
    ------
    DpmcError
        If it is none, or a row is refused.
    """
    return Dataset.of(name, values, invalid_rows)


def column(y: Any) -> Any:
    """Return responses in a row as one column."""
    if np.ma.isMaskedArray(y):
        return y  # refused with its reason
    if is_frame(y):
        return y
    if hasattr(y, "to_frame"):  # a column of a data frame, whose missing values are told apart
        return y.to_frame()
    values = np.asarray(y)
    return values[:, None] if values.ndim == 1 else values


def with_columns(likelihood: Mapping[str, Any], x: Any) -> dict[str, Any]:
    """Return what a plan says of responses, with the names of the columns if there are any."""
    if not is_frame(x):
        return dict(likelihood)
    return {**likelihood, "columns": [str(label) for label in x.columns]}


def column_names(x: Any, num_columns: int) -> tuple[str, ...]:
    """Return the names of the columns of a data frame; numbered ones of anything else."""
    columns = getattr(x, "columns", None)
    if columns is None or len(columns) != num_columns:
        return tuple(f"x{k}" for k in range(1, num_columns + 1))
    return tuple(map(str, columns))


def named(names: Sequence[str], default: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of the components, as given or the default.

    Raises
    ------
    DpmcError
        If there are not so many different ones.
    """
    listed = isinstance(names, Iterable) and not isinstance(names, str)
    given = (tuple(names) if listed else (None,)) or default
    texts = tuple(name for name in given if isinstance(name, str))
    if len(given) != len(default) or len(set(texts)) != len(default):
        shown = list(given) if listed else names
        raise DpmcError(f"`names` must be {len(default)} different names, got {shown!r}")
    return texts


def with_randomness(guarantee: Guarantee, seed: int | None, noise: Noise) -> Guarantee:
    """Return a guarantee that names a seed, and noise in floating point, as outside of it."""
    if not guarantee.private:
        return guarantee
    named = [*guarantee.outside]
    named += [] if seed is None else [SEED]
    named += [] if noise == "discrete" else [LOW_BITS]
    return replace(guarantee, outside=tuple(named))


def finished(fit: Fit, remarks: Iterator[str] | Sequence[str], num_rows: int) -> Fit:
    """Return a fit with remarks, each of which is also a warning to the caller of the way in."""
    told = (*remarks, *weak(fit.guarantee, num_rows))
    with spending.told(fit.guarantee, lambda: None):
        for remark in told:
            warnings.warn(remark, PosteriorWarning, stacklevel=callers.stacklevel())
    return replace(fit, remarks=told)
