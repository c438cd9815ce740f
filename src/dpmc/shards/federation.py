"""Rows that stay at several nodes, each of which adds its own noise to its sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dpmc.privacy.nodes import NodeNoise, Sharing, check_sharing
from dpmc.rng import Streams
from dpmc.rows.persons import Persons
from dpmc.shards.rows import ShardedRows
from dpmc.shards.units import by_person
from dpmc.types import Dataset, DpmcError, InvalidRows, frames, is_frame, labels


@dataclass(frozen=True)
class Federation:
    """Nodes with rows of their own; made by `federation`.

    Parameters
    ----------
    nodes : tuple of Dataset, ShardedRows or Persons
    sharing : {"secure", "local"}
    colluding : int
    """

    nodes: tuple[Dataset | ShardedRows | Persons, ...]
    sharing: Sharing
    colluding: int

    @property
    def num_rows(self) -> int:
        """Rows, or persons, of all nodes; the number of each is public."""
        return sum(node.num_rows for node in self.nodes)

    @property
    def num_columns(self) -> int:
        """Columns, the same at each node."""
        return num_columns(self.nodes[0])

    @property
    def bounds(self) -> Mapping[str, float]:
        """Public constants that bound every row, the same at each node."""
        return self.nodes[0].bounds

    @property
    def bounds_source(self) -> Literal["public", "data"]:
        """Whether a node took its bounds from its rows."""
        sources = {node.bounds_source for node in self.nodes}
        return "data" if "data" in sources else "public"

    def node_noise(self, seed: int | None, name: str) -> NodeNoise:
        """Noise of the nodes, from a stream of each that `name` and `seed` key."""
        generators = [Streams.of(seed, name, "node", k).noise for k in range(len(self.nodes))]
        return NodeNoise(generators, self.sharing, self.colluding)

    @property
    def invalid_rows(self) -> InvalidRows:
        """Treatment of rows with an entry that is not finite, the same at each node."""
        return self.nodes[0].invalid_rows


def federation(
    nodes: Sequence[Any],
    *,
    sharing: Sharing = "secure",
    colluding: int | None = None,
    invalid_rows: InvalidRows = "refuse",
    unit: str | Sequence[Any] | None = None,
) -> Federation:
    """Rows that stay at several nodes, to be given to `dpmc.fit` in the place of rows.

    A fit then uses sums of the nodes alone, each with the noise of its node on it. Here all nodes
    are simulated in one process: transport and secure aggregation are those of other software.

    Parameters
    ----------
    nodes : sequence of ndarray, Dataset or rows of `open_rows`
        The rows of each node. How many they are is public.
    sharing : {"secure", "local"}
        With ``"secure"`` each node adds a share of the noise, and only the sum of all messages is
        ever seen: by a protocol of secure aggregation, which is assumed. With ``"local"`` the
        message of each node is private by itself; the noise of a sum has as many times the
        variance as there are nodes.
    colluding : int, optional
        With ``"secure"`` sharing, the number of nodes that may tell others their shares: the rest
        of the noise is then what a release needs. By default 1, of two nodes or more: the
        guarantee holds against each of them, which knows its own share. With 0 it does not, and
        names that as outside of it.
    invalid_rows : {"refuse", "zero"}
        Of arrays, as in `Dataset`.
    unit : str or sequence of array_like, optional
        What is protected in the place of a row, as of `dpmc.fit`: a column of every node, or the
        identifiers of the rows of each node. Who has rows at two nodes is a person at each: no
        node can see it, and the guarantee names it as outside.

    Returns
    -------
    Federation

    Raises
    ------
    DpmcError
        If there is no node, they differ in their columns, bounds or treatment of invalid rows, or
        two have one name.

    Examples
    --------
    >>> import numpy as np
    >>> import dpmc
    >>> from dpmc.models import gaussian_mean
    >>> rows = np.random.default_rng(0).normal(size=(30_000, 1))
    >>> model = gaussian_mean.build(gaussian_mean.Params(1, [[1]], prior_variance=100))
    >>> hospitals = federation(np.split(rows, 3))
    >>> result = dpmc.fit(model, hospitals, epsilon=1, delta=1e-6)
    >>> print(result.guarantee.outside[0])
    messages of single nodes (secure aggregation is assumed)
    """
    if isinstance(nodes, str | bytes) or not isinstance(nodes, Iterable):
        raise DpmcError(f"`nodes` must be a list of rows, got a {type(nodes).__name__}")
    listed = list(nodes)
    units = [unit] * len(listed) if unit is None or isinstance(unit, str) else list(unit)
    if len(units) != len(listed):
        raise DpmcError(f"`unit` must be identifiers of each of {len(listed)} nodes")
    given = tuple(
        _node(k, node, invalid_rows, one)
        for k, (node, one) in enumerate(zip(listed, units, strict=True))
    )
    if not given:
        raise DpmcError("`nodes` must be at least one, got none")
    names = [node.name for node in given]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DpmcError(f"`nodes` must have different names, got {twice[0]!r} twice")
    _check_labels(given, listed, unit)
    first = given[0]
    for node in given[1:]:
        if num_columns(node) != num_columns(first):
            raise DpmcError(
                f"node {node.name!r}: must have {num_columns(first)} columns, as the first, got "
                f"{num_columns(node)}"
            )
        if (dict(node.bounds), node.invalid_rows) != (dict(first.bounds), first.invalid_rows):
            raise DpmcError(
                f"node {node.name!r}: `bounds` and `invalid_rows` must be those of the first node"
            )
    if colluding is None:
        colluding = int(sharing == "secure" and len(given) > 1)
    check_sharing(sharing, colluding, len(given))
    return Federation(given, sharing, int(colluding))


def _check_labels(
    given: Sequence[Dataset | ShardedRows | Persons], listed: Sequence[Any], unit: Any
) -> None:
    """Refuse nodes whose columns have names that differ, or another order."""
    first: list[str] | None = None
    for node, rows in zip(given, listed, strict=True):
        if not (is_frame(rows) or isinstance(rows, ShardedRows)):
            continue
        names = rows.names if isinstance(rows, ShardedRows) else labels(rows)
        if not all(map(frames.is_name, names)):
            continue  # which may be a private row
        own = [str(name) for name in names if name != unit]
        first = own if first is None else first
        if own != first:
            raise DpmcError(
                f"node {node.name!r}: columns must be those of the other nodes, {first}, in this "
                f"order, got {own}"
            )


def num_columns(node: Dataset | ShardedRows | Persons | Federation) -> int:
    """Number of columns of rows, wherever they are."""
    return int(node.x.shape[1]) if isinstance(node, Dataset) else node.num_columns


def _node(
    number: int, node: Any, invalid_rows: InvalidRows, unit: Any
) -> Dataset | ShardedRows | Persons:
    if unit is not None:
        return by_person(node, unit, invalid_rows, f"node {number + 1}")
    if isinstance(node, Dataset | ShardedRows):
        return node
    return Dataset.of(f"node {number + 1}", node, invalid_rows)
