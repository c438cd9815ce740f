"""Laplace noise of scale (smooth sensitivity) / alpha [alparslan2023thesis, section 4.4].

Its scale depends on the data, and the release is (epsilon, delta)-DP [nissim2007, lemma 2.6]:
the choice of alpha and beta, which the thesis does not give, and its check are in
:mod:`dpmc.privacy.smooth_sensitivity`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from dpmc import checks
from dpmc.privacy import smooth_sensitivity
from dpmc.statsel import noise
from dpmc.statsel.types import Mechanism
from dpmc.types import NO_GUARANTEE, Guarantee, check_delta


@dataclass(frozen=True)
class Params:
    """The constants.

    Parameters
    ----------
    alpha : float, optional
        The noise is the smooth sensitivity over alpha; by default epsilon / 2.
    beta : float, optional
        The logarithm of the smooth sensitivity changes by at most so much from one data set to
        a neighbour; by default epsilon / (2 log(2 / delta)).
    """

    alpha: float | None = None
    beta: float | None = None

    def __post_init__(self) -> None:
        checks.positive("alpha", self.alpha, optional=True)
        checks.positive("beta", self.beta, optional=True)


def scale(params: Params, sensitivity: float, n: int, epsilon: float) -> float:
    """Return the smooth sensitivity over alpha; 0 at epsilon = inf."""
    if math.isinf(epsilon):
        return 0.0
    return sensitivity / (epsilon / 2 if params.alpha is None else params.alpha)


def constants(params: Params, epsilon: float, delta: float | None) -> tuple[float, float]:
    """Return alpha and beta."""
    checked_delta = check_delta(delta, "smooth_laplace")
    usual = smooth_sensitivity.constants(epsilon, checked_delta)
    alpha = usual[0] if params.alpha is None else params.alpha
    beta = usual[1] if params.beta is None else params.beta
    smooth_sensitivity.check(epsilon, checked_delta, alpha, beta)
    return alpha, beta


def guarantee(params: Params, epsilon: float, delta: float | None = None) -> Guarantee:
    """Return epsilon with the delta that the constants for `delta` really have, at most `delta`."""
    if math.isinf(epsilon):
        return NO_GUARANTEE
    checked_delta = check_delta(delta, "smooth_laplace")
    alpha, beta = constants(params, epsilon, checked_delta)
    least = smooth_sensitivity.delta_of(epsilon, alpha, beta)
    return Guarantee(epsilon, least, "replace", "smooth sensitivity")


def build(params: Params) -> Mechanism:
    """Return the mechanism."""
    return Mechanism(
        "smooth_laplace",
        "laplace",
        per_record=False,
        needs_delta=True,
        scale=functools.partial(scale, params),
        guarantee=functools.partial(guarantee, params),
        log_density=noise.laplace_log_density,
        constants=functools.partial(constants, params),
    )
