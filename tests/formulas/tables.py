"""Formulas, what is public of their columns, and tables whose entries are anything."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd

from dpmc.formulas.design import Design

RANGES = {"age": (18.0, 90.0), "dose": (0.0, 4.0)}
SEX = "C(sex, levels=['f', 'm'])"
SITE = "C(site, levels=['north', 'east', 'south'])"
VISIT = "C(visit, levels=[1, 2, 3])"
RIGHT = {
    "numbers": "age + dose",
    "arithmetic": "I((age - 50) / 10) + {dose ** 2} + I(age > 65)",
    "functions": "log(dose) + np.sqrt(dose) + exp(age)",
    "category": f"age + {SEX}",
    "interaction": f"age * {SITE}",
    "of categories": f"{SEX}:{SITE}",
    "without a constant": f"0 + {SITE} + dose",
    "contrasts": f"C(site, contr.sum, levels=['north', 'east', 'south']) + {VISIT}",
    "base": "C(site, contr.treatment('east'), levels=['north', 'east', 'south'])",
    "centred": "center(age) + scale(dose)",
    "polynomial": "poly(age, 3)",
    "spline": "bs(age, df=5) + cr(dose, df=3)",
    "cyclic": "cc(age, df=4)",
    "standardized": f"standardize(age):{SEX}",
    "quoted": "`of birth` + I(`of birth` ** 2)",
    "powers": "(age + dose) ** 2 - dose",
    "offset": f"{SEX} + offset(log(dose))",
}
ENTRIES = (
    1, 0, 2, 3, "1", "2.0", 50, 64.5, 1e300, -1e300, 5e-324, float("nan"), float("inf"), None, "",
    "f", "m", b"f", "F", "north", "east", "south", "west", True, False, "yes", "no", "nan", 10**400,
    Decimal("3.5"), Decimal("NaN"), 1 + 0j, 1 + 2j, datetime.date(2000, 1, 1), pd.NA, pd.NaT, "0x1",
    np.float32(7), np.int8(3), "1_0", "\0", "\ud800", (), [1], {"a": 1}, object(), np.array([1.0]),
)  # fmt: skip
COLUMNS = ("y", "age", "dose", "sex", "site", "visit", "of birth")


def design(name: str, **changes) -> Design:
    """Design of one of the formulas."""
    ranges = {key: ends for key, ends in RANGES.items() if key in RIGHT[name]}
    return Design.of(f"y ~ {RIGHT[name]}", **{"ranges": ranges, **changes})


def column(rng: np.random.Generator, num_rows: int) -> np.ndarray:
    """Column of objects, any of them."""
    found = np.empty(num_rows, dtype=object)
    found[:] = [ENTRIES[k] for k in rng.integers(len(ENTRIES), size=num_rows)]
    return found


def hostile(rng: np.random.Generator, num_rows: int) -> pd.DataFrame:
    """Table of which about half of the entries are ordinary."""
    plain, found = patients(rng, num_rows), {}
    for name in COLUMNS:
        other = rng.random(num_rows) < 0.3
        found[name] = np.where(other, column(rng, num_rows), plain[name].to_numpy(dtype=object))
    return pd.DataFrame(found, dtype=object)


def patients(rng: np.random.Generator, num_rows: int) -> pd.DataFrame:
    """Table in which nothing is missing."""
    return pd.DataFrame(
        {
            "y": rng.integers(2, size=num_rows),
            "age": rng.uniform(18, 90, num_rows),
            "dose": rng.uniform(0.1, 4, num_rows),
            "sex": rng.choice(["f", "m"], num_rows),
            "site": rng.choice(["north", "east", "south"], num_rows),
            "visit": rng.integers(1, 4, num_rows),
            "of birth": rng.integers(1930, 2000, num_rows),
        }
    )
