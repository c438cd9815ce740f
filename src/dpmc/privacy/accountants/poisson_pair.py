"""The accounting rule of the Fourier accountant, as the authors of raisa2021dphmc used it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmc.privacy import accounting
from dpmc.privacy.accountants._composition import compose
from dpmc.privacy.accountants._pairs import PoissonSubstitution, split
from dpmc.types import check_epsilon

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts

# Proof, with s the noise multiplier and N(m) short for N(m, s**2): where
# P = (1-q) N(0) + q N(1) exceeds exp(epsilon) N(0) we have x > 1/2, and there
# (1-q) N(0) + q N(-1) <= N(0). So the divergence of this pair is at least that of
# P from N(0), which is the worst case of sampling without replacement; both pairs
# are taken symmetric.
UPPER_BOUND = True
REMARK = (
    "the pair q N(+-1, s^2) + (1-q) N(0, s^2) describes Poisson sampling with substitution; with s "
    "the noise over the SUBSTITUTION sensitivity, as here, it is a loose upper bound for batches "
    "drawn without replacement; with s the noise over the REMOVAL sensitivity it would be none"
)


def delta(counts: Counts, epsilon: float) -> float:
    """Return an upper bound on delta at `epsilon`, by the authors' pair for each batch release.

    Parameters
    ----------
    counts : mapping of DpEvent to int
        Gaussian events, sampled without replacement or not. Those from all rows
        are composed exactly.
    epsilon : float
        At least 0.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    DpmcError
        If an event is of another kind.
    """
    check_epsilon(epsilon, zero=True)
    pairs = split("poisson_pair", counts, PoissonSubstitution)
    return compose(pairs, epsilon) if pairs else 0.0


def epsilon(counts: Counts, delta: float) -> float:
    """Return an upper bound on epsilon at `delta`."""
    return accounting.smallest_epsilon(lambda value: _delta(counts, value), delta)


_delta = delta
