"""Regressions of diffprivlib, in an environment of its own: pure epsilon, features in [-1, 1].

Its logistic regression is objective perturbation, its linear one the functional mechanism. Current
versions of scikit-learn break it, so that `uv` makes an environment with older ones.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmc.types import Budget, DpmcError, Guarantee, NoParams
from dpmc_league.contest import LOGISTIC, SEEDED, Estimate, Table

Params = NoParams
PACKAGES = ("diffprivlib==0.6.6", "scikit-learn==1.5.2", "numpy==2.3.5", "scipy==1.17.1")
COMMAND = (
    *("uv", "run", "--no-project", "--quiet", "--python", ">=3.11,<3.13"),
    *(part for package in PACKAGES for part in ("--with", package)),
)
TIME_LIMIT, MOST_SEED = 600, 2**31 - 1
SCRIPT = """
import sys, warnings
import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression

warnings.simplefilter("ignore")
given, found = np.load(sys.argv[1]), []
for k, seed in enumerate(given["seeds"]):
    x, y = given[f"x{k}"], given[f"y{k}"]
    options = {"epsilon": float(given["epsilon"]), "random_state": int(seed)}
    if given["logistic"]:
        model = LogisticRegression(data_norm=np.sqrt(x.shape[1]), **options)
    else:
        model = LinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1), **options)
    found.append(np.ravel(model.fit(x, y).coef_))
np.save(sys.argv[2], found)
"""


def fit(
    tables: Sequence[Table], params: NoParams, budget: Budget, seeds: Sequence[int]
) -> list[Estimate]:
    """Fit all tables in one process."""
    ranged = [table.ranged() for table in tables]
    with tempfile.TemporaryDirectory(prefix="dpmc-league-") as folder:
        given, found = Path(folder, "given.npz"), Path(folder, "found.npy")
        columns: dict[str, Any] = {f"x{k}": x for k, (x, _, _) in enumerate(ranged)}
        columns |= {f"y{k}": y for k, (_, y, _) in enumerate(ranged)}
        columns |= {"seeds": [seed % MOST_SEED for seed in seeds], "epsilon": budget.epsilon}
        np.savez(given, logistic=tables[0].family == LOGISTIC, **columns)
        command = [*COMMAND, "python", "-c", SCRIPT, str(given), str(found)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=TIME_LIMIT)
        except OSError as error:
            raise DpmcError(f"`uv` must start, got {error.strerror}") from None
        except subprocess.SubprocessError as error:
            raise DpmcError(f"diffprivlib must run, got {type(error).__name__}") from None
        slopes = np.load(found, allow_pickle=False)
    guarantee = Guarantee(budget.epsilon, 0.0, accountant="pure", outside=(SEEDED,))
    return [
        Estimate(one * unit, guarantee) for one, (_, _, unit) in zip(slopes, ranged, strict=True)
    ]
