"""Measure `dpmc.regression` where users stand: real tables, rare outcomes, wrong variances, tails.

``uv run --group bench python benchmarks/measure_tables.py tables --output fits.csv --rivals
rivals.csv`` fits the tables of ``real_tables.toml``, and compares each posterior with the exact
one under the same prior and with the rivals that ``rivals_of_tables.py`` wrote. ``rare`` fits
simulated rows with few ones, small counts and rare features; ``coverage`` counts how often
intervals hold the truth, for models that are right and for variances that are wrong, and two of
them models of one's own; ``seeds``
fits one data set again and again and looks at the widest fit; ``plan`` compares plans with the
fits of ``tables``.

Fits are appended to the output, and those that are in it are not run again; with ``--repeats 0``
the file is only read. Each part prints Markdown tables, then the share of cells that meet what is
asked. Errors are in standard deviations of the exact posterior (`error`) or of the fit (`own`).
The limit is what noise must do: see `exact_regressions.limit` and `limit_of_rare` for formulas.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dpmc
import exact_regressions as regressions
import real_tables
import report_tables
from causes import causes
from dpmc.families.regression import LINEAR, LOGISTIC, POISSON, STUDENT_T
from dpmc.fits import Fit
from dpmc.privacy.budgets import GaussianBudget
from dpmc.types import Array, DpmcError
from exact_regressions import Prior
from own_models import OWN, drawn_own, model
from real_tables import Rows
from report_tables import Key, Record
from rivals_of_tables import DELTA, EPSILONS, append, read
from simulated_tables import RARE, SCALED, drawn, rare

FIELDS = (
    *("case", "epsilon", "seed", "held_out", "family", "rows", "errors", "own", "inside"),
    *("width", "limit", "score", "exact_score", "seconds", "causes", "failed", "remarks"),
)
# Draws of each chain for rare rows: noise displaces means of a million rows by more than the mean
# of draws is off.
NUM_DRAWS = 20_000
# What is fitted again and again.
SEEDED = ["logistic 0.3,", "logistic 0.1,", "poisson 0.3,", "linear", "student_t"]


@dataclass(frozen=True)
class Case:
    """Rows to fit again and again.

    Parameters
    ----------
    name : str
    rows : callable ``(seed) -> Rows``
        The same for all seeds, or drawn anew.
    truth : callable ``(seed) -> ndarray of shape (d,)``, optional
        What intervals should hold, NaN for components that are not judged; the exact mean if there
        is none.
    limit : callable
        What noise must displace means by.
    num_draws : int
        Draws of each chain.
    """

    name: str
    rows: Callable[[int], Rows]
    truth: Callable[[int], Array] | None = None
    limit: Callable[..., float] = regressions.limit
    num_draws: int = 2000


def prior_of(fit: Fit, family: str) -> Prior:
    """Return the prior of a fit: what it says of it, or the default in raw units.

    What it says may leave out the logarithm of the scale, of which every table knows enough.
    """
    dim = fit.draws.shape[-1]
    told = fit.plan.prior
    if not told:
        return Prior.fixed(family, dim)
    mean, precision = np.zeros(dim), np.diag(np.full(dim, 1e-6))
    size = len(told["mean"])
    mean[:size], precision[:size, :size] = told["mean"], told["precision"]
    return Prior(mean, precision)


def fitted(rows: Rows, epsilon: float, seed: int, num_draws: int) -> tuple[Fit, float]:
    """Return a fit, and its processor seconds."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        options: dict[str, Any] = {
            "epsilon": epsilon,
            "delta": DELTA,
            "seed": seed,
            "progress": False,
        }
        if rows.family in OWN:
            fit = dpmc.fit(model(rows.family), np.column_stack([rows.x, rows.y]), **options)
        else:
            names = ("intercept", *rows.names)
            options |= {"likelihood": rows.family, "names": names, "num_draws": num_draws}
            fit = dpmc.regression(rows.x, rows.y, **options)
    return fit, time.process_time() - started


@functools.lru_cache(maxsize=2)
def exact_of(rows: Rows, prior: bytes, dim: int) -> tuple[regressions.Posterior, float]:
    """Return the exact posterior and its score; of the last rows and priors it is kept."""
    values = np.frombuffer(prior).reshape(dim + 1, dim)
    found = regressions.exact(rows.family, rows.design, rows.y, Prior(values[0], values[1:]))
    score = math.nan
    if len(rows.test_y):
        score = regressions.log_score(rows.family, found.draws, rows.test_design, rows.test_y)
    return found, score


