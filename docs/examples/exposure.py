"""Counts with exposure: accidents of drivers who drive more or less, and more varied than Poisson.

uv run python docs/examples/exposure.py
"""

import numpy as np
import pandas as pd

import dpmc


def made_up(number, rng):
    """Drivers: distance in 10,000 km, years of experience, and accidents, which vary by driver."""
    drivers = pd.DataFrame(
        {"distance": rng.gamma(4, 0.4, number), "experience": rng.uniform(0, 40, number)}
    )
    rate = drivers.distance * np.exp(-0.8 - 0.03 * drivers.experience)
    drivers["accidents"] = rng.poisson(rate * rng.gamma(1.5, 1 / 1.5, number))
    return drivers


def main(path="docs/images/exposure.png", number=30_000):
    """Fit rates per distance, predict those of a novice and of an old hand, and draw the fit."""
    drivers = made_up(number, np.random.default_rng(1))
    fit = dpmc.regression(
        "accidents ~ I(experience / 10) + offset(log(distance))", drivers,
        likelihood="negative_binomial", epsilon=1, delta=1e-6,
    )  # fmt: skip
    new = pd.DataFrame({"experience": [1.0, 30.0], "distance": [1.0, 1.0]})
    rates = fit.predict(new, kind="mean", interval=0.9)
    print("accidents in 10,000 km, after 1 year and after 30:", rates, sep="\n")
    fit.plot().savefig(path, dpi=110)
    return fit


if __name__ == "__main__":
    main()
