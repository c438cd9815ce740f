"""Rivals of `dpmc.regression` on real tables: noisy gradient ascent, and diffprivlib.

``uv run --group bench python benchmarks/rivals_of_tables.py --output rivals.csv`` writes one line
per table, epsilon and rival, and skips those that are in the file.

Noisy gradient ascent starts at zero in features of [-1, 1], clips gradients of rows at one bound,
and returns the average of the later half of its points, under the budget of the fit that it is
compared with. Of 100 settings the one with the least error is taken, and judged on fresh noise.
Steps, clip bounds and units of a response are drawn around what the exact posterior needs: no
user could tune so.
diffprivlib is pure epsilon-private under the same substitution of one row, so that nothing is to
be converted; its standard deviation of a linear response is taken from rows without privacy.

Errors are root mean squares over theta, in deviations of the exact posterior under a weak prior in
the units of the rows: see `exact_regressions.Prior.in_units`.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import exact_regressions as regressions
import table_rows
from dpmc.families.regression import LINEAR, LOGISTIC, SCALED, built
from dpmc.privacy.budgets import GaussianBudget
from dpmc.rng import stream
from dpmc.rows.sums import RowSums
from dpmc.types import Array, Dataset
from exact_regressions import Posterior, Prior
from table_rows import Rows

DELTA = 1e-6
EPSILONS = (0.5, 1.0, 4.0)
GRADIENT, DIFFPRIVLIB = "noisy gradient", "diffprivlib"
FIELDS = ("table", "epsilon", "rival", "error", "worst", "score", "setting")
SETTINGS, FINALISTS, REPEATS, UNITS = 100, 3, 5, 4
# diffprivlib runs in an environment of its own, since current scikit-learn breaks it.
PYTHON = ">=3.11,<3.13"
PACKAGES = ("diffprivlib==0.6.6", "scikit-learn==1.5.2", "numpy==2.3.5", "scipy==1.17.1")
# Pure epsilon under substitution of one row, as its papers have it: objective perturbation and the
# functional mechanism, for rows with features and linear responses in [-1, 1].
SCRIPT = """
import sys, warnings
import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression

rows = np.load(sys.argv[1])
x, y, found = rows["x"], rows["y"], []
for epsilon in rows["epsilons"]:
    for seed in rows["seeds"]:
        given = {"epsilon": epsilon, "random_state": int(seed)}
        if rows["logistic"]:
            model = LogisticRegression(data_norm=np.sqrt(x.shape[1]), **given)
        else:
            model = LinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1), **given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(x, y)
        found.append(np.append(np.ravel(model.intercept_), np.ravel(model.coef_)))
