"""A rare outcome: one patient in fifty dies, and the odds ratio of a treatment is wanted.

uv run python docs/examples/rare_outcome.py
"""

import numpy as np
import pandas as pd

import dpmc


def made_up(number, rng):
    """Patients: age in years, treatment, and whether they died."""
    patients = pd.DataFrame(
        {"age": rng.uniform(18, 90, number).round(), "treated": rng.integers(0, 2, number)}
    )
    log_odds = -4.3 + 0.04 * (patients.age - 54) - 0.7 * patients.treated
    patients["died"] = (rng.random(number) < 1 / (1 + np.exp(-log_odds))).astype(int)
    return patients


def main(path="docs/images/rare_outcome.png", number=50_000):
    """Fit the table, print odds ratios, and draw what was learnt."""
    patients = made_up(number, np.random.default_rng(0))
    # The interval of an odds ratio is as private as the fit: it is computed from its draws.
    fit = dpmc.regression(
        "died ~ I((age - 54) / 10) + treated", patients,
        likelihood="logistic", epsilon=1, delta=1e-6,
    )  # fmt: skip
    table = fit.summary().to_dataframe()[["mean", "5%", "95%"]]
    print(np.exp(table).set_axis(["odds ratio", "5%", "95%"], axis=1).round(2))
    print(fit.guarantee)
    fit.plot().savefig(path, dpi=110)
    return fit


if __name__ == "__main__":
    main()
