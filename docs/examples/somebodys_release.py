"""The share of tenants in a street, given a count with noise that somebody released.

uv run python docs/examples/somebodys_release.py
"""

import math

import dpmc
from dpmc import mechanisms, priors

# Of 300 people, with two-sided geometric noise of scale 6, and 0 where it was negative.
PUBLISHED, SCALE, PEOPLE = 108, 6, 300


def log_likelihood(p, row):
    """Of one person: 1 rents, 0 does not."""
    return row[0] * math.log(p.share) + (1 - row[0]) * math.log1p(-p.share)


def main(path="docs/images/somebodys_release.png", num_draws=2_000):
    """Draw the share given what was published, without a row and without a budget."""
    tenants = dpmc.model(log_likelihood, {"share": priors.beta(1, 1)}, num_columns=1)
    told = dpmc.Release(
        value=PUBLISHED,
        statistic=lambda rents: rents,
        mechanism=mechanisms.geometric(SCALE, clamp=(0, math.inf)),
    )
    fit = dpmc.from_release(tenants, told, n=PEOPLE, values=[0, 1], num_draws=num_draws)
    print(fit.summary())
    fit.plot().savefig(path, dpi=110)
    return fit


if __name__ == "__main__":
    main()
