"""Measure `dpmc.regression` where users stand: real tables, rare outcomes, wrong variances, tails.

``uv run --group bench python benchmarks/measure_tables.py tables --output fits.csv --rivals
rivals.csv`` fits the tables of ``real_tables.toml``, and compares each posterior with the exact
one under the same prior and with the rivals that ``rivals_of_tables.py`` wrote. ``rare`` fits
simulated rows with few ones, small counts and rare features; ``coverage`` counts how often
intervals hold the truth, for models that are right and for variances that are wrong, and two of
them models of one's own; ``plan`` compares plans with the fits of ``tables``.

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
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dpmc
import exact_regressions as regressions
import table_rows
from dpmc.families.likelihoods import LIKELIHOODS
from dpmc.families.regression import LINEAR, LOGISTIC, ORDINAL, POISSON, SCALED, STUDENT_T
from dpmc.fits import Fit
from dpmc.privacy.budgets import GaussianBudget
from dpmc.types import Array, DpmcError
from exact_regressions import Prior, causes, named
from rivals_of_tables import DELTA, DIFFPRIVLIB, EPSILONS, GRADIENT, append, read
from table_rows import (
    GROUPED,
    OF_MEANS,
    OWN,
    RARE,
    Rows,
    drawn,
    drawn_general,
    drawn_grouped,
    drawn_own,
    model,
    rare,
)

FIELDS = (
    *("case", "epsilon", "seed", "held_out", "family", "rows", "errors", "own", "inside"),
    *("width", "limit", "score", "exact_score", "causes", "failed", "remarks"),
)
# Draws of each chain for rare rows: noise displaces means of a million rows by more than the mean
# of draws is off.
NUM_DRAWS = 20_000
# A fit is far off if a mean errs by more than so many of its own deviations, or exact ones.
FAR_OWN, FAR_EXACT = 3.0, 5.0
# Nothing is wrong where no mean errs by more exact deviations, and no interval is wider.
NEAR_EXACT, NEAR_WIDTH = 1.0, 1.5
# Name and epsilon of a case.
Key = tuple[str, float]


@dataclass(frozen=True)
class Record:
    """One fit, as it stands in the output."""

    case: str
    epsilon: float
    held_out: bool
    family: str
    rows: int
    errors: Array
    own: Array
    inside: Array
    width: float
    limit: float
    score: float
    exact_score: float
    causes: str
    failed: str
    remarks: str

    @classmethod
    def of(cls, line: dict[str, str]) -> Record:
        """The fit of one line of the output."""

        def numbers(name: str) -> Array:
            return np.array([float(one) for one in line[name].split()])

        reals = ("width", "limit", "score", "exact_score")
        return cls(
            line["case"],
            float(line["epsilon"]),
            line["held_out"] == "True",
            line["family"],
            int(line["rows"]),
            *(numbers(name) for name in ("errors", "own", "inside")),
            *(float(line[name]) for name in reals),
            line["causes"],
            line["failed"],
            line["remarks"],
        )

    @property
    def rms(self) -> float:
        """Root mean square error of the means, in exact deviations; infinite for a failure."""
        return math.inf if self.failed else float(np.sqrt(np.mean(self.errors**2)))

    @property
    def far(self) -> bool:
        """Whether a mean is further away than a user could guess."""
        if self.failed:
            return True
        return np.abs(self.own).max() > FAR_OWN or np.abs(self.errors).max() > FAR_EXACT

    @property
    def near(self) -> bool:
        """Whether nothing is wrong."""
        near = not self.failed and np.abs(self.errors).max() <= NEAR_EXACT
        return bool(near and self.width <= NEAR_WIDTH)


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
    """The prior of a fit: what it says of it, or the default in raw units.

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


def fitted(rows: Rows, epsilon: float, seed: int, num_draws: int) -> Fit:
    """One fit, by the model of the rows."""
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
            names = rows.names if rows.family == ORDINAL else ("intercept", *rows.names)
            options |= rows.beside | {
                "likelihood": rows.family,
                "names": names,
                "num_draws": num_draws,
            }
            fit = dpmc.regression(rows.x, rows.y, **options)
    return fit


