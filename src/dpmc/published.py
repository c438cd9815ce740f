"""Compare a run with what a document printed: one verdict per claim and per number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import yaml
from scipy.stats import t as student

from dpmc.bootstrap import Measurement
from dpmc.claims import AS_PUBLISHED, KINDS, Evidence, NotRunError, setting
from dpmc.rng import stream
from dpmc.types import DpmcError

if TYPE_CHECKING:
    from dpmc.outputs._context import Context

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not_reproduced"
NOT_COMPARABLE = "not_comparable"
COLUMNS = ("id", "where", "variant", "published", "ours", "ours_se", "rule", "verdict", "reason")
ENTRY_KEYS = {"id", "where", "published", "variants", "rule", "low", "high", "scaled"}
FILE_KEYS = {"paper", "error_rate", "share", "resamples", "seed", "needs", "entries"}


@dataclass(frozen=True)
class Decision:
    """What the measurements of one claim amount to.

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


def load(path: Path | str) -> dict[str, Any]:
    """Read the claims and numbers of a document.

    Raises
    ------
    DpmcError
        If the file is not YAML, or an entry is unknown, incomplete or named twice.
    """
    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise DpmcError(f"{path}: {str(error).splitlines()[0]}") from None
    _check(values, str(path))
    result: dict[str, Any] = values
    return result


def verdicts(
    published: Mapping[str, Any],
    metrics: pd.DataFrame,
    baselines: pd.DataFrame,
    context: Context,
) -> pd.DataFrame:
    """Judge every entry of a document, once per variant that it names.

    A claim is measured at several settings. A setting contradicts it if the measured
    value lies beyond a limit by more than its uncertainty: a one-sided Student interval
    of the bootstrap standard error (over replicates, on the log scale for ratios), its
    level divided by the number of settings. So a claim that is true everywhere is called
    not reproduced with a probability of about `error_rate` at most. It is reproduced if
    no setting contradicts it and the measured values obey it in at least a `share` of
    the settings; otherwise the run cannot tell, and it is not comparable. Neither is
    anything measured on an experiment whose sizes (`needs`) were cut down.

    Parameters
    ----------
    published : mapping
        As `load` returns it.
    metrics : pandas.DataFrame
        One row per run, of all experiments.
    baselines : pandas.DataFrame
        One row per exact sample: experiment ``baseline`` of the rules.
    context : Context
        Holds the resolved configuration of the document.

    Returns
    -------
    pandas.DataFrame
        Columns ``COLUMNS``; `ours` is the value of the setting with the least margin.

    Raises
    ------
    DpmcError
        If an entry is not well formed.
    """
    _check(published, "published")
    evidence = metrics if baselines.empty else pd.concat([metrics, baselines], ignore_index=True)
    rows = []
    for entry in published["entries"]:
        for variant in entry.get("variants", [AS_PUBLISHED]):
            decision = _judge(entry, variant, published, evidence, context.config)
            rows.append(
                {
                    "id": entry["id"],
                    "where": entry["where"],
                    "variant": variant,
                    "published": str(entry["published"]),
                    "ours": decision.ours,
                    "ours_se": decision.ours_se,
                    "rule": describe(entry, published),
                    "verdict": decision.verdict,
                    "reason": decision.reason,
                }
            )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def describe(entry: Mapping[str, Any], published: Mapping[str, Any]) -> str:
    """Return the rule of an entry in words."""
    rule, kind = entry["rule"], entry["rule"]["kind"]
    statistic, metric = rule.get("statistic", "median"), rule.get("metric", "")
    measured = {
        "ratio": f"ratio of {statistic}s of {metric}",
        "level": f"{statistic} of {metric}" + (f" / {rule['over']}" if "over" in rule else ""),
        "count": f"runs with {metric} between {rule.get('between')}",
        "regret": f"ratio of the worst {metric} over the best, over problems",
        "setting": f"{rule.get('path')}",
        "reuse": "iterations gained by keeping the last gradient",
    }[kind].replace("of_median_run of", "the median run's")
    text = f"{measured} {_limits(entry)}"
    if rule.get("by"):
        text += f" at each {' and '.join(rule['by'])}"
    if kind in ("setting", "count", "reuse"):
        return text + "; exact"
    return text + f"; error rate {published['error_rate']:g} over all settings"


