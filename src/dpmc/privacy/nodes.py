"""Noise by nodes that keep their rows: each adds its own to its sum, and no one else's.

Two ways. With ``"secure"`` sharing nobody sees the message of a node, only the sum of all of them:
secure aggregation, which is assumed and not part of this package. Each node then adds a share of
the noise, of variance 1 / (J - t) of the whole where J nodes take part and t of them may collude,
and take their own shares off again: Dwork et al. (2006), *Our data, ourselves*. With ``"local"``
sharing each message is private by itself, and the sum has J times the variance.

With discrete noise (:mod:`dpmc.privacy.discrete`) every message is rounded to one public grid of
step g, and messages are added as integers. A rounded message is an integer k with a probability
that is the mean of B(k - v) over its noise and value v, B the indicator of a cell. So the sum of m
of them has the probability that m-fold convolutions of B give the sum of all noise: a B-spline,
which adds up to 1 over the integers wherever its centre is. That is the sum in real numbers with
its noise, rounded at random, whatever the values are: post-processing of a Gaussian release. What
this leaves out, aliases in the sum of Poisson, is below exp(-s^2) for shares of s >= 2^20 steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from dpmc import checks
from dpmc.privacy import events
from dpmc.privacy.clipped import Clipped
from dpmc.privacy.ledger import Ledger, finite
from dpmc.types import Array, DpmcError

Sharing = Literal["secure", "local"]
SHARINGS: tuple[Sharing, ...] = get_args(Sharing)
# What a guarantee names as outside of it.
ASSUMED = "messages of single nodes (secure aggregation is assumed)"
OWN_SHARE = "what a node knows of its own noise"


@dataclass(frozen=True)
class NodeValues:
    """Values that the nodes computed from their own rows; private.

    Parameters
    ----------
    values : tuple of Clipped
        One for each node, all of one shape and sensitivity. A row is at one node, so that it moves
        one of them.
    """

    values: tuple[Clipped[Any], ...]

    def __post_init__(self) -> None:
        if {type(value) for value in self.values} - {Clipped}:
            raise DpmcError("`values` must carry their sensitivity, as dpmc.privacy.Clipped do")
        if len({(value.sensitivity, value.neighbours) for value in self.values}) > 1:
            raise DpmcError("`values` of all nodes must have one sensitivity and relation")


@dataclass(frozen=True)
class NodeNoise:
    """Noise that nodes add.

    Parameters
    ----------
    generators : sequence of numpy.random.Generator
        One for each node, known to that node alone.
    sharing : {"secure", "local"}
    colluding : int
        Nodes that may put together what they know, with ``"secure"`` sharing: less than there are.
        Against 0 of them noise holds for whoever takes part in nothing: a node knows its own.
    """

    generators: Sequence[np.random.Generator]
    sharing: Sharing = "secure"
    colluding: int = 0

    def __post_init__(self) -> None:
        check_sharing(self.sharing, self.colluding, len(self.generators))

    @property
    def share(self) -> float:
        """Standard deviation of the noise of one node, over what one release needs."""
        honest = len(self.generators) - self.colluding
        return 1.0 if self.sharing == "local" else 1 / math.sqrt(honest)

    @property
    def spread(self) -> float:
        """Standard deviation of the noise of the sum, over what one release needs."""
        return self.share * math.sqrt(len(self.generators))

    @property
    def outside(self) -> tuple[str, ...]:
        """Assumptions that a guarantee names as outside of it."""
        if self.sharing == "local":
            return ()
        alone = self.colluding == 0 and len(self.generators) > 1
        return (ASSUMED, OWN_SHARE) if alone else (ASSUMED,)

    def release(self, ledger: Ledger, nodes: NodeValues, noise_multiplier: float) -> Any:
        """Sum of what nodes send, each with its noise; recorded once.

        A row moves the message of one node: with local noise the ledger is that of each node.

        Parameters
        ----------
        ledger : Ledger
        nodes : NodeValues
        noise_multiplier : float
            As of `Ledger.release`; the sum has `spread` times this noise.
        """
        if len(nodes.values) != len(self.generators):
            raise DpmcError(
                f"`nodes` must have one value for each of {len(self.generators)} nodes, got "
                f"{len(nodes.values)}"
            )
        ledger.record(events.gaussian(noise_multiplier), 1, ledger.noise)
        first = nodes.values[0]
        shape = np.shape(first.value)
        if ledger.noise == "discrete":
            total = self._on_grid(nodes, noise_multiplier)
            return float(total) if not shape else total
        scale = first.sensitivity * noise_multiplier * self.share
        total = np.zeros(shape)
        for node, rng in zip(nodes.values, self.generators, strict=True):
            message = finite(node.value) + scale * rng.standard_normal(shape)
            total = total + message
        return float(total) if not shape else total

    def _on_grid(self, nodes: NodeValues, noise_multiplier: float) -> Array:
        """Sum of messages that lie on one grid: exact, and rounded once."""
        from dpmc.privacy import discrete  # takes long: only where it is needed

        sensitivity = nodes.values[0].sensitivity
        grid = discrete.grid_of(sensitivity * noise_multiplier * self.share)
        messages = [
            discrete.add_gaussian(
                np.atleast_1d(np.asarray(node.value, dtype=np.float64)),
                sensitivity,
                noise_multiplier * self.share,
                grid,
                rng,
            ).ravel()
            for node, rng in zip(nodes.values, self.generators, strict=True)
        ]
        total = np.array([math.fsum(column) for column in zip(*messages, strict=True)])
        return total.reshape(np.shape(nodes.values[0].value))


def check_sharing(sharing: object, colluding: object, num_nodes: int) -> None:
    """Refuse a way to share noise that there is not."""
    checks.one_of("sharing", sharing, SHARINGS)
    whole = isinstance(colluding, int | np.integer) and not isinstance(colluding, bool)
    most = num_nodes - 1 if sharing == "secure" else 0
    if not (whole and 0 <= int(colluding) <= most):  # type: ignore[call-overload]
        raise DpmcError(
            f"`colluding` must be an integer from 0 to {most} for {num_nodes} nodes with "
            f"{sharing!r} sharing, got {colluding!r}"
        )