shape = len(rows["epsilons"]), len(rows["seeds"])
np.savez(sys.argv[2], coefficients=np.reshape(found, (*shape, -1)))
"""


class Ranged:
    """Rows in [-1, 1] by public ranges, and the way back to theta in their units.

    Parameters
    ----------
    rows : Rows
    unit : float, optional
        Of responses that have one, which are then not in [-1, 1] but in this unit.
    """

    def __init__(self, rows: Rows, unit: float | None = None) -> None:
        middle, half = (rows.low + rows.high) / 2, (rows.high - rows.low) / 2
        self.x = np.clip((rows.x - middle) / half, -1, 1)
        self.y = np.clip(rows.y, *rows.responses)
        scaled = rows.family in SCALED
        low, high = rows.responses
        if not scaled:
            unit = 1.0
        else:
            unit = (high - low) / 2 if unit is None else unit
            self.y = (self.y - (low + high) / 2) / unit
        self.design = np.column_stack([np.ones(len(self.x)), self.x])
        columns = self.design.shape[1]
        # theta = moved @ theta of the ranged rows + offset
        dim = columns + scaled
        self.moved, self.offset = np.eye(dim), np.zeros(dim)
        self.moved[:columns, :columns] *= unit
        self.moved[range(1, columns), range(1, columns)] = unit / half
        self.moved[0, 1:columns] = -unit * middle / half
        if scaled:
            self.offset[0], self.offset[-1] = (low + high) / 2, math.log(unit)

    def back(self, theta: Array) -> Array:
        """Theta in the units of the rows."""
        return self.moved @ theta + self.offset

    def there(self, theta: Array) -> Array:
        """Theta of the ranged rows."""
        return np.linalg.solve(self.moved, theta - self.offset)


class NoisyGradient:
    """Noisy gradient ascent on the rows of a table under one budget.

    Parameters
    ----------
    rows : Rows
    prior : Prior
    posterior : Posterior
        The exact one: settings are drawn around it.
    mu : float
    unit : float, optional
        Of responses: their scale is 1 at the start.
    """

    def __init__(
        self,
        rows: Rows,
        prior: Prior,
        posterior: Posterior,
        mu: float,
        unit: float | None = None,
    ) -> None:
        self.family, self.prior, self.mu = rows.family, prior, mu
        self.ranged = Ranged(rows, unit)
        columns = self.ranged.x.shape[1]
        model = built(self.family, columns, True, prior_sd=1.0, freedom=regressions.FREEDOM)
        ranged = np.column_stack([self.ranged.x, self.ranged.y])
        self.sums = RowSums(model, Dataset.of(rows.name, ranged))
        self.goal = self.ranged.there(posterior.mean)
        steepest = [self._curvature(theta) for theta in (np.zeros_like(self.goal), self.goal)]
        self.steepest = np.log(steepest)

    def _slopes(self, theta: Array) -> regressions.Slopes:
        return regressions.slopes(self.family, theta, self.ranged.design, self.ranged.y)

    def _curvature(self, theta: Array) -> float:
        precision = regressions.precision_of(self._slopes(theta), self.ranged.design)
        return max(float(np.linalg.eigvalsh(precision)[-1]), 1e-9)

    def setting(self, name: str, index: int) -> tuple[int, float, float]:
        """A number of steps, a clip bound and a length of steps, drawn at random."""
        rng = stream(0, "noisy gradient", name, index)

        def between(low: float, high: float) -> float:
            return float(np.exp(rng.uniform(np.log(low), np.log(high))))

        # From half of the rows that are clipped to none of them, at a point on the way.
        place = self._slopes(rng.uniform() * self.goal)
        norms = np.linalg.norm(regressions.row_gradients(place, self.ranged.design), axis=1)
        clip = float(np.quantile(norms, 1 - between(0.5 / len(norms), 0.5)))
        share = rng.uniform()
        steepest = float(np.exp((1 - share) * self.steepest[0] + share * self.steepest[1]))
        return int(between(10, 500)), clip, between(0.03, 5) / steepest

    def run(self, setting: tuple[int, float, float], rng: np.random.Generator) -> Array:
        """Where a setting ends, in the units of the rows; NaN if it runs away."""
        steps, clip, rate = setting
        theta = np.zeros_like(self.goal)
        points = []
        noise = 2 * clip * math.sqrt(steps) / self.mu
        for step in range(steps):
            total, _ = self.sums.plain_gradient(theta, clip)
            away = self.ranged.back(theta) - self.prior.mean
            total = total + noise * rng.standard_normal(len(theta))
            theta = theta + rate * (total - self.ranged.moved.T @ (self.prior.precision @ away))
            if not np.isfinite(theta).all() or np.abs(theta).max() > 1e6:
                return np.full_like(theta, np.nan)
            if 2 * step >= steps:
                points.append(theta)
        return self.ranged.back(np.mean(points, axis=0))


def error(theta: Array, posterior: Posterior) -> float:
    """The root mean square error in deviations of the posterior; infinite for NaN."""
    found = float(np.sqrt(np.mean(((theta - posterior.mean) / posterior.sd) ** 2)))
    return found if math.isfinite(found) else math.inf


def best_gradient(
    rows: Rows, prior: Prior, posterior: Posterior, epsilon: float
) -> tuple[list[Array], str]:
    """Fits of the best of many settings on fresh noise, and the setting."""
    mu = GaussianBudget.of(epsilon, DELTA).mu
    units: list[float | None] = [None]
    if rows.family in SCALED:
        # From half the public range down to the exact scale.
        widest, scale = np.ptp(rows.responses) / 2, np.exp(posterior.mean[-1])
        units = [float(one) for one in np.geomspace(widest, scale, UNITS)]
    ascents = [NoisyGradient(rows, prior, posterior, mu, unit) for unit in units]

    def fits(index: int, seeds: range) -> list[Array]:
        ascent = ascents[index % len(ascents)]
        setting = ascent.setting(rows.name, index)
        return [
            ascent.run(setting, stream(1, "noisy gradient", rows.name, index, seed))
            for seed in seeds
        ]

    tried = sorted((error(fits(index, range(1))[0], posterior), index) for index in range(SETTINGS))
    # The least of many errors is luck, too: a few are run again.
    again = {index: fits(index, range(1, 1 + REPEATS)) for _, index in tried[:FINALISTS]}
    best = min(again, key=lambda index: np.median([error(one, posterior) for one in again[index]]))
    steps, clip, rate = ascents[best % len(ascents)].setting(rows.name, best)
    return again[best], f"{steps} steps of {rate:.3g}, clip bound {clip:.3g}"


def diffprivlib(rows: Rows, epsilons: list[float]) -> Iterator[list[Array]]:
    """Fits of diffprivlib for each epsilon."""
    ranged = Ranged(rows)
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "rows.npz"), Path(folder, "found.npz")
        np.savez(
            given,
            x=ranged.x,
            y=ranged.y,
            logistic=rows.family == LOGISTIC,
            epsilons=epsilons,
            seeds=range(REPEATS),
        )
        needed = [part for package in PACKAGES for part in ("--with", package)]
        command = ["uv", "run", "--no-project", "--quiet", "--python", PYTHON, *needed]
        subprocess.run([*command, "python", "-c", SCRIPT, given, found], check=True)
        with np.load(found) as results:
            coefficients = results["coefficients"]
    for fits in coefficients:
        ends = []
        for theta in fits:
            if rows.family == LINEAR:
                residual = ranged.y - ranged.design @ theta
                theta = np.append(theta, math.log(max(float(residual.std()), 1e-12)))
            ends.append(ranged.back(theta))
        yield ends


def measured(rows: Rows, epsilons: list[float], rival: str) -> Iterator[dict[str, Any]]:
    """One line for each epsilon."""
    prior = Prior.in_units(rows.family, rows.x, rows.y)
    posterior = regressions.exact(rows.family, rows.design, rows.y, prior)
    found: Iterable[tuple[list[Array], str]]
    if rival == DIFFPRIVLIB:
        found = ((fits, "") for fits in diffprivlib(rows, epsilons))
    else:
        found = (best_gradient(rows, prior, posterior, epsilon) for epsilon in epsilons)
    for epsilon, (fits, setting) in zip(epsilons, found, strict=True):
        errors = [error(theta, posterior) for theta in fits]
        with np.errstate(all="ignore"):
            scores = [
                regressions.log_score(rows.family, theta[None], rows.test_design, rows.test_y)
                for theta in fits
            ]
        values = (float(np.median(errors)), max(errors), float(np.median(scores)))
        shown = (f"{value:.6g}" for value in values)
        yield dict(zip(FIELDS, (rows.name, epsilon, rival, *shown, setting), strict=True))


def read(path: Path) -> list[dict[str, str]]:
    """The lines of a file of results, none if it is not there."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, fields: tuple[str, ...], line: dict[str, Any]) -> None:
    """Write one more line of results, after the names of its columns in a new file."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(line)


def main() -> None:
    """Write the errors and scores of rivals."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    tables = table_rows.specifications()
    parser.add_argument("names", nargs="*", help="tables; all by default")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    done = {(one["table"], one["rival"], float(one["epsilon"])) for one in read(given.output)}
    for rival, name in itertools.product((DIFFPRIVLIB, GRADIENT), given.names or tables):
        if rival == DIFFPRIVLIB and tables[name]["family"] not in (LINEAR, LOGISTIC):
            continue
        if epsilons := [epsilon for epsilon in EPSILONS if (name, rival, epsilon) not in done]:
            for line in measured(table_rows.load(name), epsilons, rival):
                append(given.output, FIELDS, line)
                print(*line.values(), sep=" | ", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
