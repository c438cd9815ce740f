"""Settings of expectation propagation on a mixture of Gaussians."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpmc import checks
from dpmc.ep.settings import UpdateSettings
from dpmc.privacy.schedules import Order
from dpmc.types import DpmcError

INVALID_FACTORS = ("skip", "no_change")
# The least that takes the place of a small eigenvalue of Lambda - Lambda_0.
FLOORS = {"prior": 0.0, "noise": 0.0, "factor_sum": 1e-4}


@dataclass(frozen=True, kw_only=True)
class MixtureSettings(UpdateSettings):
    """Settings of a fit of a mixture; theta has the blocks h and Lambda of all components.

    Parameters
    ----------
    sites, num_passes, step, order, clip, clip_bound, noise_multiplier, diagnostics
        As in :class:`dpmc.ep.settings.UpdateSettings`. By default each step draws its row.
    invalid : {"no_change", "skip"}
        What takes the place of a factor that is not finite: one that leaves theta as it is,
        or no step at all. ``"skip"`` also leaves out a step after which the rows alone would
        not add up to a density, as the public code of the paper does; that it was left out
        depends on a row, so private runs refuse it.
    repair : {"prior", "noise", "factor_sum"}
        With ``"no_change"``, for small eigenvalues of Lambda - Lambda_0. ``"prior"``: raise
        those below zero to zero, so that no precision is below that of the prior.
        ``"noise"``, with noise: raise them to what noise alone can reach
        (:func:`dpmc.ep.mixture.engine.noise_edges`). Where less is known, noise on h would put
        a mean anywhere, and a component that is far from all rows gets none back.
        ``"factor_sum"``: raise those below zero to 1e-4, as the public code.
    debias : bool
        For shared sites: divide theta - theta_0 by 1 - (1 - s / N)^K, the share of the rows
        that K steps include.
    clip_prior : bool
        Clip h and Lambda of the prior, each of all components together, as the public code.
        It changes the model and is of no use for privacy.
    """

    order: Order = "independent"
    invalid: Literal["no_change", "skip"] = "no_change"
    repair: Literal["prior", "noise", "factor_sum"] = "prior"
    debias: bool = False
    clip_prior: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("invalid", self.invalid, INVALID_FACTORS)
        checks.one_of("repair", self.repair, tuple(FLOORS))
        checks.one_of("debias", self.debias, (False, True))
        if self.debias and self.sites != "shared":
            raise DpmcError(f"`debias` must be False with sites={self.sites!r}, got True")
        checks.one_of("clip_prior", self.clip_prior, (False, True))
        if self.clip_prior and self.clip == "none":
            raise DpmcError("`clip_prior` must be False with clip='none', got True")
        if self.private and self.invalid == "skip":
            raise DpmcError("`invalid` must be 'no_change' with noise, got 'skip'")
        if self.repair == "noise" and not self.private:
            raise DpmcError("`repair` must be 'prior' or 'factor_sum' without noise, got 'noise'")

    @property
    def num_blocks(self) -> int:
        """Number of blocks of a factor: h and Lambda."""
        return 2
