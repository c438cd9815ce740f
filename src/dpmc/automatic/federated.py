"""Sums over the rows of several nodes, each by itself, as those over rows at one place."""

from __future__ import annotations

import functools
from typing import Any

from dpmc.automatic.whitened import WhitenedRows
from dpmc.privacy.clipped import Clipped
from dpmc.privacy.nodes import NodeValues
from dpmc.shards.federation import Federation
from dpmc.types import Model


class FederatedRows:
    """The sums that `WhitenedRows` has, as values of each node.

    Parameters
    ----------
    model : Model
        The posterior, written for one row.
    federation : Federation
        The nodes.
    """

    def __init__(self, model: Model, federation: Federation) -> None:
        self.dim, self.tempering = model.dim, model.tempering
        self.num_rows = federation.num_rows
        self._nodes = [WhitenedRows(model, node) for node in federation.nodes]

    def __getattr__(self, name: str) -> Any:
        """Function that asks each node for a sum of this name."""
        if name.startswith("_") or not hasattr(WhitenedRows, name):
            raise AttributeError(name)
        return functools.partial(self._ask, name)

    def _ask(self, name: str, *arguments: Any) -> Any:
        found = [getattr(node, name)(*arguments) for node in self._nodes]
        if isinstance(found[0], dict):
            return {key: NodeValues(tuple(one[key] for one in found)) for key in found[0]}
        if not isinstance(found[0], Clipped):
            return tuple(map(NodeValues, zip(*found, strict=True)))
        return NodeValues(tuple(found))
