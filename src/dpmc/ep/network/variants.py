"""Named variants of the settings of expectation propagation on a network.

``dp_valid`` is :func:`private`; :func:`intended` is what the public code of the paper says and does
not do, and not private.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dpmc import checks
from dpmc.ep.network.settings import NetworkSettings
from dpmc.types import DpmcError


def fixed_prior(hidden: int, num_passes: int, noise: tuple[float, float]) -> NetworkSettings:
    """SEP with the prior, first q and noise variance of the clipped public runs.

    The public code of [vinaroz2022dpsep] computes clipped factors and noise, and does not use them.
    Its prior is that of an earlier run without privacy, scaled down. Here all its precisions are
    equal; that they differ is what the earlier run leaves in the prior.

    `noise`: shape a and rate b of the fixed noise precision, constants of the public code for each
    data set. The noise variance is b / (a - 1).
    """
    shape, rate = noise
    checks.positive("rate of noise", rate)
    if not 1 < shape < math.inf:
        raise DpmcError(f"the shape of `noise` must be a finite number > 1, got {shape!r}")
    return NetworkSettings(
        hidden=hidden,
        num_passes=num_passes,
        noise_variance=rate / (shape - 1),
        # The constants of the noise stand in for those of the weights there.
        prior_precision=(shape - 1) / rate,
        block_norm=1.0,
    )


def intended(
    hidden: int,
    num_passes: int,
    noise: tuple[float, float],
    noise_multiplier: float,
    clip_bound: float = 1.0,
) -> NetworkSettings:
    """Settings of the public code if it used its clipped factors and its noise.

    NOT private: the noise is that of a step of 1 / N, and the step is 1.
    """
    return replace(
        fixed_prior(hidden, num_passes, noise),
        clip="per_block",
        clip_bound=clip_bound,
        noise_multiplier=noise_multiplier,
        noise_rule="published",
        precision_floor="published",
    )


def private(
    hidden: int,
    num_passes: int,
    clip_bound: float,
    noise_multiplier: float,
    noise_variance: float | None,
    step: float | None = None,
) -> NetworkSettings:
    """DP-SEP whose guarantee holds: independent rows, a joint clip, all of it noisy.

    Parameters
    ----------
    clip_bound, noise_multiplier : float
        Norm of a clipped factor, and the noise over the sensitivity of a step.
    noise_variance : float or None
        A public constant; ``None`` learns it in two more coordinates of the release.
    step : float, optional
        By default 1 / T: after T passes, 63 per cent of the evidence is in.
    """
    return NetworkSettings(
        hidden=hidden,
        num_passes=num_passes,
        step=1 / num_passes if step is None else step,
        order="independent",
        clip="joint",
        clip_bound=clip_bound,
        noise_multiplier=noise_multiplier,
        precision_floor="prior",
        noise_variance=noise_variance,
    )
