"""One budget for a study: a plan first, then two analyses and a count, on one ledger on disk.

uv run python docs/examples/one_budget.py
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import dpmc
from dpmc.privacy import asserted


def made_up(number, rng):
    """People: age, hours of sport in a week, and whether they are ill."""
    people = pd.DataFrame({"age": rng.uniform(20, 80, number), "sport": rng.gamma(2, 1.5, number)})
    log_odds = -1 + 0.03 * (people.age - 50) - 0.2 * people.sport
    people["ill"] = (rng.random(number) < 1 / (1 + np.exp(-log_odds))).astype(int)
    return people


def main(path="docs/images/one_budget.png", number=20_000):
    """Plan on made-up rows, spend parts of one budget, and draw the plan."""
    planned = dpmc.plan("logistic", (number, 3), epsilon=0.7, delta=1e-6, rate=0.2)
    people = made_up(number, np.random.default_rng(5))
    with (
        tempfile.TemporaryDirectory() as folder,
        dpmc.Session(epsilon=1, delta=1e-6, path=Path(folder) / "study.budget") as study,
    ):
        illness = study.regression(
            "ill ~ I(age / 10) + sport", people, likelihood="logistic", epsilon=0.7
        )
        sport = study.regression("sport ~ I(age / 10)", people, epsilon=0.4)
        elderly = asserted(float((people.age > 65).sum()), sensitivity=1)
        print("people above 65:", study.release(elderly, epsilon=0.2, label="above 65"))
        print(illness.summary(), sport.summary(), study, study.guarantee, sep="\n\n")
        left = study.remaining
    planned.plot().savefig(path, dpi=110)
    return illness, left


if __name__ == "__main__":
    main()
