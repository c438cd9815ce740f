"""Compare a run with what a document printed: one verdict per claim and per number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpmc.experiments.config.reader import read_yaml
from dpmc.experiments.verdicts import printed_series
from dpmc.experiments.verdicts.decision import NOT_COMPARABLE, NOT_REPRODUCED, Decision, decide
from dpmc.experiments.verdicts.evidence import AS_PUBLISHED, Evidence, NotRunError, unavailable
from dpmc.experiments.verdicts.rules import KEYS, KINDS, exact, exactly, setting
from dpmc.rng import stream
from dpmc.types import DpmcError

if TYPE_CHECKING:
    from dpmc.experiments.pipeline.results import Context

COLUMNS = ("id", "where", "variant", "published", "ours", "ours_se", "rule", "verdict", "reason")
ENTRY_KEYS = {
    "id", "where", "published", "variants", "rule", "low", "high", "scaled", "exceptions"
}  # fmt: skip
FILE_KEYS = {"paper", "error_rate", "share", "resamples", "seed", "needs", "entries"}


def load(path: Path | str) -> dict[str, Any]:
    """Read the claims and numbers of a document.

    Raises
    ------
    DpmcError
        If the file is missing, is not YAML or repeats a key, or if an entry is unknown,
        incomplete or named twice.
    """
    values = read_yaml(Path(path))
    _check(values, str(path))
    return values


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
    anything measured on an experiment or problem whose sizes (`needs`) were cut down.

    A claim with `exceptions` counts as true if it is at all but this share of the settings:
    it takes more contradictions than that to call it not reproduced, and it must hold at all
    the other settings to be reproduced. A rule with ``exact: true`` is about values that
    nothing random enters: one run says all. Every printed cell of a series has a verdict of its
    own; the cells of one block share the error rate.

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
    blocks = [printed_series.expand(block) for block in published.get("series", ())]
    for entry in [*published["entries"], *(cell for block in blocks for cell in block)]:
        for variant in entry.get("variants", [AS_PUBLISHED]):
            decision = _judge(entry, variant, published, evidence, context)
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
        "problem": f"{rule.get('where', {}).get('quantity')} of the problem",
        "order": f"ratio of {statistic}s of {metric}, each group over each that should exceed it",
        "difference": f"difference of {statistic}s of {metric} over {rule.get('between')}",
        "follows": f"ratio of {rule.get('statistic', 'mean')}s of {metric}, the group with more "
        f"{rule.get('guide', {}).get('metric')} over the other",
        "quartiles": f"median of {metric}",
        "interval": f"{str(rule.get('of')).replace('_', '-')} of {metric}",
        "spread": f"mean of {metric}",
        "curve": "iterations",
        "gain": "iterations by one accountant over those by the other",
    }[kind].replace("of_median_run of", "the median run's")
    text = f"{measured} {_limits(entry)}"
    if rule.get("by"):
        text += f" at each {' and '.join(rule['by'])}"
    if "exceptions" in entry:
        text += f" but for {100 * entry['exceptions']:g} % of the settings"
    if exact(rule):
        return text + "; exact"
    over = f"{entry['family']} cells" if "family" in entry else "settings"
    text += f"; error rate {published['error_rate']:g} over all {over}"
    told = {"quartiles": "medians", "interval": "numbers", "spread": "means"}
    if rule.get("count") == 0:
        return f"{text}, the random numbers of print repeated"
    return f"{text}, both {told[kind]} uncertain" if kind in told else text


def _judge(
    entry: Mapping[str, Any],
    variant: str,
    published: Mapping[str, Any],
    metrics: pd.DataFrame,
    context: Context,
) -> Decision:
    rng = stream(published["seed"], "bootstrap", entry["id"], variant)
    evidence = Evidence(metrics, context.config, rng, published["resamples"], context.curves)
    try:
        _check_sizes(entry["rule"], published["needs"], evidence)
        measured = exactly(
            entry["rule"], KINDS[entry["rule"]["kind"]](entry["rule"], evidence, variant)
        )
    except NotRunError as lacking:
        return Decision(NOT_COMPARABLE, unavailable(entry["rule"], evidence) or str(lacking))
    low, high = float(entry.get("low", -math.inf)), float(entry.get("high", math.inf))
    exceptions = float(entry.get("exceptions", 0))
    share = 1 - exceptions if "exceptions" in entry else published["share"]
    error_rate = published["error_rate"] / entry.get("family", 1)
    decision = decide(measured, low, high, error_rate, share, exceptions)
    if entry.get("scaled") and decision.verdict == NOT_REPRODUCED:
        reason = f"this run is cut down: {decision.reason}"
        return Decision(NOT_COMPARABLE, reason, decision.ours, decision.ours_se)
    return decision


def _check_sizes(rule: Any, needs: Mapping[str, Any], evidence: Evidence) -> None:
    """Refuse a run that shrank an experiment or a problem that `rule` reads."""
    if isinstance(rule, list):
        for part in rule:
            _check_sizes(part, needs, evidence)
    elif isinstance(rule, Mapping):
        for key, part in rule.items():
            _check_sizes(part, needs, evidence)
            named = part if isinstance(part, list) else [part]
            for name in named if key in ("experiment", "problem") else ():
                _check_size(needs.get(name, {}), evidence)


def _check_size(wanted: Mapping[str, float], evidence: Evidence) -> None:
    for path, number in wanted.items():
        value = setting({"path": path}, evidence, AS_PUBLISHED)[0].estimate
        if value != number:
            raise NotRunError(f"this run is cut down: {path} is {value:g}, not {number:g}")


def _limits(entry: Mapping[str, Any]) -> str:
    low, high = entry.get("low"), entry.get("high")
    if low is not None and low == high:
        return f"= {low:g}"
    if low is None:
        return f"<= {high:g}"
    return f">= {low:g}" if high is None else f"in [{low:g}, {high:g}]"


def _check(values: Any, where: str) -> None:
    if not isinstance(values, Mapping) or set(values) - {"series"} != FILE_KEYS:
        raise DpmcError(
            f"{where}: allowed keys {', '.join(sorted(FILE_KEYS))}, all of them, and series"
        )
    for name, problem in _problems(values["entries"]):
        raise DpmcError(f"{where}: entry {name!r}: {problem}")
    blocks = values.get("series", [])
    for block in blocks:
        wrong = printed_series.problem_of(block)
        if wrong:
            name = str(block.get("id", "?")) if isinstance(block, Mapping) else str(block)
            raise DpmcError(f"{where}: series {name!r}: {wrong}")
    seen: set[str] = set()
    for entry in [*values["entries"], *blocks]:
        if entry["id"] in seen:
            raise DpmcError(f"{where}: entry {entry['id']!r} is given twice")
        seen.add(entry["id"])


def _problems(entries: Any) -> Iterator[tuple[str, str]]:
    for entry in entries:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("rule", {}), Mapping):
            yield str(entry), "allowed keys with values, and those of a rule"
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
        for key in KEYS[kind]:
            if key not in entry["rule"]:
                yield name, f"rule {kind!r}: {key} is missing"
        if "low" not in entry and "high" not in entry:
            yield name, "low or high is missing"
        if not 0 <= entry.get("exceptions", 0) < 1:
            yield name, f"exceptions {entry['exceptions']!r}, allowed 0 <= exceptions < 1"
