"""Settings of expectation propagation in a network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dpmc import checks
from dpmc.types import DpmcError

METHODS = ("adf", "ep", "sep", "dp_sep")
CLIPS = ("none", "joint", "per_block")
ORDERS = ("permutation", "independent")
FLOORS = ("none", "prior", "published")
NOISE_RULES = ("sensitivity", "published")
DIAGNOSTICS = ("none", "exact")
# Blocks of a factor: shift and precision of both layers, and the Gamma part of the noise.
WEIGHT_BLOCKS = 4


@dataclass(frozen=True)
class Params:
    """Settings of a fit.

    With theta the natural parameters of q, theta_0 those of the prior, g the factor of a row
    against its cavity and s the step, methods differ in the cavity and in the update:

    - ``adf``: cavity theta; theta + g.
    - ``ep``: cavity theta - theta_n; theta + s (g - theta_n), which the site theta_n follows.
    - ``sep``: cavity theta - f with f = (theta - theta_0) / N; theta + s (clip(g) - f).
    - ``dp_sep``: as ``sep``, with Gaussian noise on the whole of theta at every step.

    Parameters
    ----------
    method : {"adf", "ep", "sep", "dp_sep"}
    hidden : int
        Units of the hidden layer.
    num_passes : int
        Passes T; each has as many steps as there are rows.
    step : float, optional
        In (0, 1]; by default 0.4 for ``ep`` as in the public code of the paper, else 1.
    order : {"permutation", "independent"}
        Of the rows: a new permutation for each pass, or each step draws its row from all of
        them. Only the latter is what accountants call sampling.
    clip : {"none", "joint", "per_block"}
        Whether the norm of a factor is bounded as a whole, or block by block: shift and
        precision of the first layer, of the second, and the noise precision if learned.
    clip_bound : float
        C > 0.
    noise_multiplier : float
        Standard deviation of the noise over the sensitivity 2 s C (times the root of the
        number of blocks, where each is clipped); >= 0, for ``dp_sep`` only.
    noise_rule : {"sensitivity", "published"}
        ``"published"``: the standard deviation is ``2 C / N`` times the multiplier whatever
        the step and the number of blocks, as the public code of the paper computes it. That
        is the sensitivity of a step of 1 / N with one block, and of no other.
    precision_floor : {"none", "prior", "published"}, optional
        What a precision is raised to after a step: nothing, that of the prior where it is
        below, or 1e-4 where it is not positive. By default ``"prior"`` for ``dp_sep``.
    noise_variance : float, optional
        Of the targets given the network, on their scale in the fit; known and public. By
        default it is learned, its inverse having a Gamma distribution.
    noise_shape, noise_rate : float
        Prior of the learned noise precision; shape > 1.
    prior_precision : float, optional
        Of all weights; by default ``(prior_shape - 1) / prior_rate``.
    refine_prior : bool
        Whether the prior is refined after each pass, see :mod:`dpmc.ep.network.prior_refinement`.
    prior_shape, prior_rate : float
        Gamma distribution of the precision of weights, before it is refined; shape > 1.
    block_norm : float, optional
        Shift and precision of each layer, of the prior and of the first q, are scaled down to
        this norm, as in the public code of the paper. No guarantee needs it.
    debias : bool
        Whether the result is ``theta_0 + (theta - theta_0) / (1 - (1 - s / N)^K)`` after K
        steps: what remains of the start is taken for evidence not yet seen.
    wasted_draws : bool
        Whether the generator of permutations also makes noise that nothing uses.
    diagnostics : {"none", "exact"}
        Of private runs, see :attr:`private`: whether counts that tell of the rows are returned.
        They have no noise and are outside of any guarantee. Other runs return all counts.

    Raises
    ------
    DpmcError
        If a value, or a combination of two, is not allowed.
    """

    method: Literal["adf", "ep", "sep", "dp_sep"]
    hidden: int = 50
    num_passes: int = 40
    step: float | None = None
    order: Literal["permutation", "independent"] = "permutation"
    clip: Literal["none", "joint", "per_block"] = "none"
    clip_bound: float = math.inf
    noise_multiplier: float = 0.0
    noise_rule: Literal["sensitivity", "published"] = "sensitivity"
    precision_floor: Literal["none", "prior", "published"] | None = None
    noise_variance: float | None = None
    noise_shape: float = 6.0
    noise_rate: float = 6.0
    prior_precision: float | None = None
    refine_prior: bool = False
    prior_shape: float = 6.0
    prior_rate: float = 6.0
    block_norm: float | None = None
    debias: bool = False
    wasted_draws: bool = False
    diagnostics: Literal["none", "exact"] = "none"

    def __post_init__(self) -> None:
        checks.one_of("method", self.method, METHODS)
        checks.one_of("order", self.order, ORDERS)
        checks.one_of("clip", self.clip, CLIPS)
        checks.one_of("noise_rule", self.noise_rule, NOISE_RULES)
        checks.one_of("precision_floor", self.precision_floor, (*FLOORS, None))
        checks.one_of("diagnostics", self.diagnostics, DIAGNOSTICS)
        checks.at_least("hidden", self.hidden, 1)
        checks.at_least("num_passes", self.num_passes, 1)
        for name in ("noise_variance", "prior_precision", "block_norm"):
            checks.positive(name, getattr(self, name), optional=True)
        for name in ("noise_shape", "noise_rate", "prior_shape", "prior_rate"):
            checks.positive(name, getattr(self, name))
        for name in ("noise_shape", "prior_shape"):
            if not getattr(self, name) > 1:
                raise DpmcError(f"{name}: {getattr(self, name)!r}, allowed a finite number > 1")
        self._check_step()
        self._check_clip()
        self._check_noise()

    def _check_step(self) -> None:
        if not 0 < self.damping <= 1:
            raise DpmcError(f"step: {self.step!r}, allowed a number in (0, 1]")
        if self.method == "adf" and self.damping != 1:
            raise DpmcError(f"step: {self.step!r}, allowed 1 for method 'adf'")
        if self.debias and (self.refine_prior or self.method not in ("sep", "dp_sep")):
            raise DpmcError(
                "debias: True, allowed for methods 'sep' and 'dp_sep' with refine_prior False"
            )

    def _check_clip(self) -> None:
        number = isinstance(self.clip_bound, int | float)
        if not number or not self.clip_bound > 0:
            raise DpmcError(f"clip_bound: {self.clip_bound!r}, allowed a number > 0")
        bounded = math.isfinite(self.clip_bound)
        if self.clip == "none" and bounded:
            raise DpmcError(f"clip_bound: {self.clip_bound!r}, allowed inf for clip 'none'")
        if self.clip != "none" and self.method in ("adf", "ep"):
            raise DpmcError(f"clip: {self.clip!r}, allowed 'none' for method {self.method!r}")
        if self.method == "dp_sep" and self.noise_multiplier and not bounded:
            raise DpmcError("clip_bound: inf, allowed a finite number > 0 with noise")

    def _check_noise(self) -> None:
        sigma = self.noise_multiplier
        if not isinstance(sigma, int | float) or not 0 <= sigma < math.inf:
            raise DpmcError(f"noise_multiplier: {sigma!r}, allowed a finite number >= 0")
        if sigma and self.method != "dp_sep":
            raise DpmcError(f"noise_multiplier: {sigma!r}, allowed 0 for method {self.method!r}")

    @property
    def private(self) -> bool:
        """Whether a guarantee rests on the noise: nothing but noisy numbers may be seen then."""
        return self.noise_multiplier > 0 and self.noise_rule == "sensitivity"

    @property
    def damping(self) -> float:
        """The step s."""
        if self.step is None:
            return 0.4 if self.method == "ep" else 1.0
        return float(self.step)

    @property
    def floor(self) -> str:
        """The rule for low precisions."""
        if self.precision_floor is None:
            return "prior" if self.method == "dp_sep" else "none"
        return self.precision_floor

    @property
    def learned(self) -> bool:
        """Whether the noise precision is learned."""
        return self.noise_variance is None

    @property
    def first_precision(self) -> float:
        """Precision of the prior of all weights, before it is refined or scaled down."""
        if self.prior_precision is not None:
            return float(self.prior_precision)
        return (self.prior_shape - 1) / self.prior_rate

    @property
    def sensitivity(self) -> float:
        """How far one substituted row can move the natural parameters in one step."""
        if self.clip == "none":
            return math.inf
        blocks = WEIGHT_BLOCKS + self.learned if self.clip == "per_block" else 1
        return 2 * self.damping * self.clip_bound * math.sqrt(blocks)

    def true_multiplier(self, num_rows: int) -> float:
        """Return the noise of a step over its sensitivity, whatever it was meant to be."""
        if self.noise_multiplier and self.noise_rule == "published":
            return self.noise_sd(num_rows) / self.sensitivity
        return float(self.noise_multiplier)

    def noise_sd(self, num_rows: int) -> float:
        """Return the standard deviation of the noise of each coordinate in one step."""
        if not self.noise_multiplier:
            return 0.0
        if self.noise_rule == "published":
            return 2 * self.clip_bound / num_rows * self.noise_multiplier
        return self.sensitivity * self.noise_multiplier

    def noise_of_steps(self, num_rows: int) -> float:
        """Return the standard deviation of the noise that all steps leave on a coordinate.

        A step keeps ``1 - s / N`` of what was there before it.
        """
        left = (1 - self.damping / num_rows) ** 2
        gathered = -math.expm1(self.num_passes * num_rows * math.log(left)) / (1 - left)
        return self.noise_sd(num_rows) * math.sqrt(gathered)