def measure(case: Case, epsilon: float, seed: int) -> dict[str, Any]:
    """Return one line of the output."""
    rows = case.rows(seed)
    line: dict[str, Any] = dict.fromkeys(FIELDS, "nan") | {
        "case": case.name,
        "epsilon": epsilon,
        "seed": seed,
        "held_out": rows.held_out,
        "family": rows.family,
        "rows": len(rows.y),
        "causes": "",
        "failed": "",
        "remarks": "",
    }
    try:
        fit, seconds = fitted(rows, epsilon, seed, case.num_draws)
    except (DpmcError, np.linalg.LinAlgError, ArithmeticError) as fault:
        return line | {"failed": f"{type(fault).__name__}: {fault}"}
    draws = fit.draws.reshape(-1, fit.draws.shape[-1])
    mean, sd = draws.mean(axis=0), np.maximum(draws.std(axis=0), 1e-300)
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)

    def shown(values: Array) -> str:
        return " ".join(f"{value:.4g}" for value in values)

    def held(truth: Array) -> str:
        return shown(np.where(np.isnan(truth), np.nan, (low <= truth) & (truth <= high)))

    line |= {"seconds": f"{seconds:.3g}", "remarks": " / ".join(fit.remarks)}
    if case.truth is not None:
        return line | {"inside": held(case.truth(seed))}
    prior = prior_of(fit, rows.family)
    dim = len(prior.mean)
    exact, exact_score = exact_of(rows, np.vstack([prior.mean, prior.precision]).tobytes(), dim)
    score = math.nan
    if len(rows.test_y):
        score = regressions.log_score(rows.family, draws, rows.test_design, rows.test_y)
    mu = GaussianBudget.of(epsilon, DELTA).mu
    limit = case.limit(rows.family, exact, rows.design, rows.y, mu)
    return line | {
        "errors": shown((mean - exact.mean) / exact.sd),
        "own": shown((mean - exact.mean) / sd),
        "inside": held(exact.mean),
        "width": f"{(sd / exact.sd).max():.4g}",
        "limit": f"{limit:.4g}",
        "score": f"{score:.5g}",
        "exact_score": f"{exact_score:.5g}",
        "causes": ", ".join(causes(rows.family, exact, prior, rows.design, rows.y, limit)),
    }


def run(
    cases: Sequence[Case], epsilons: Sequence[float], repeats: int, output: Path
) -> dict[Key, list[Record]]:
    """Return all fits of the cases, by case and epsilon, after those that are missing are run."""
    known = {(one["case"], float(one["epsilon"]), int(one["seed"])) for one in read(output)}
    for seed, case, epsilon in itertools.product(range(repeats), cases, epsilons):
        if (case.name, epsilon, seed) not in known:
            append(output, FIELDS, measure(case, epsilon, seed))
    found: dict[Key, list[Record]] = {
        key: [] for key in itertools.product((case.name for case in cases), epsilons)
    }
    for record in map(Record.of, read(output)):
        if (record.case, record.epsilon) in found:
            found[record.case, record.epsilon].append(record)
    return {key: records for key, records in found.items() if records}


def rare_cases(sizes: Sequence[int], kinds: Sequence[tuple[str, float]]) -> list[Case]:
    """Return the cases of few ones, small counts and rare features."""
    return [
        Case(
            f"{kind} {share:g}, n {size}",
            lambda _, given=(kind, share, size): rare(*given),
            limit=regressions.limit_of_rare if (kind, share) in RARE else regressions.limit,
            num_draws=NUM_DRAWS,
        )
        for size, (kind, share) in itertools.product(sizes, kinds)
    ]


def coverage_cases(families: Sequence[str], sizes: Sequence[int]) -> list[Case]:
    """Return the cases of truths that intervals should hold."""

    def simulated(family: str, right: bool, size: int, seed: int) -> tuple[Rows, Array]:
        return (drawn_own if family in OWN else drawn)(family, right, size, seed)

    return [
        Case(
            f"{family}, {'right' if right else 'wrong variance'}, n {size}",
            lambda seed, given=(family, right, size): simulated(*given, seed)[0],
            lambda seed, given=(family, right, size): simulated(*given, seed)[1],
        )
        for family, right, size in itertools.product(families, (True, False), sizes)
    ]


def main() -> None:
    """Run the fits of one part that are missing, and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=["tables", "rare", "coverage", "seeds", "plan"])
    parser.add_argument("names", nargs="*", help="tables, beginnings of cases, or families")
    parser.add_argument("--output", type=Path, required=True, help="fits, as CSV")
    parser.add_argument("--rivals", type=Path, help="what rivals_of_tables.py wrote")
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--rows", type=int, nargs="+", help="numbers of simulated rows")
    parser.add_argument("--repeats", type=int, help="fits of each cell; 0 to read the output alone")
    given = parser.parse_args()
    repeats = {"tables": 20, "rare": 20, "coverage": 100, "seeds": 200, "plan": 0}[given.part]
    if given.repeats is not None:
        repeats = given.repeats
    if given.part in ("tables", "plan"):
        known = list(real_tables.specifications())
        load = functools.lru_cache(maxsize=1)(real_tables.load)
        chosen = dict.fromkeys(given.names or known)
        cases = [Case(name, lambda _, name=name: load(name)) for name in chosen]
    elif given.part == "coverage":
        families = given.names or [LINEAR, STUDENT_T, LOGISTIC, POISSON, *OWN]
        cases = coverage_cases(families, given.rows or [2_000, 20_000, 200_000])
    else:
        sizes = [20_000] if given.part == "seeds" else [10_000, 100_000, 1_000_000]
        kinds = [*RARE, *SCALED] if given.part == "seeds" else RARE
        cases = rare_cases(given.rows or sizes, kinds)
        names = given.names or (SEEDED if given.part == "seeds" else [""])
        cases = [case for case in cases if case.name.startswith(tuple(names))]
    found = run(cases, given.epsilon, repeats, given.output)
    if given.part == "tables":
        report_tables.of_tables(found, read(given.rivals) if given.rivals else [])
    else:
        reports = {
            "rare": report_tables.of_rare,
            "coverage": report_tables.of_coverage,
            "seeds": report_tables.of_seeds,
            "plan": report_tables.of_plan,
        }
        reports[given.part](found)


if __name__ == "__main__":
    sys.exit(main())
