"""A hierarchical model of one's own: trials with effects of their own, of which each is a row.

uv run python docs/examples/hierarchy.py
"""

import math

import numpy as np

import dpmc
from dpmc import priors


def log_likelihood(p, row):
    """Of the estimate of one trial: its effect varies by `between`, its estimate by its error."""
    estimate, error, dose = row
    variance = p.between**2 + error**2
    return -0.5 * math.log(variance) - 0.5 * (estimate - p.effect - p.slope * dose) ** 2 / variance


def made_up(number, rng):
    """Estimates, standard errors and doses of trials."""
    error, dose = rng.uniform(0.2, 1, number), rng.uniform(-1, 1, number)
    effect = rng.normal(0.3 + 0.5 * dose, 0.4)
    return np.column_stack([rng.normal(effect, error), error, dose])


def main(path="docs/images/hierarchy.png", number=20_000):
    """Fit the mean effect, its slope and how trials differ, and draw all three."""
    model = dpmc.model(
        log_likelihood,
        {
            "effect": priors.normal(0, 1),
            "slope": priors.normal(0, 1),
            "between": priors.half_normal(1),
        },
        num_columns=3,
    )
    fit = dpmc.fit(model, made_up(number, np.random.default_rng(4)), epsilon=1, delta=1e-6)
    print(fit.summary())
    fit.plot().savefig(path, dpi=110)
    return fit


if __name__ == "__main__":
    main()