@functools.lru_cache(maxsize=2)
def exact_of(rows: Rows, prior: bytes, dim: int) -> tuple[regressions.Posterior, float]:
    """The exact posterior and its score; of the last rows and priors it is kept."""
    values = np.frombuffer(prior).reshape(dim + 1, dim)
    found = regressions.exact(rows.family, rows.design, rows.y, Prior(values[0], values[1:]))
    score = math.nan
    if len(rows.test_y):
        score = regressions.log_score(rows.family, found.draws, rows.test_design, rows.test_y)
    return found, score


def measure(case: Case, epsilon: float, seed: int) -> dict[str, Any]:
    """One line of the output."""
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
        fit = fitted(rows, epsilon, seed, case.num_draws)
    except (DpmcError, np.linalg.LinAlgError, ArithmeticError) as fault:
        return line | {"failed": f"{type(fault).__name__}: {fault}"}
    draws = fit.draws.reshape(-1, fit.draws.shape[-1])
    mean, sd = draws.mean(axis=0), np.maximum(draws.std(axis=0), 1e-300)
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)

    def shown(values: Array) -> str:
        return " ".join(f"{value:.4g}" for value in values)

    def held(truth: Array) -> str:
        return shown(np.where(np.isnan(truth), np.nan, (low <= truth) & (truth <= high)))

    line["remarks"] = " / ".join(fit.remarks)
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
    """All fits of the cases, by case and epsilon, after those that are missing are run."""
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
    """The cases of few ones, small counts and rare features."""
    return [
        Case(
            f"{kind} {share:g}, n {size}",
            lambda _, given=(kind, share, size): rare(*given),
            limit=regressions.limit_of_rare,
            num_draws=NUM_DRAWS,
        )
        for size, (kind, share) in itertools.product(sizes, kinds)
    ]


def coverage_cases(families: Sequence[str], sizes: Sequence[int]) -> list[Case]:
    """The cases of truths that intervals should hold."""

    def simulated(family: str, right: bool, size: int, seed: int) -> tuple[Rows, Array]:
        if family in GROUPED:
            return drawn_grouped(family, size, seed)
        if family in LIKELIHOODS:
            return drawn_general(family, right, size, seed)
        return (drawn_own if family in OWN else drawn)(family, right, size, seed)

    return [
        Case(
            f"{family}, {'right' if right else 'wrong variance'}, n {size}",
            lambda seed, given=(family, right, size): simulated(*given, seed)[0],
            lambda seed, given=(family, right, size): simulated(*given, seed)[1],
        )
        for family, right, size in itertools.product(families, (True, False), sizes)
        if right or family not in (*LIKELIHOODS, *GROUPED) or family in OF_MEANS
    ]


def _table(heads: str, lines: Iterator[Sequence[Any]]) -> None:
    print(f"| {heads} |\n|" + " --- |" * (heads.count("|") + 1))
    for line in lines:
        cells = (f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in line)
        print("| " + " | ".join(cells) + " |", flush=True)
    print()


def _share(what: str, met: Sequence[bool], wanted: str) -> None:
    if met:
        print(f"- {what}: {sum(met)} of {len(met)} ({np.mean(met):.0%}; wanted {wanted})")


def _median(records: Sequence[Record], name: str) -> float:
    return float(np.median([getattr(record, name) for record in records]))


def _remarked(records: Sequence[Record]) -> float:
    return float(np.mean([bool(record.remarks) for record in records]))


def _inside(records: Sequence[Record]) -> float:
    held = [record.inside for record in records if not record.failed]
    return float(np.nanmean(np.concatenate(held))) if held else math.nan


def _largest(records: Sequence[Record], name: str) -> float:
    """The median over fits of the largest component."""
    return float(
        np.median([math.inf if one.failed else np.abs(getattr(one, name)).max() for one in records])
    )


def of_silence(found: dict[Key, list[Record]]) -> None:
    """Print how often remarks are missing, and how often they are not needed."""
    records = [record for group in found.values() for record in group]
    _share(
        "fits that are far off and say so",
        [bool(record.remarks) or bool(record.failed) for record in records if record.far],
        "95 %",
    )
    _share(
        "fits that are far off and name a cause that is true",
        [named(record.remarks, record.causes.split(", ")) for record in records if record.far],
        "95 %",
    )
    _share(
        "fits with nothing wrong and no remark",
        [not record.remarks for record in records if record.near],
        "95 %",
    )


