"""Judge of a document: one verdict per claim and per printed number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpmc.rng import stream
from dpmc.types import DpmcError
from dpmc_papers.verdicts import printed_series, verdict
from dpmc_papers.verdicts.agreement import compare
from dpmc_papers.verdicts.bootstrap import Measurement
from dpmc_papers.verdicts.claim_file import check, outputs_of
from dpmc_papers.verdicts.decision import Decision, decide
from dpmc_papers.verdicts.evidence import (
    AS_PUBLISHED,
    Evidence,
    NotRunError,
    Parts,
    unavailable,
)
from dpmc_papers.verdicts.kinds import Kind
from dpmc_papers.verdicts.lookup import kinds
from dpmc_papers.verdicts.printed import together
from dpmc_papers.verdicts.printed_series import TOGETHER
from dpmc_papers.verdicts.privacy_mark import privacy_of
from dpmc_papers.verdicts.rules import configured
from dpmc_papers.verdicts.verdict import (
    BESIDE_PRINT,
    DISTANCE,
    NOT_COMPARABLE,
    Verdict,
)

if TYPE_CHECKING:
    from dpmc_papers.pipeline.results import Context


def verdicts(
    published: Mapping[str, Any],
    metrics: pd.DataFrame,
    baselines: pd.DataFrame,
    context: Context,
) -> pd.DataFrame:
    """Judge every entry of a document, once per variant that it names.

    A claim is measured at several settings, each with a bootstrap standard error over replicates
    (of the logarithm for ratios). :func:`dpmc_papers.verdicts.decision.decide` says which of
    three the data establish: the claim at every setting (or all but the share of `exceptions`),
    its opposite, or neither. Every printed cell of a series has a verdict of its own by
    :func:`dpmc_papers.verdicts.agreement.compare`, and so has every row of cells together.
    Nothing is judged that was measured on an experiment or problem whose sizes (`needs`) were cut
    down. A rule with ``exact: true`` is about values that nothing random enters: one run says all.

    Print is about the variants in `printed_variants`. Under any other variant a claim holds or
    does not, and a printed number is shown beside ours without a verdict. Whether runs
    have the privacy that they were given is a mark of its own.

    Parameters
    ----------
    published : mapping
        As :func:`dpmc_papers.verdicts.claim_file.load` returns it.
    metrics : pandas.DataFrame
        One row per run, of all experiments.
    baselines : pandas.DataFrame
        One row per exact sample: experiment ``baseline`` of the rules.
    context : Context
        Holds the resolved configuration of the document.

    Returns
    -------
    pandas.DataFrame
        As :func:`dpmc_papers.verdicts.verdict.table` returns it.
    """
    check(published, "published")
    parts = Parts(
        metrics if baselines.empty else pd.concat([metrics, baselines], ignore_index=True)
    )
    blocks = [printed_series.expand(block) for block in printed_series.judged(published)]
    return verdict.table(
        _verdict(entry, variant, published, parts, context)
        for entry in [*published["entries"], *(cell for block in blocks for cell in block)]
        for variant in entry.get("variants", [AS_PUBLISHED])
    )


def describe(entry: Mapping[str, Any], published: Mapping[str, Any]) -> str:
    """Rule of an entry in words."""
    rule, rate = entry["rule"], published["error_rate"]
    kind = kinds(published["paper"])[rule["kind"]]
    if TOGETHER in rule:
        cells = rule[TOGETHER]
        what = f"mean ratio to print of {kind.describe(cells[0]['rule'])}, {len(cells)} numbers"
        return f"{what} = 1; {_of_print(kind, rate, entry['family'], 'rows')}"
    text = f"{kind.describe(rule)} {_limits(entry)}"
    if _in_series(entry):
        if _exact(rule, kind):
            return text + "; exact"
        if rule.get("count") == 0:
            return f"{text}; the random numbers of print repeated"
        return f"{text}; {_of_print(kind, rate, entry['family'], 'cells')}"
    if rule.get("by"):
        text += f" at each {' and '.join(rule['by'])}"
    if "exceptions" in entry:
        text += f" but for {100 * entry['exceptions']:g} % of the settings"
    if _exact(rule, kind):
        return text + "; exact"
    return f"{text}; error rate {rate:g} on each side, all settings together"


def _of_print(kind: Kind, rate: float, family: int, things: str) -> str:
    """In words at which error rates a printed number is judged."""
    return (
        f"error rate {rate:g} for what is reproduced, {rate:g} over all {family} {things} for what "
        f"is contradicted, both {kind.uncertain} uncertain"
    )


def _in_series(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is about printed numbers of a series."""
    return "family" in entry


