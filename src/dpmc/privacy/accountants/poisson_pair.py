"""The accounting rule of the Fourier accountant, as the authors of raisa2021dphmc used it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmc.privacy.accountants._numerical import NumericalAccountant
from dpmc.privacy.accountants._pairs import Pair, PoissonSubstitution, split

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


def _pairs(counts: Counts) -> list[tuple[Pair, int]]:
    """Pairs of Gaussian releases, sampled without replacement or not."""
    return split("poisson_pair", counts, PoissonSubstitution)


_accountant = NumericalAccountant(_pairs)
delta = _accountant.delta
epsilon = _accountant.epsilon
