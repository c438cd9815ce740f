"""Statistics of nodes that keep their rows, in memory or in files, and a release of their sum.

With ``"local"`` sharing every node releases statistics of its own (:mod:`dpmc.linreg.release`).
With ``"secure"`` sharing only their sum is ever seen, with the noise that nodes add to their shares
(:mod:`dpmc.privacy.nodes`): the posterior is then that of one place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dpmc.linreg import release_terms
from dpmc.linreg.release_terms import Terms
from dpmc.linreg.sensitivity import statistics_sensitivity
from dpmc.linreg.sufficient_statistics import node_statistics
from dpmc.linreg.types import NodeStatistics, NoisyStatistics
from dpmc.privacy.clipped import asserted
from dpmc.privacy.ledger import Ledger
from dpmc.privacy.nodes import NodeNoise, NodeValues
from dpmc.rows.persons import Persons
from dpmc.rows.sources import InMemory, Source
from dpmc.shards.federation import Federation
from dpmc.shards.rows import ShardedRows
from dpmc.types import NEIGHBOURS, Array, Dataset, DpmcError, Neighbours


def statistics_of(
    rows: Dataset | ShardedRows, bounds: tuple[float, float], num_nodes: int = 1
) -> NodeStatistics:
    """Add up rows whose last column is the response, in one pass.

    Parameters
    ----------
    rows : Dataset or ShardedRows
        In memory or in files; rows that are not finite are treated as it says.
    bounds : (float, float)
        Largest Euclidean norm of features and largest absolute response; rows beyond are clipped.
    num_nodes : int
        Consecutive parts, as in `node_statistics`.
    """
    source: Source = InMemory(rows) if isinstance(rows, Dataset) else rows
    return node_statistics(
        _pairs(source), num_nodes, source.num_rows, bounds, invalid_rows=source.invalid_rows
    )


def statistics_of_nodes(federation: Federation, bounds: tuple[float, float]) -> NodeStatistics:
    """Add up the rows of each node by itself.

    `federation`: nodes whose last column is the response, of rows and not of persons. `bounds`: as
    of `statistics_of`.
    """
    found = []
    for node in federation.nodes:
        if isinstance(node, Persons):
            raise DpmcError("`unit` must be None for nodes of a linear regression: use dpmc.fit")
        found.append(statistics_of(node, bounds))
    return NodeStatistics(
        num_rows=np.concatenate([one.num_rows for one in found]),
        s=np.concatenate([one.s for one in found]),
        z=np.concatenate([one.z for one in found]),
        u=np.concatenate([one.u for one in found]),
        num_clipped=sum(one.num_clipped for one in found),
        bounds=found[0].bounds,
    )


def release_sum(
    statistics: NodeStatistics,
    x_bound: float,
    y_bound: float,
    terms: Terms,
    noise: NodeNoise,
    *,
    with_u: bool = False,
    ledger: Ledger | None = None,
) -> NoisyStatistics:
    """Release the sum of the statistics of all nodes, each of which adds a share of the noise.

    Parameters
    ----------
    statistics : NodeStatistics
        Of rows clipped to the bounds; one of each node.
    terms : Terms
        Budget and terms; noise is continuous.
    noise : NodeNoise
        How nodes share it.
    with_u : bool
        Release y'y too.
    ledger : Ledger, optional
        Keeps what was released.

    Returns
    -------
    NoisyStatistics
        Of one node. Its standard deviations are those of all shares together, which is what the
        posterior has to know; its guarantee is that of the shares which colluding nodes cannot
        take off again.
    """
    release_terms.check_within(statistics, x_bound, y_bound)
    changes: dict[Neighbours, float] = {
        relation: statistics_sensitivity(x_bound, y_bound, statistics.dim, relation, with_u)
        for relation in NEIGHBOURS
    }
    upper = release_terms.upper(statistics.s)
    vectors = [upper, statistics.z, statistics.u[:, None]][: 3 if with_u else 2]
    multiplier = terms.multiplier()
    sensitivity = changes[terms.neighbours] * (1 + release_terms.rounding(statistics))
    values = NodeValues(
        tuple(
            asserted(vector, sensitivity, terms.neighbours)
            for vector in np.concatenate(vectors, axis=1)
        )
    )
    total = noise.release(ledger or Ledger(), values, multiplier)
    least = changes[terms.neighbours] * multiplier
    shifts = {relation: change / least for relation, change in changes.items()}
    spread = noise.spread * sensitivity * multiplier
    s, z, u = np.split(total[None], np.cumsum([upper.shape[1], statistics.dim]), axis=1)
    # Only the numbers of rows and of features are read here.
    together = replace(statistics, num_rows=statistics.num_rows.sum(keepdims=True))
    sds = spread, spread, spread if with_u else math.nan
    released_u = u[:, 0] if with_u else None
    return release_terms.assemble(together, s, z, released_u, sds, shifts, terms)


def _pairs(source: Source) -> Iterator[tuple[Array, Array]]:
    source.check()
    for piece in source.pieces(0, source.num_rows):
        yield piece[:, :-1], piece[:, -1]
    source.check()