def decide(
    measurements: list[Measurement], low: float, high: float, error_rate: float, share: float
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

    Returns
    -------
    Decision
    """
    margins = [_margin(entry, low, high) for entry in measurements]
    if any(entry.runs == 1 or math.isnan(entry.se) for entry in measurements):
        least = min(zip(margins, measurements, strict=True), key=lambda pair: pair[0])[1]
        reason = f"{_told(least)} from a single run: no uncertainty"
        return Decision(NOT_COMPARABLE, reason, least.estimate)
    slacks = [_slack(entry, error_rate / len(measurements)) for entry in measurements]
    holding = sum(margin >= 0 for margin in margins)
    beyond = [m < -s for m, s in zip(margins, slacks, strict=True)]
    worst = min(range(len(margins)), key=lambda k: (not beyond[k], margins[k]))
    ours = measurements[worst]
    se = ours.se * (abs(ours.estimate) if ours.log else 1.0)
    held = f"holds at {holding} of {len(margins)} settings" if len(margins) > 1 else ""
    parts = [held] if held else []
    parts.append(f"{'least margin: ' if held else ''}{_told(ours)}{_interval(ours, slacks[worst])}")
    if any(beyond):
        if held:
            parts.insert(1, f"contradicted at {sum(beyond)}")
        return Decision(NOT_REPRODUCED, "; ".join(parts), ours.estimate, se)
    if holding >= share * len(margins):
        return Decision(REPRODUCED, "; ".join(parts), ours.estimate, se)
    parts.append("too uncertain to contradict the claim")
    return Decision(NOT_COMPARABLE, "; ".join(parts), ours.estimate, se)


def _judge(
    entry: Mapping[str, Any],
    variant: str,
    published: Mapping[str, Any],
    metrics: pd.DataFrame,
    config: Mapping[str, Any],
) -> Decision:
    rng = stream(published["seed"], "bootstrap", entry["id"], variant)
    evidence = Evidence(metrics, config, rng, published["resamples"])
    try:
        _check_sizes(entry["rule"], published["needs"], evidence)
        measured = KINDS[entry["rule"]["kind"]](entry["rule"], evidence, variant)
    except NotRunError as lacking:
        return Decision(NOT_COMPARABLE, str(lacking))
    low, high = float(entry.get("low", -math.inf)), float(entry.get("high", math.inf))
    decision = decide(measured, low, high, published["error_rate"], published["share"])
    if entry.get("scaled") and decision.verdict == NOT_REPRODUCED:
        reason = f"this run is cut down: {decision.reason}"
        return Decision(NOT_COMPARABLE, reason, decision.ours, decision.ours_se)
    return decision


def _check_sizes(rule: Any, needs: Mapping[str, Any], evidence: Evidence) -> None:
    """Refuse a run that shrank an experiment that `rule` reads."""
    if isinstance(rule, list):
        for part in rule:
            _check_sizes(part, needs, evidence)
    elif isinstance(rule, Mapping):
        for key, part in rule.items():
            _check_sizes(part, needs, evidence)
            for path, wanted in needs.get(part, {}).items() if key == "experiment" else ():
                value = setting({"path": path}, evidence, AS_PUBLISHED)[0].estimate
                if value != wanted:
                    raise NotRunError(f"this run is cut down: {path} is {value:g}, not {wanted:g}")


def _margin(entry: Measurement, low: float, high: float) -> float:
    """Return how far the estimate is inside the limits, negative outside."""
    value = entry.estimate
    if entry.log:
        value, low, high = (_log(number) for number in (value, low, high))
    inside = min(high - value, value - low)
    # Numbers read from text: equal but for rounding.
    return 0.0 if entry.runs == 0 and math.isclose(inside, 0, abs_tol=1e-9 * abs(value)) else inside


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _slack(entry: Measurement, level: float) -> float:
    if entry.runs == 0:
        return 0.0
    return float(student.ppf(1 - level, entry.runs - 1)) * entry.se


def _told(entry: Measurement) -> str:
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


def _limits(entry: Mapping[str, Any]) -> str:
    low, high = entry.get("low"), entry.get("high")
    if low is not None and low == high:
        return f"= {low:g}"
    if low is None:
        return f"<= {high:g}"
    return f">= {low:g}" if high is None else f"in [{low:g}, {high:g}]"


def _check(values: Any, where: str) -> None:
    if not isinstance(values, Mapping) or set(values) != FILE_KEYS:
        raise DpmcError(f"{where}: allowed keys {', '.join(sorted(FILE_KEYS))}, all of them")
    seen: set[str] = set()
    for name, problem in _problems(values["entries"]):
        raise DpmcError(f"{where}: entry {name!r}: {problem}")
    for entry in values["entries"]:
        if entry["id"] in seen:
            raise DpmcError(f"{where}: entry {entry['id']!r} is given twice")
        seen.add(entry["id"])


def _problems(entries: Any) -> Iterator[tuple[str, str]]:
    for entry in entries:
        name = str(entry.get("id", "?"))
        unknown = set(entry) - ENTRY_KEYS
        if unknown:
            yield name, f"key {min(unknown)!r}, allowed {', '.join(sorted(ENTRY_KEYS))}"
        for key in ("id", "where", "published", "rule"):
            if key not in entry:
                yield name, f"{key} is missing"
        kind = entry["rule"].get("kind")
        if kind not in KINDS:
            yield name, f"rule {kind!r}, allowed {', '.join(KINDS)}"
        if "low" not in entry and "high" not in entry:
            yield name, "low or high is missing"
