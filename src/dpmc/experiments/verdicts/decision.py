"""Decision whether measurements obey the limits of a claim, with a stated error rate."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import stdtrit

from dpmc.experiments.verdicts.bootstrap import Measurement
from dpmc.experiments.verdicts.verdict import NOT_COMPARABLE, NOT_REPRODUCED, REPRODUCED


@dataclass(frozen=True)
class Decision:
    """The decision on the measurements of one claim.

    Parameters
    ----------
    verdict : {"reproduced", "not_reproduced", "not_comparable"}
    reason : str
        Built from the numbers.
    ours, ours_se : float
        The measurement closest to a limit or furthest beyond it, and its standard error.
    """

    verdict: str
    reason: str
    ours: float = math.nan
    ours_se: float = math.nan


def decide(
    measurements: list[Measurement],
    low: float,
    high: float,
    error_rate: float,
    share: float,
    exceptions: float = 0.0,
) -> Decision:
    """Turn the measurements of one claim into a verdict.

    Parameters
    ----------
    measurements : list of Measurement
    low, high : float
        Limits of the claim, infinite where there is none.
    error_rate : float
        Probability of calling a true claim not reproduced, all settings together.
    share : float
        Share of the settings in which a reproduced claim holds.
    exceptions : float
        Share of the settings in which a claim may be false and yet count as true.

    Returns
    -------
    Decision
    """
    margins = [_margin(entry, low, high) for entry in measurements]
    if any(entry.runs == 1 or math.isnan(entry.se) for entry in measurements):
        least = min(zip(margins, measurements, strict=True), key=lambda pair: pair[0])[1]
        lacking = "from a single run" if least.runs == 1 else "in no finite resample"
        reason = f"{_in_words(least)} {lacking}: no uncertainty"
        return Decision(NOT_COMPARABLE, reason, least.estimate)
    slacks = [_slack(entry, error_rate / len(measurements)) for entry in measurements]
    holding = sum(margin >= 0 for margin in margins)
    beyond = [m < -s for m, s in zip(margins, slacks, strict=True)]
    worst = min(range(len(margins)), key=lambda k: (not beyond[k], margins[k]))
    ours = measurements[worst]
    se = ours.se * (abs(ours.estimate) if ours.log else 1.0)
    held = f"holds at {holding} of {len(margins)} settings" if len(margins) > 1 else ""
    parts = [held] if held else []
    if held and any(beyond):
        parts.append(f"contradicted at {sum(beyond)}")
    parts.append(
        f"{'least margin: ' if held else ''}{_in_words(ours)}{_interval(ours, slacks[worst])}"
    )
    if sum(beyond) > exceptions * len(margins) + 1e-9:
        return Decision(NOT_REPRODUCED, "; ".join(parts), ours.estimate, se)
    if holding >= share * len(margins):
        return Decision(REPRODUCED, "; ".join(parts), ours.estimate, se)
    parts.append("too uncertain to contradict the claim")
    return Decision(NOT_COMPARABLE, "; ".join(parts), ours.estimate, se)


def _margin(entry: Measurement, low: float, high: float) -> float:
    """Return how far the estimate is inside the limits, negative outside."""
    value = entry.estimate
    if entry.log:
        value, low, high = (_log(number) for number in (value, low, high))
    # An infinite value is well inside where there is no limit on that side.
    sides = [high - value] * (high < math.inf) + [value - low] * (low > -math.inf)
    inside = min(sides, default=math.inf)
    # Numbers read from text: equal but for rounding.
    return 0.0 if entry.runs == 0 and math.isclose(inside, 0, abs_tol=1e-9 * abs(value)) else inside


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _slack(entry: Measurement, level: float) -> float:
    if entry.runs == 0:
        return 0.0
    return float(stdtrit(entry.runs - 1, 1 - level)) * math.hypot(entry.se, entry.limit_se)


def _in_words(entry: Measurement) -> str:
    digits = 4 if entry.runs else 7
    return f"{entry.estimate:.{digits}g} ({entry.setting})"


def _interval(entry: Measurement, slack: float) -> str:
    if entry.runs == 0:
        return ""
    if entry.log:
        low, high = entry.estimate * math.exp(-slack), entry.estimate * math.exp(min(slack, 700))
    else:
        low, high = entry.estimate - slack, entry.estimate + slack
    return f", interval {low:.3g} to {high:.3g} from {entry.runs} runs"
