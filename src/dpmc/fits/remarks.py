"""Remarks on the draws of a chain: what is wrong with them, and what would help.

All of it is computed from released numbers: it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dpmc.diagnostics.convergence import bulk_ess, split_rhat
from dpmc.fits.fit import Fit
from dpmc.types import Array, Guarantee, swapped

# Limits: R-hat as Vehtari et al. (2021) advise, with room for short chains; the others are where
# means and intervals of a posterior stop being of use.
RHAT = 1.05
FEW_DRAWS = 100
FEW_ITERATIONS = 100
STUCK = 0.02
CLIPPED = 0.2
# An epsilon by which one of all people, 1e10, could be told from the others.
HUGE_EPSILON = 10 * math.log(10)
# What helps chains that are too short.
FREE = "more draws (`num_draws=`), which cost no privacy"
NEARER = "more iterations, or a start nearer to it"
LONGER = (
    "more iterations, which a larger epsilon or fewer chains afford, or steps that are not as short"
)


def remarks(fit: Fit, free: bool = False) -> Iterator[str]:
    """Remarks on what is wrong with the draws of a fit, each with what would help.

    Parameters
    ----------
    fit : Fit
    free : bool
        Whether iterations cost no privacy: chains given what was released once.
    """
    if fit.draws is None or not fit.draws.size:
        return
    if fit.status != "complete":
        yield (
            f"The run stopped early ({fit.status}): its draws are not those of a whole chain. "
            "Shorter steps would help where it left the finite numbers."
        )
    planned = fit.plan.num_iterations
    chains, length = fit.draws.shape[:2]
    iterations = length if planned is None else planned
    if free and iterations < FEW_ITERATIONS:
        yield (
            f"Chains of {iterations} iterations are too few for any sampler: more of them "
            "(`num_draws=`), which cost no privacy, would help."
        )
    elif fit.guarantee.private and iterations < FEW_ITERATIONS:
        fewer = " or fewer chains (`num_chains=1`)" if chains > 1 else ""
        yield (
            f"The budget affords {iterations} iterations of each chain, too few for any sampler: "
            f"larger noise multipliers buy more{fewer}, and `dpmc.fit(model, rows, epsilon=..., "
            "delta=...)` chooses by itself."
        )
    accepted = fit.fraction("accepted", "num_iterations")
    if accepted < STUCK:
        yield (
            f"A share of {accepted:.2g} of the moves was accepted: the draws show where chains "
            "began. Shorter moves or less noise in a decision would help."
        )
    for name in ("ratio_clipped", "gradient_clipped"):
        if name in fit.diagnostics and fit.diagnostics[name].value > CLIPPED:
            share = fit.diagnostics[name].value
            yield (
                f"A share of {share:.2g} of the rows had its {name.partition('_')[0]} clipped: the "
                "chain has another target than the posterior. A larger clip bound clips less and "
                "costs more noise."
            )
    kept = swapped(fit.kept())
    if not np.isfinite(kept).all():
        yield "Some draws are not finite: the chain diverged. Shorter steps would help."
        return
    rhat = split_rhat(kept)
    if rhat > RHAT:
        # Equal chains that stand still have no R-hat; different ones that do have an infinite one.
        yield (
            f"Chains or their halves disagree (R-hat {rhat:.3g}, above {RHAT}): they have not "
            f"reached the posterior. They would need {FREE if free else NEARER}."
        )
    ess = bulk_ess(kept)
    if math.isnan(ess) or ess < FEW_DRAWS:
        count = "no" if math.isnan(ess) else f"{ess:.0f}"
        yield (
            f"The draws are worth {count} independent ones for some component: enough to place "
            "the posterior at best, too few for its width. What would help is "
            f"{FREE if free else LONGER}."
        )


def few(draws: Array) -> Iterator[str]:
    """Say where independent draws, of shape (chains, k, d), are too few to be summarised."""
    number = draws.shape[0] * draws.shape[1]
    if number < FEW_DRAWS:
        yield (
            f"Draws in all: {number}, too few for means and intervals. What would help is {FREE}."
        )


def weak(guarantee: Guarantee, num_rows: int) -> Iterator[str]:
    """Say where a guarantee protects nobody."""
    if guarantee.private and guarantee.epsilon > HUGE_EPSILON:
        yield (
            f"An epsilon of {guarantee.epsilon:.3g} lets the odds of a guess about a "
            f"{guarantee.unit} grow 10^{guarantee.epsilon / math.log(10):.0f}-fold, more than "
            "there are people: choose one of a few units at most."
        )
    if guarantee.private and guarantee.delta * num_rows >= 1:
        yield (
            f"A delta of {guarantee.delta:.3g} allows as much as a mechanism that publishes one "
            f"{guarantee.unit} of {num_rows:,} at random: choose one far below {1 / num_rows:.2g}."
        )