def of_tables(found: dict[Key, list[Record]], rivals: list[dict[str, str]]) -> None:
    """Print all cells of real tables beside their rivals, then what share meets what is asked."""
    beside: dict[tuple[str, float, str], tuple[float, float]] = {
        (one["table"], float(one["epsilon"]), one["rival"]): (
            float(one["error"]),
            float(one["score"]),
        )
        for one in rivals
    }
    nothing = (math.nan, math.nan)

    def line(key: Key, records: Sequence[Record]) -> list[Any]:
        first = records[0]
        gradient, other = (beside.get((*key, one), nothing) for one in (GRADIENT, DIFFPRIVLIB))
        scores = (_median(records, "exact_score"), gradient[1], other[1])
        return [
            f"{key[0]}, {first.family}" + ("" if first.held_out else " (tuning)"),
            f"{first.rows:,}, {len(first.errors)}",
            f"{key[1]:g}",
            len(records),
            _median(records, "rms"),
            max(record.rms for record in records),
            _median(records, "limit"),
            gradient[0],
            other[0],
            _largest(records, "own"),
            _inside(records),
            _median(records, "width"),
            f"{_median(records, 'score'):.4g}",
            ", ".join(f"{score:.4g}" for score in scores),
            first.causes,
            f"{_remarked(records):.0%}",
            sum(record.far and not record.remarks for record in records),
        ]

    heads = (
        "table | n, d | epsilon | fits | error | worst | limit | gradient | diffprivlib | own "
        "| inside 90 % | widest / exact | score | exact, gradient, diffprivlib | causes "
        "| remarks | silent"
    )
    _table(heads, (line(key, records) for key, records in found.items()))
    near, alone, scored, better, large, every = [], [], [], [], [], []
    for key, records in found.items():
        if not records[0].held_out or (*key, GRADIENT) not in beside:
            continue
        error, score = _median(records, "rms"), _median(records, "score")
        best, best_score = beside[*key, GRADIENT]
        met = [error <= 1.5 * max(_median(records, "limit"), best), score >= best_score - 0.02]
        near.append(met[0])
        alone.append(error <= 1.5 * _median(records, "limit"))
        scored.append(met[1])
        if (*key, DIFFPRIVLIB) in beside:
            met.append(error <= 1.2 * beside[*key, DIFFPRIVLIB][0])
            better.append(met[-1])
        if records[0].rows > 10_000:
            exact_score = _median(records, "exact_score")
            met.append(abs(score - exact_score) <= 0.01 * abs(exact_score))
            large.append(met[-1])
        every.append(all(met))
    print("Cells of held-out tables:")
    _share("error at most 1.5 times the larger of limit and noisy gradient", near, "90 %")
    _share("error at most 1.5 times the limit alone", alone, "nothing")
    _share("score within 0.02 of noisy gradient", scored, "90 %")
    _share("error at most 1.2 times diffprivlib's", better, "100 %")
    _share("score within 1 % of the exact one, n above 10,000", large, "100 %")
    _share("all of these", every, "90 %")
    for told, held_out in (("held-out", True), ("tuning", False)):
        print(f"\nFits of {told} tables:")
        of_silence({key: some for key, some in found.items() if some[0].held_out == held_out})


def of_rare(found: dict[Key, list[Record]]) -> None:
    """Print root mean square errors over fits, of the worst mean, beside the limit."""
    lines, met = [], []
    for (case, epsilon), records in found.items():
        whole = [record.errors for record in records if not record.failed]
        error = math.inf
        if len(whole) == len(records):
            error = float(np.sqrt(np.mean(np.square(whole), axis=0)).max())
        remarked = _remarked(records)
        bound = _median(records, "limit")
        met.append(error <= 1.5 * bound or remarked >= 0.9)
        widths = (_largest(records, "own"), _median(records, "width"))
        lines.append((case, f"{epsilon:g}", len(records), error, bound, *widths, remarked))
    _table("rows | epsilon | fits | error | limit | own | widest / exact | remarks", iter(lines))
    _share("error at most 1.5 times the limit, or a remark in 90 % of fits", met, "100 %")
    of_silence(found)


