"""Decision between a claim, its opposite, and neither, with stated error rates on both sides."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

from dpmc_papers.verdicts.bootstrap import Measurement, student
from dpmc_papers.verdicts.medians import Box
from dpmc_papers.verdicts.verdict import CONTRADICTED, REPRODUCED, UNDECIDED

# More runs than anybody makes.
MOST_RUNS = 1e6


@dataclass(frozen=True)
class Decision:
    """The decision on one claim or one printed number.

    Parameters
    ----------
    verdict : str
        One of ``dpmc_papers.verdicts.verdict.VERDICTS``.
    reason : str
        Built from the numbers.
    ours, ours_se : float
        The measurement closest to a limit or furthest beyond it, and its standard error.
    runs_needed : float
        How many runs would decide what is undecided, were the measured values exact: NaN where
        it is decided, infinite where no number of runs here would, or none is known to.
    resolution : float
        Of a printed number: the smallest factor between print and the truth that is not called
        reproduced in 95 % of repetitions; NaN of a claim.
    """

    verdict: str
    reason: str
    ours: float = math.nan
    ours_se: float = math.nan
    runs_needed: float = math.nan
    resolution: float = math.nan


def decide(
    measurements: list[Measurement],
    low: float,
    high: float,
    error_rate: float,
    exceptions: float = 0.0,
) -> Decision:
    """Turn the measurements of one claim into a verdict.

    A claim says that a quantity lies within limits at every one of K settings, or at all but m.
    It is reproduced if intervals within the limits establish it at K - m settings, and
    contradicted if intervals beyond them do at more than m. A setting whose uncertainty is not
    defined is none of either. The levels of the intervals are those
    of partial conjunction tests by Bonferroni: ``error_rate / (m + 1)`` at each setting to
    reproduce it (a claim about every setting needs no correction, as an intersection-union test),
    ``error_rate / (K - m)`` to contradict it. Both rates hold however the settings depend on each
    other.

    Parameters
    ----------
    measurements : list of Measurement
    low, high : float
        Limits of the claim, infinite where there is none.
    error_rate : float
        Probability at most of calling a false claim reproduced, and a true one contradicted.
    exceptions : float
        Share of the settings in which a claim may be false and yet count as true.
    """
    count = len(measurements)
    spared = math.floor(exceptions * count + 1e-9)
    for_it, against = error_rate / (spared + 1), error_rate / (count - spared)
    margins = [_margin(entry, low, high) for entry in measurements]
    holding = [_within(entry, low, high, for_it) for entry in measurements]
    beyond = [_beyond(entry, low, high, against) for entry in measurements]
    worst = min(range(count), key=lambda k: (not beyond[k], holding[k], margins[k]))
    ours = measurements[worst]
    parts = []
    if count > 1:
        told = f"established at {sum(holding)} of {count} settings"
        parts.append(told + (f", contradicted at {sum(beyond)}" if any(beyond) else ""))
    level = against if beyond[worst] else for_it
    parts.append(
        f"{'least margin: ' if count > 1 else ''}{_in_words(ours)}{_interval(ours, level)}"
    )
    needed = math.nan
    if sum(holding) >= count - spared:
        verdict = REPRODUCED
    elif sum(beyond) > spared:
        verdict = CONTRADICTED
    else:
        verdict = UNDECIDED
        needed = _needed(measurements, margins, spared, (for_it, against))
        if min(ours.slack(level)) < math.inf or ours.runs == 1:
            parts.append(_runs_in_words(needed, margins[worst] >= 0))
    return Decision(verdict, "; ".join(parts), ours.estimate, ours.natural_se, needed)


def without_uncertainty(entry: Measurement) -> str:
    """In words why nothing is decided."""
    if entry.runs > 1 and entry.bounds and math.isfinite(entry.scale.of(entry.estimate)):
        return f"{entry.runs} runs are too few for an interval"
    why = "from a single run" if entry.runs == 1 else "not finite in every resample"
    return f"{why}: no uncertainty"


def runs_in_words(needed: float) -> str:
    """In words how many runs would decide."""
    if not needed < MOST_RUNS:
        return "no number of runs decides"
    return f"about {max(math.ceil(needed), 2):,} runs would decide"


def runs_until(entry: Measurement, slack: float, level: float) -> float:
    """Least number of runs whose one-sided interval is no longer than `slack`.

    Infinite if no number does, for the error of the limits stays. Intervals of medians take a few
    runs to exist, and add the errors of their groups.
    """
    groups = len(entry.bounds.samples) if isinstance(entry.bounds, Box) else 1
    spread = entry.se * math.sqrt(groups)

    def enough(runs: int) -> bool:
        error = math.hypot(spread * math.sqrt(entry.runs / runs), entry.limit_se)
        exists = entry.bounds is None or 0.5**runs <= level / groups
        return exists and student(runs, level) * error <= slack

    if not enough(int(MOST_RUNS)):
        return math.inf
    return float(bisect_left(range(int(MOST_RUNS)), True, lo=2, key=enough))


def _runs_in_words(needed: float, inside: bool) -> str:
    """What an undecided claim lacks: certainty, on the side where it is measured."""
    side = "not sure to hold" if inside else "not sure to be false"
    return f"{side}: {runs_in_words(needed)}"


def _needed(
    measurements: list[Measurement],
    margins: list[float],
    spared: int,
    levels: tuple[float, float],
) -> float:
    """Runs at which a claim would be decided, were the measured values exact."""
    inside = [k for k, margin in enumerate(margins) if margin >= 0]
    reproduces = len(inside) >= len(margins) - spared
    level = levels[0] if reproduces else levels[1]
    chosen = inside if reproduces else [k for k in range(len(margins)) if k not in set(inside)]
    runs = sorted(_runs_at(measurements[k], margins[k], level) for k in chosen)
    return runs[len(margins) - spared - 1 if reproduces else spared]


def _runs_at(entry: Measurement, margin: float, level: float) -> float:
    """Runs after which the interval of one setting keeps clear of the limit."""
    if entry.runs == 0:
        return 0.0
    if entry.runs == 1 or math.isnan(entry.se) or math.isinf(margin):
        return math.inf
    return runs_until(entry, abs(margin), level)


def _rooms(entry: Measurement, low: float, high: float) -> list[tuple[float, int]]:
    """How far the estimate is inside each limit there is, on its scale; 0 for the lower one."""
    value, low, high = (entry.scale.of(number) for number in (entry.estimate, low, high))
    # An infinite value is well inside where there is no limit on that side.
    rooms = [(value - low, 0)] * (low > -math.inf) + [(high - value, 1)] * (high < math.inf)
    if entry.runs:
        return rooms
    # Numbers read from text: equal but for rounding.
    same = 1e-9 * abs(value)
    return [(0.0 if math.isclose(room, 0, abs_tol=same) else room, side) for room, side in rooms]


def _margin(entry: Measurement, low: float, high: float) -> float:
    """How far the estimate is inside the limits on its scale, negative outside."""
    return min((room for room, _ in _rooms(entry, low, high)), default=math.inf)


def _within(entry: Measurement, low: float, high: float, level: float) -> bool:
    """Whether the interval of a setting keeps within the limits."""
    slack = entry.slack(level)
    rooms = _rooms(entry, low, high)
    return all(slack[side] < math.inf and slack[side] <= room for room, side in rooms)


def _beyond(entry: Measurement, low: float, high: float, level: float) -> bool:
    """Whether it lies beyond one of them."""
    slack = entry.slack(level)
    return any(room < -slack[1 - side] for room, side in _rooms(entry, low, high))


def _in_words(entry: Measurement) -> str:
    digits = 4 if entry.runs else 7
    return f"{entry.estimate:.{digits}g} ({entry.setting})"


def _interval(entry: Measurement, level: float) -> str:
    if entry.runs == 0:
        return ""
    below, above = entry.slack(level)
    if math.isinf(min(below, above)):
        return f" {without_uncertainty(entry)}"
    middle = entry.scale.of(entry.estimate)
    low, high = entry.scale.back(middle - below), entry.scale.back(middle + above)
    return f", interval {low:.3g} to {high:.3g} from {entry.runs} runs"
