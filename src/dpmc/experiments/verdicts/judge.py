"""Judge of a document: one verdict per claim and per printed number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpmc.experiments.verdicts import printed_series, verdict
from dpmc.experiments.verdicts.bootstrap import Measurement
from dpmc.experiments.verdicts.claim_file import check, outputs_of
from dpmc.experiments.verdicts.decision import Decision, decide
from dpmc.experiments.verdicts.evidence import AS_PUBLISHED, Evidence, NotRunError, unavailable
from dpmc.experiments.verdicts.kinds import Kind
from dpmc.experiments.verdicts.lookup import kinds
from dpmc.experiments.verdicts.rules import setting
from dpmc.experiments.verdicts.verdict import NOT_COMPARABLE, NOT_REPRODUCED, Verdict
from dpmc.rng import stream
from dpmc.types import DpmcError

if TYPE_CHECKING:
    from dpmc.experiments.pipeline.results import Context


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
        As :func:`dpmc.experiments.verdicts.claim_file.load` returns it.
    metrics : pandas.DataFrame
        One row per run, of all experiments.
    baselines : pandas.DataFrame
        One row per exact sample: experiment ``baseline`` of the rules.
    context : Context
        Holds the resolved configuration of the document.

    Returns
    -------
    pandas.DataFrame
        As :func:`dpmc.experiments.verdicts.verdict.table` returns it.

    Raises
    ------
    DpmcError
        If an entry is not well formed.
    """
    check(published, "published")
    rows = metrics if baselines.empty else pd.concat([metrics, baselines], ignore_index=True)
    blocks = [printed_series.expand(block) for block in published.get("series", ())]
    return verdict.table(
        _verdict(entry, variant, published, rows, context)
        for entry in [*published["entries"], *(cell for block in blocks for cell in block)]
        for variant in entry.get("variants", [AS_PUBLISHED])
    )


def describe(entry: Mapping[str, Any], published: Mapping[str, Any]) -> str:
    """Return the rule of an entry in words."""
    rule = entry["rule"]
    kind = kinds(published["paper"])[rule["kind"]]
    text = f"{kind.describe(rule)} {_limits(entry)}"
    if rule.get("by"):
        text += f" at each {' and '.join(rule['by'])}"
    if "exceptions" in entry:
        text += f" but for {100 * entry['exceptions']:g} % of the settings"
    if _exact(rule, kind):
        return text + "; exact"
    over = f"{entry['family']} cells" if "family" in entry else "settings"
    text += f"; error rate {published['error_rate']:g} over all {over}"
    if rule.get("count") == 0:
        return f"{text}, the random numbers of print repeated"
    return f"{text}, both {kind.uncertain} uncertain" if kind.uncertain else text


def _verdict(
    entry: Mapping[str, Any],
    variant: str,
    published: Mapping[str, Any],
    rows: pd.DataFrame,
    context: Context,
) -> Verdict:
    decision = _judge(entry, variant, published, rows, context)
    return Verdict(
        id=entry["id"],
        where=entry["where"],
        output=outputs_of(entry),
        variant=variant,
        published=str(entry["published"]),
        ours=decision.ours,
        ours_se=decision.ours_se,
        rule=describe(entry, published),
        verdict=decision.verdict,
        reason=decision.reason,
    )


def _judge(
    entry: Mapping[str, Any],
    variant: str,
    published: Mapping[str, Any],
    rows: pd.DataFrame,
    context: Context,
) -> Decision:
    rng = stream(published["seed"], "bootstrap", entry["id"], variant)
    evidence = Evidence(rows, context.config, rng, published["resamples"], context.curves)
    rule = entry["rule"]
    measure = kinds(published["paper"])[rule["kind"]]
    try:
        _check_sizes(rule, published["needs"], evidence)
        measurements = measure(rule, evidence, variant)
    except NotRunError as lacking:
        return Decision(NOT_COMPARABLE, unavailable(rule, evidence) or str(lacking))
    if rule.get("exact"):
        measurements = _without_uncertainty(measurements, entry["id"])
    low, high = float(entry.get("low", -math.inf)), float(entry.get("high", math.inf))
    exceptions = float(entry.get("exceptions", 0))
    share = 1 - exceptions if "exceptions" in entry else published["share"]
    error_rate = published["error_rate"] / entry.get("family", 1)
    decision = decide(measurements, low, high, error_rate, share, exceptions)
    if entry.get("scaled") and decision.verdict == NOT_REPRODUCED:
        reason = f"this run is cut down: {decision.reason}"
        return Decision(NOT_COMPARABLE, reason, decision.ours, decision.ours_se)
    return decision


def _exact(rule: Mapping[str, Any], kind: Kind) -> bool:
    """Return whether nothing random enters what a rule measures: by its kind, or as it says."""
    return kind.exact or bool(rule.get("exact"))


def _without_uncertainty(measurements: list[Measurement], name: str) -> list[Measurement]:
    """Return the measurements of a rule that says that nothing random enters them."""
    random = [entry.setting for entry in measurements if entry.runs > 1 and entry.se != 0]
    if random:
        # Replicates differ, so the value is random, not exact.
        raise DpmcError(
            f"the exact rule of entry {name!r} must have one value at each setting, "
            f"got several at {random[0]}"
        )
    return [replace(entry, se=0.0, runs=0) for entry in measurements]


def _check_sizes(rule: Any, needs: Mapping[str, Any], evidence: Evidence) -> None:
    """Refuse a run that shrank an experiment or a problem that `rule` reads."""
    if isinstance(rule, list):
        for part in rule:
            _check_sizes(part, needs, evidence)
    elif isinstance(rule, Mapping):
        for key, part in rule.items():
            _check_sizes(part, needs, evidence)
            names = part if isinstance(part, list) else [part]
            for name in names if key in ("experiment", "problem") else ():
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
