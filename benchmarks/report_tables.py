"""Tables of what `measure_tables.py` measured, and the share of cells that meet what is asked."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpmc
import real_tables
from causes import named
from dpmc.families.regression import SCALED
from dpmc.types import Array
from rivals_of_tables import DELTA, DIFFPRIVLIB, GRADIENT, NULL

# A fit is silent if it errs by more than so many deviations, own or exact, without a remark; and
# nothing is wrong where no mean is displaced, and no interval widened, by more than the others.
FAR_OWN, FAR_EXACT = 3.0, 5.0
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
    seconds: float
    causes: str
    failed: str
    remarks: str

    @classmethod
    def of(cls, line: dict[str, str]) -> Record:
        """Return the fit of one line of the output."""

        def numbers(name: str) -> Array:
            return np.array([float(one) for one in line[name].split()])

        reals = ("width", "limit", "score", "exact_score", "seconds")
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
    """Return the median over fits of the largest component."""
    return float(
        np.median([math.inf if one.failed else np.abs(getattr(one, name)).max() for one in records])
    )


def of_silence(found: dict[Key, list[Record]]) -> None:
    """Print what remarks say, how often they are missing, and how often they are not needed."""
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
    said: Counter[str] = Counter()
    cases: dict[str, set[str]] = defaultdict(set)
    for record in records:
        for remark in (record.remarks or record.failed).split(" / "):
            plain = re.sub(r"\d[\d.,]*(e[+-]?\d+)?", "#", remark)[:100] or "no remark"
            said[plain] += 1
            cases[plain].add(record.case)
    print()
    lines = ((text, number, len(cases[text])) for text, number in said.most_common(25))
    _table("remark | fits | cases", lines)


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
        null = beside.get((*key, NULL), nothing)
        scores = (_median(records, "exact_score"), gradient[1], other[1], null[1])
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
            _median(records, "seconds"),
        ]

    heads = (
        "table | n, d | epsilon | fits | error | worst | limit | gradient | diffprivlib | own "
        "| inside 90 % | widest / exact | score | exact, gradient, diffprivlib, null | causes "
        "| remarks | silent | s"
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


def of_seeds(found: dict[Key, list[Record]]) -> None:
    """Print how much wider the widest fit of one data set is than the median."""
    lines, met = [], []
    for (case, epsilon), records in found.items():
        widths = [record.width for record in records]
        ratio = max(widths) / float(np.median(widths))
        met.append(ratio <= 2)
        worst = max(record.rms for record in records)
        middle = (_median(records, "width"), max(widths), ratio, _median(records, "rms"), worst)
        lines.append((case, f"{epsilon:g}", len(records), *middle))
    heads = "rows | epsilon | fits | width | widest | widest / median | error | worst"
    _table(heads, iter(lines))
    _share("widest at most twice the median", met, "100 %")


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
        table = real_tables.load(case)
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
