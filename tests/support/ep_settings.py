"""Settings of the engines of expectation propagation under the names of methods."""

from __future__ import annotations

import math

import numpy as np

from dpmc.ep.mixture.settings import MixtureSettings
from dpmc.ep.network.settings import NetworkSettings

SITES = {"adf": "none", "ep": "per_row", "sep": "shared", "dp_sep": "shared"}
# A clip that never binds.
WIDE = {"clip": "joint", "clip_bound": 1e150}


def mixture_settings(
    method, num_passes, step, clip="none", clip_bound=None, noise_multiplier=0.0, *others, **more
):
    """Return the settings of a method on a mixture; the next positional one is the order."""
    if others:
        (more["order"],) = others
    return MixtureSettings(
        sites=SITES[method],
        num_passes=num_passes,
        step=step,
        clip=clip,
        clip_bound=clip_bound,
        noise_multiplier=noise_multiplier,
        **more,
    )


def network_settings(method, hidden=50, num_passes=40, **more):
    """Return the settings of a method on a network, EP damped by 0.4 as in the public code.

    Those of ``"dp_sep"`` always clip, so that factors are stored before they are included, and
    raise precisions to those of the prior.
    """
    chosen = {"ep": {"step": 0.4}, "dp_sep": {**WIDE, "precision_floor": "prior"}}.get(method, {})
    fixed = {"sites": SITES[method], "hidden": hidden, "num_passes": num_passes}
    return NetworkSettings(**{**fixed, **chosen, **more})


def svec(h, precision):
    """Return theta as a vector whose norm is that of (h, Lambda): lower halves, times sqrt(2)."""
    lower = np.tril_indices(precision.shape[1])
    scale = np.where(lower[0] == lower[1], 1.0, math.sqrt(2))
    return np.concatenate([h.ravel(), (scale * precision[:, lower[0], lower[1]]).ravel()])
