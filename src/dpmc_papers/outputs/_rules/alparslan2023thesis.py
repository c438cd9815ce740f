"""Rule that one metric follows another: Fisher information and the errors that it predicts."""

from __future__ import annotations

from dpmc_papers.verdicts.bootstrap import Measurement
from dpmc_papers.verdicts.comparisons import first_over_second, shared_settings
from dpmc_papers.verdicts.evidence import (
    Evidence,
    Rule,
    grid,
    name_of,
    or_not_run,
    select,
    with_fallback,
    words,
)
from dpmc_papers.verdicts.kinds import kind, statistics_of
from dpmc_papers.verdicts.scales import LOG


def _in_words(rule: Rule) -> str:
    guide = rule.get("guide", {}).get("metric")
    return f"ratio of {statistics_of(rule, 'mean')}, the group with more {guide} over the other"


@kind("metric", "groups", "by", "guide", describe=_in_words)
def follows(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure, per setting, whether the group with the larger guide has the smaller metric.

    A claim that one quantity predicts the order of another holds whichever group comes first.
    Keys: `metric`, `statistic` (mean), `where`, `groups` (two filters), `by`, and `guide`:
    the `metric` that leads and `where` it stands, at the same settings and groups. What is
    measured is the metric of the group with the larger guide over that of the other.
    """
    rows = evidence.select(rule.get("where", {}))
    by, guide = list(rule["by"]), rule["guide"]
    groups = [with_fallback(select(rows, side), variant, side) for side in rule["groups"]]
    leads = evidence.select(guide.get("where", {}))
    leads = leads[leads[guide["metric"]].notna()]
    guides = [
        dict(grid(with_fallback(select(leads, side), variant, side), by)) for side in rule["groups"]
    ]
    measurements = []
    for values, pair in shared_settings(groups, by):
        if not all(values in side for side in guides):
            continue
        means = [float(side[values][guide["metric"]].mean()) for side in guides]
        ahead = pair if means[0] > means[1] else pair[::-1]
        statistic = str(rule.get("statistic", "mean"))
        larger = rule["groups"][0 if means[0] > means[1] else 1]
        name = ", ".join([f"{words(larger)} ahead", *([name_of({}, by, values)] if by else [])])
        measurements.append(
            evidence.measure(name, ahead, rule["metric"], statistic, LOG, first_over_second)
        )
    lacking = [words(s) for s, g in zip(rule["groups"], groups, strict=True) if g.empty]
    return or_not_run(measurements, lacking or [f"settings with {guide['metric']}"], rule)
