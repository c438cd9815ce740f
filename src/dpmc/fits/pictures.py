"""Pictures of one fit: its posterior, and what its budget was spent on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmc import plots
from dpmc.privacy import events
from dpmc.types import DpmcError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpmc.fits.fit import Fit

# Panels that are drawn unless others are asked for.
PANELS = 12


def posterior(fit: Fit, components: Sequence[str]) -> Figure:
    """Marginal densities of some components."""
    kept = fit.kept()
    flat = kept.reshape(-1, kept.shape[2])
    names = fit.names or tuple(f"theta[{k}]" for k in range(flat.shape[1]))
    for name in components:
        if name not in names:
            raise DpmcError(f"`components` must be among {', '.join(names)}, got {name!r}")
    widening, priors = fit.plan.widening, _priors(fit)
    parts = [
        plots.Marginal(
            names[k],
            flat[:, k],
            widening[k] if len(widening) == len(names) else None,
            priors[k] if len(priors) == len(names) else None,
        )
        for k in map(names.index, components or names[:PANELS])
    ]
    remarks = "1 remark" if len(fit.remarks) == 1 else f"{len(fit.remarks)} remarks"
    noted = f"; {remarks}: see summary()" if fit.remarks else ""
    return plots.marginals(parts, f"{fit.guarantee}{noted}")


def budget(fit: Fit) -> Figure:
    """Shares of mu^2 of all that was released."""
    named = [stage for stage in fit.plan.stages if "release" in stage]
    parts: dict[str, float] = {}
    if named:
        for stage in named:
            parts[stage["release"]] = parts.get(stage["release"], 0.0) + stage["share"]
        return plots.shares(parts, str(fit.guarantee))
    for event, count in events.parse(fit.ledger).items():
        noise = events.noise_of(event)
        if noise is None or noise[1] < 1:
            raise DpmcError(
                "`plot_budget` must have a fit whose releases are Gaussian noise on sums over all "
                f"rows, got {events.text(event)}"
            )
        parts[f"{count} with noise {noise[0]:.3g}"] = count / noise[0] ** 2
    if not parts:
        raise DpmcError("`plot_budget` must have a fit that released something, got one without")
    total = sum(parts.values())
    return plots.shares({name: one / total for name, one in parts.items()}, str(fit.guarantee))


def _priors(fit: Fit) -> list[tuple[float, float]]:
    """Mean and standard deviation of each component, where the prior is known to be normal."""
    prior = fit.plan.prior
    if "precision" not in prior:
        return []
    sd = np.sqrt(np.diag(np.linalg.inv(np.array(prior["precision"]))))
    return list(zip(prior["mean"], sd.tolist(), strict=True))