def of_coverage(found: dict[Key, list[Record]]) -> None:
    """Print how often intervals hold the truth."""
    lines, met = [], []
    for (case, epsilon), records in found.items():
        inside, remarked = _inside(records), _remarked(records)
        count = sum(int(np.isfinite(record.inside).sum()) for record in records)
        # Two standard errors of a share of 90 %.
        slack = 2 * math.sqrt(0.09 / max(count, 1))
        met.append(0.87 - slack <= inside <= 0.93 + slack or remarked >= 0.9)
        lines.append((case, f"{epsilon:g}", len(records), f"{inside:.1%}", remarked))
    _table("model | epsilon | fits | inside 90 % | remarks", iter(lines))
    _share("87 to 93 % inside, within two standard errors, or remarks in 90 %", met, "95 %")


def of_plan(found: dict[Key, list[Record]]) -> None:
    """Print what plans expect beside what happened: of made-up rows, and of public ones.

    The public ones are the rows of a table that are not fitted; made-up ones have its mean
    response.
    """
    cases: dict[str, list[float]] = defaultdict(list)
    for case, epsilon in found:
        cases[case].append(epsilon)
    lines: list[Sequence[Any]] = []
    met: dict[tuple[bool, str], list[bool]] = defaultdict(list)
    for case, epsilons in cases.items():
        table = table_rows.load(case)
        older = np.column_stack([table.test_x, table.test_y])
        rate = {} if table.family in SCALED else {"rate": float(table.y.mean())}
        shape = (len(table.y), older.shape[1])
        rows = f"{case}, {table.family}" + ("" if table.held_out else " (tuning)")
        planned = {}
        for kind, known in (("public", {"rows": older}), ("made-up", rate)):
            first = dpmc.plan(table.family, shape, epsilon=epsilons[0], delta=DELTA, **known)
            planned[kind] = [first.error]
            if len(epsilons) > 1:
                planned[kind] += first.curve(epsilon=epsilons[1:])["error"].tolist()
        for k, epsilon in enumerate(epsilons):
            error = _median(found[case, epsilon], "rms")
            line = [rows, f"{epsilon:g}", shape[0], error]
            for kind, values in planned.items():
                met[table.held_out, kind].append(0.5 <= error / values[k] <= 2)
                line += [values[k], error / values[k]]
            lines.append(line)
    heads = "rows | epsilon | n | error | public rows | error / plan | made-up | error / plan"
    _table(heads, iter(lines))
    for (held_out, kind), near in met.items():
        told = f"{'held-out' if held_out else 'tuning'} tables, plans of {kind} rows"
        _share(f"{told}: within a factor of 2", near, "80 %" if kind == "public" else "nothing")


def chosen_cases(part: str, names: Sequence[str], sizes: Sequence[int]) -> list[Case]:
    """The cases of one part of the measurements."""
    if part in ("tables", "plan"):
        load = functools.lru_cache(maxsize=1)(table_rows.load)
        chosen = dict.fromkeys(names or table_rows.specifications())
        return [Case(name, lambda _, name=name: load(name)) for name in chosen]
    if part == "coverage":
        families = names or [LINEAR, STUDENT_T, LOGISTIC, POISSON, *OWN, *LIKELIHOODS, *GROUPED]
        return coverage_cases(families, sizes or [2_000, 20_000, 200_000])
    cases = rare_cases(sizes or [10_000, 100_000, 1_000_000], RARE)
    return [case for case in cases if case.name.startswith(tuple(names or [""]))]


def main() -> None:
    """Run the fits of one part that are missing, and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=["tables", "rare", "coverage", "plan"])
    parser.add_argument("names", nargs="*", help="tables, beginnings of cases, or families")
    parser.add_argument("--output", type=Path, required=True, help="fits, as CSV")
    parser.add_argument("--rivals", type=Path, help="what rivals_of_tables.py wrote")
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--rows", type=int, nargs="+", help="numbers of simulated rows")
    parser.add_argument("--repeats", type=int, help="fits of each cell; 0 to read the output alone")
    given = parser.parse_args()
    repeats = {"tables": 20, "rare": 20, "coverage": 100, "plan": 0}[given.part]
    if given.repeats is not None:
        repeats = given.repeats
    cases = chosen_cases(given.part, given.names, given.rows)
    found = run(cases, given.epsilon, repeats, given.output)
    if given.part == "tables":
        of_tables(found, read(given.rivals) if given.rivals else [])
    else:
        {"rare": of_rare, "coverage": of_coverage, "plan": of_plan}[given.part](found)


if __name__ == "__main__":
    sys.exit(main())