def _verdict(
    entry: Mapping[str, Any],
    variant: str,
    published: Mapping[str, Any],
    parts: Parts,
    context: Context,
) -> Verdict:
    evidence = evidence_for(entry, variant, published, parts, context)
    decision = decision_on(entry, variant, published, evidence)
    digits = ""
    if _in_series(entry) and TOGETHER not in entry["rule"] and not math.isnan(decision.ours):
        digits = "same" if entry["low"] <= decision.ours <= entry["high"] else "other"
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
        privacy=privacy_of(evidence.used, context.config),
        digits=digits,
        resolution=decision.resolution,
        runs_needed=decision.runs_needed,
    )


def evidence_for(
    entry: Mapping[str, Any],
    variant: str,
    published: Mapping[str, Any],
    parts: Parts,
    context: Context,
) -> Evidence:
    """What an entry is judged on: its random numbers depend on it and the variant alone."""
    rng = stream(published["seed"], "bootstrap", entry["id"], variant)
    resamples = published["resamples"]
    return Evidence(parts.whole, context.config, rng, resamples, curves=context.curves, parts=parts)


def measurements_of(
    entry: Mapping[str, Any], variant: str, published: Mapping[str, Any], evidence: Evidence
) -> list[Measurement]:
    """Measure what an entry is about, at each of its settings.

    Raises
    ------
    NotRunError
        If the run lacks what the rule of the entry reads, or was cut down.
    """
    rule = entry["rule"]
    measure = kinds(published["paper"])[rule["kind"]]
    _check_sizes(rule, published["needs"], evidence)
    if TOGETHER in rule:
        return together(rule[TOGETHER], measure, evidence, variant)
    found = measure(rule, evidence, variant)
    return _without_uncertainty(found, entry["id"]) if rule.get("exact") else found


def decision_on(
    entry: Mapping[str, Any], variant: str, published: Mapping[str, Any], evidence: Evidence
) -> Decision:
    """What the runs establish of an entry, without what is told beside it."""
    try:
        measurements = measurements_of(entry, variant, published, evidence)
    except NotRunError as lacking:
        rule = entry["rule"]
        first = rule[TOGETHER][0]["rule"] if TOGETHER in rule else rule
        return Decision(NOT_COMPARABLE, unavailable(first, evidence) or str(lacking))
    low, high = float(entry.get("low", -math.inf)), float(entry.get("high", math.inf))
    error_rate = float(published["error_rate"])
    if _in_series(entry):
        (measurement,) = measurements
        decision = compare(measurement, low, high, error_rate, entry["family"])
    else:
        decision = decide(measurements, low, high, error_rate, float(entry.get("exceptions", 0)))
    if variant in entry.get("printed_variants", published["printed_variants"]):
        return decision
    if _in_series(entry):
        return replace(decision, verdict=DISTANCE, reason=_distance(decision, low, high))
    return replace(decision, verdict=BESIDE_PRINT.get(decision.verdict, decision.verdict))


def _distance(decision: Decision, low: float, high: float) -> str:
    """In words how far a number of another variant is from print."""
    printed = (low + high) / 2
    if printed == 0 or decision.ours / printed <= 0:
        return f"{decision.ours:.4g} where {printed:.4g} is printed"
    return f"{decision.ours:.4g}, {decision.ours / printed:.3g} times print"


def _exact(rule: Mapping[str, Any], kind: Kind) -> bool:
    """Whether nothing random enters what a rule measures: by its kind, or as it says."""
    return kind.exact or bool(rule.get("exact"))


def _without_uncertainty(measurements: list[Measurement], name: str) -> list[Measurement]:
    """Measurements of a rule that says that nothing random enters them."""
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
        value = float(configured(path, evidence.config))
        if value != number:
            raise NotRunError(f"this run is cut down: {path} is {value:g}, not {number:g}")


def _limits(entry: Mapping[str, Any]) -> str:
    low, high = entry.get("low"), entry.get("high")
    if low is not None and low == high:
        return f"= {low:g}"
    if low is None:
        return f"<= {high:g}"
    return f">= {low:g}" if high is None else f"in [{low:g}, {high:g}]"
