"""A linear regression in raw units: dollars and square metres, without bounds or scaling.

uv run python docs/examples/raw_units.py
"""

import numpy as np
import pandas as pd

import dpmc


def made_up(number, rng):
    """Rents in dollars, areas in square metres, and years of construction."""
    flats = pd.DataFrame(
        {"area": rng.lognormal(4.2, 0.4, number), "year": rng.integers(1900, 2021, number)}
    )
    noise = 150 * rng.normal(size=number)
    flats["rent"] = 300 + 11 * flats.area + 2.5 * (flats.year - 1960) + noise
    return flats


def main(path="docs/images/raw_units.png", number=20_000):
    """Fit rents, and draw what the budget was spent on: scales and bounds are found with it."""
    flats = made_up(number, np.random.default_rng(2))
    fit = dpmc.regression("rent ~ area + I(year - 1960)", flats, epsilon=1, delta=1e-6)
    print(fit.summary())
    fit.plot_budget().savefig(path, dpi=110)
    return fit


if __name__ == "__main__":
    main()
