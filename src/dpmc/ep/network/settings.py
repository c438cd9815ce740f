"""Settings of expectation propagation on a network with one hidden layer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dpmc import checks
from dpmc.ep.settings import UpdateSettings
from dpmc.types import DpmcError

FLOORS = ("none", "prior", "published")
NOISE_RULES = ("sensitivity", "published")
# Blocks of a factor: shift and precision of both layers, and the Gamma part of the noise.
WEIGHT_BLOCKS = 4
# Shape and rate of the prior of a noise precision that is learned.
NOISE_GAMMA = (6.0, 6.0)
# Shape and rate of the precision of weights, before it is refined.
PRIOR_GAMMA = (6.0, 6.0)


@dataclass(frozen=True, kw_only=True)
class NetworkSettings(UpdateSettings):
    """Settings of a fit of a network.

    Parameters
    ----------
    sites, num_passes, step, order, clip, clip_bound, noise_multiplier, diagnostics
        As in :class:`dpmc.ep.settings.UpdateSettings`. Blocks are shift and precision of the
        first layer and of the second, and the noise precision if it is learned.
    hidden : int
        Units of the hidden layer.
    noise_rule : {"sensitivity", "published"}
        ``"published"``: the standard deviation is ``2 C / N`` times the multiplier whatever
        the step and the number of blocks, as the public code of the paper computes it. That
        is the sensitivity of a step of 1 / N with one block, and of no other.
    precision_floor : {"none", "prior", "published"}, optional
        What a precision is raised to after a step: nothing, that of the prior where it is
        below, or 1e-4 where it is not positive. By default ``"prior"`` with noise.
    noise_variance : float, optional
        Of the targets given the network, on their scale in the fit; known and public. By
        default it is learned, its inverse having a Gamma distribution.
    prior_precision : float, optional
        Of all weights; by default that of `PRIOR_GAMMA`.
    refine_prior : bool
        Whether the prior of the weights is refined after each pass, from q alone
        (:class:`dpmc.ep.network.engine.PriorFactors`).
    block_norm : float, optional
        Shift and precision of each layer, of the prior and of the first q, are scaled down to
        this norm, as in the public code of the paper. No guarantee needs it.
    wasted_draws : bool
        Whether the generator of permutations also makes noise that nothing uses.
    """

    hidden: int = 50
    noise_rule: Literal["sensitivity", "published"] = "sensitivity"
    precision_floor: Literal["none", "prior", "published"] | None = None
    noise_variance: float | None = None
    prior_precision: float | None = None
    refine_prior: bool = False
    block_norm: float | None = None
    wasted_draws: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("noise_rule", self.noise_rule, NOISE_RULES)
        checks.one_of("precision_floor", self.precision_floor, (*FLOORS, None))
        checks.at_least("hidden", self.hidden, 1)
        for name in ("noise_variance", "prior_precision", "block_norm"):
            checks.positive(name, getattr(self, name), optional=True)
        if self.sites == "none" and self.step != 1:
            raise DpmcError(f"`step` must be 1 with sites='none', got {self.step!r}")

    @property
    def private(self) -> bool:
        """True if a guarantee rests on the noise: only noisy numbers may be seen then."""
        return super().private and self.noise_rule == "sensitivity"

    @property
    def num_blocks(self) -> int:
        """Number of blocks of a factor: those of the weights, and the noise if it is learned."""
        return WEIGHT_BLOCKS + self.learned

    @property
    def floor(self) -> str:
        """The rule for low precisions."""
        if self.precision_floor is None:
            return "prior" if self.noise_multiplier else "none"
        return self.precision_floor

    @property
    def learned(self) -> bool:
        """True if the noise precision is learned."""
        return self.noise_variance is None

    @property
    def first_precision(self) -> float:
        """Precision of the prior of all weights, before it is refined or scaled down."""
        if self.prior_precision is not None:
            return float(self.prior_precision)
        shape, rate = PRIOR_GAMMA
        return (shape - 1) / rate

    def true_multiplier(self, num_rows: int) -> float:
        """Noise of a step over its sensitivity, whatever it was meant to be."""
        if self.noise_multiplier and self.noise_rule == "published":
            return self.noise_sd(num_rows) / self.sensitivity
        return float(self.noise_multiplier)

    def noise_sd(self, num_rows: int) -> float:
        """Standard deviation of the noise of each coordinate in one step."""
        if not self.noise_multiplier:
            return 0.0
        if self.noise_rule == "published" and self.clip_bound is not None:
            return 2 * self.clip_bound / num_rows * self.noise_multiplier
        return self.sensitivity * self.noise_multiplier

    def noise_of_steps(self, num_rows: int) -> float:
        """Standard deviation of the noise that all steps leave on a coordinate.

        A step keeps ``1 - s / N`` of what was there before it.
        """
        # Variance left of the noise of one step after the next one.
        left = (1 - self.step / num_rows) ** 2
        # Geometric series over all steps: (1 - left^K) / (1 - left), without cancellation.
        gathered = -math.expm1(self.num_passes * num_rows * math.log(left)) / (1 - left)
        return self.noise_sd(num_rows) * math.sqrt(gathered)
