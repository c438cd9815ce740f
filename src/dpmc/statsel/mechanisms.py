"""Noise of a release and what it guarantees; a new one is a function and an entry of ``TABLE``.

Laplace and Gaussian noise has scale D / (n epsilon) on a mean of n records, D the sensitivity of
their sum [alparslan2023thesis, definition 8 and section 4.2.1], or D / epsilon on each record
[section 4.5]: a record enters one release either way, and so spends epsilon once. Gaussian noise
is epsilon-GDP [dong2022]: not (epsilon, delta)-DP for a small delta with the same number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.numerics.compiled import kept
from dpmc.privacy import smooth_sensitivity
from dpmc.statsel.types import Mechanism
from dpmc.types import NO_GUARANTEE, DpmcError, Guarantee, check_delta, check_epsilon
from dpmc.types.gaussian_curve import delta_of_loss, epsilon_of_loss

_LOG_SQRT_2_PI = 0.5 * math.log(2 * math.pi)


def of_mean(sensitivity: float, n: int, epsilon: float) -> float:
    """D / (n epsilon), the scale of noise on the mean of n records."""
    checks.at_least("n", int(n), 1)
    return of_record(sensitivity, n, epsilon) / n


def of_record(sensitivity: float, n: int, epsilon: float) -> float:
    """D / epsilon, the scale of noise on one record."""
    if not 0 <= sensitivity < math.inf:
        raise DpmcError(f"`sensitivity` must be finite and >= 0, got {sensitivity}")
    check_epsilon(epsilon, infinite=True)
    return sensitivity / epsilon


def gaussian_guarantee(epsilon: float, delta: float | None = None) -> Guarantee:
    """Guarantee of a release that is epsilon-GDP [dong2022, corollary 2.13].

    Parameters
    ----------
    epsilon : float
        mu, the sensitivity over the standard deviation of the noise.
    delta : float, optional
        Where to give epsilon; without it, delta at this very epsilon, 0.127 at 1.

    Returns
    -------
    Guarantee
        None at epsilon = inf.
    """
    if math.isinf(epsilon) and epsilon > 0:
        return NO_GUARANTEE
    check_epsilon(epsilon)
    mean_loss = epsilon**2 / 2
    if delta is None:
        return Guarantee(epsilon, delta_of_loss(mean_loss, epsilon), "replace", "gaussian")
    return Guarantee(epsilon_of_loss(mean_loss, delta), delta, "replace", "gaussian")


def pure_guarantee(name: str) -> Callable[..., Guarantee]:
    """Guarantee of an epsilon-DP mechanism, as a function of epsilon.

    Parameters
    ----------
    name : str
        What proves it.
    """

    def guarantee(epsilon: float, delta: float | None = None) -> Guarantee:
        if math.isinf(epsilon) and epsilon > 0:
            return NO_GUARANTEE
        check_epsilon(epsilon)
        return Guarantee(epsilon, 0.0, "replace", name)

    return guarantee


@kept
def gaussian_log_density(v: Any, scale: Any) -> Any:
    """Log-density of N(0, scale^2)."""
    r = v / scale
    return -0.5 * r * r - np.log(scale) - _LOG_SQRT_2_PI


@kept
def laplace_log_density(v: Any, scale: Any) -> Any:
    """-|v| / scale - log(2 scale): the thesis prints neither factor right [def. 8]."""
    return -np.abs(v) / scale - np.log(2.0 * scale)


def gaussian(per_record: bool = False) -> Mechanism:
    """Gaussian noise on the mean, or on every record (local model)."""
    return Mechanism(
        "per_record_gaussian" if per_record else "gaussian",
        "gaussian",
        per_record=per_record,
        needs_delta=False,
        scale=of_record if per_record else of_mean,
        guarantee=gaussian_guarantee,
        log_density=gaussian_log_density,
    )


def laplace(per_record: bool = False) -> Mechanism:
    """Laplace noise on the mean, or on every record (local model)."""
    return Mechanism(
        "per_record_laplace" if per_record else "laplace",
        "laplace",
        per_record=per_record,
        needs_delta=False,
        scale=of_record if per_record else of_mean,
        guarantee=pure_guarantee("laplace"),
        log_density=laplace_log_density,
    )


def per_record_gaussian() -> Mechanism:
    """Gaussian noise on every record."""
    return gaussian(per_record=True)


def per_record_laplace() -> Mechanism:
    """Laplace noise on every record."""
    return laplace(per_record=True)


def keep_probability(sensitivity: float, n: int, epsilon: float) -> float:
    """Probability of keeping a bit; 1 at epsilon = inf."""
    if sensitivity != 1:
        raise DpmcError(
            f"`sensitivity` must be 1 (bits) for randomised_response, got {sensitivity}"
        )
    return 1.0 / (1.0 + math.exp(-epsilon))


@kept
def log_chance_of_bit(v: Any, scale: Any) -> Any:
    """Log-probability that a bit was kept (v = 0), or flipped; scalars alone."""
    return np.log(scale) if v == 0.0 else np.log1p(-scale)


def randomised_response() -> Mechanism:
    """Bits kept with probability e^epsilon / (1 + e^epsilon), else flipped [example 6]."""
    return Mechanism(
        "randomised_response",
        "bits",
        per_record=True,
        needs_delta=False,
        scale=keep_probability,
        guarantee=pure_guarantee("randomised response"),
        log_density=log_chance_of_bit,
    )


def smooth_laplace(alpha: float | None = None, beta: float | None = None) -> Mechanism:
    """Laplace noise of scale (smooth sensitivity) / alpha [alparslan2023thesis, section 4.4].

    Its scale depends on the data, and the release is (epsilon, delta)-DP [nissim2007, lemma 2.6]:
    the choice of alpha and beta, which the thesis does not give, and its check are in
    :mod:`dpmc.privacy.smooth_sensitivity`.

    Parameters
    ----------
    alpha : float, optional
        The noise is the smooth sensitivity over alpha; by default epsilon / 2.
    beta : float, optional
        The logarithm of the smooth sensitivity changes by at most so much from one data set to
        a neighbour; by default epsilon / (2 log(2 / delta)).
    """
    checks.positive("alpha", alpha, optional=True)
    checks.positive("beta", beta, optional=True)
    constants = functools.partial(smooth_constants, alpha, beta)
    return Mechanism(
        "smooth_laplace",
        "laplace",
        per_record=False,
        needs_delta=True,
        scale=functools.partial(_smooth_scale, alpha),
        guarantee=functools.partial(_smooth_guarantee, constants),
        log_density=laplace_log_density,
        constants=constants,
    )


def smooth_constants(
    alpha: float | None, beta: float | None, epsilon: float, delta: float | None
) -> tuple[float, float]:
    """Constants of noise by smooth sensitivity, refused where they do not give the budget."""
    checked_delta = check_delta(delta, "smooth_laplace")
    usual = smooth_sensitivity.constants(epsilon, checked_delta)
    used = (usual[0] if alpha is None else alpha, usual[1] if beta is None else beta)
    smooth_sensitivity.check(epsilon, checked_delta, *used)
    return used


def _smooth_scale(alpha: float | None, sensitivity: float, n: int, epsilon: float) -> float:
    """Smooth sensitivity over alpha; 0 at epsilon = inf."""
    return 0.0 if math.isinf(epsilon) else sensitivity / (epsilon / 2 if alpha is None else alpha)


def _smooth_guarantee(
    constants: Callable[[float, float | None], tuple[float, float]],
    epsilon: float,
    delta: float | None = None,
) -> Guarantee:
    """Epsilon with the delta that the constants for `delta` really have, at most `delta`."""
    if math.isinf(epsilon):
        return NO_GUARANTEE
    least = smooth_sensitivity.delta_of(epsilon, *constants(epsilon, delta))
    return Guarantee(epsilon, least, "replace", "smooth sensitivity")


TABLE = {
    "gaussian": gaussian,
    "laplace": laplace,
    "per_record_gaussian": per_record_gaussian,
    "per_record_laplace": per_record_laplace,
    "randomised_response": randomised_response,
    "smooth_laplace": smooth_laplace,
}
