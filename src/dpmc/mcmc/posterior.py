"""A model on its rows: what every method asks of the posterior."""

from __future__ import annotations

import functools
from typing import Any

from dpmc.numerics.compiled import compile_once
from dpmc.rows.sums import RowSums, feature_rows
from dpmc.types import Array, Dataset, DpmcError, Model


class Posterior:
    """A model together with the rows that it is conditioned on.

    Parameters
    ----------
    model : Model
        The posterior, written for one row.
    dataset : Dataset
        The private rows.
    consume : bool
        Whether the rows may be overwritten by what the row functions read, so that a
        method which needs one layout of them holds the data once.
    """

    def __init__(self, model: Model, dataset: Dataset, consume: bool = False) -> None:
        self.model = model
        self._dataset: Dataset | None = dataset
        self._consume = consume
        self.dim = model.dim
        self.tempering = model.tempering
        self.num_rows = dataset.num_rows
        self.log_prior: Any = compile_once(model.log_prior)
        self.log_prior_gradient: Any = compile_once(model.log_prior_gradient)

    @functools.cached_property
    def sums(self) -> RowSums:
        """Sums over all rows, compiled when first asked for."""
        return RowSums(self.model, self._take(), self._consume)

    @functools.cached_property
    def batch_rows(self) -> Array:
        """Features of the rows, shape (n, q), for batches of a few rows."""
        return feature_rows(self.model, self._take(), "rows", self._consume)

    def _take(self) -> Dataset:
        dataset = self._dataset
        assert dataset is not None, "rows that were consumed are asked for again"
        if self._consume:
            self._dataset = None
        return dataset

    def clip_bound(self, given: float | None) -> float:
        """Clip bound per unit of distance, by default the Lipschitz constant."""
        if given is not None:
            return given
        if self.model.lipschitz is None:
            raise DpmcError(
                f"`ratio_clip_bound` must be positive, got None (model {self.model.name!r} "
                "declares no Lipschitz constant to take its place)"
            )
        return self.model.lipschitz
