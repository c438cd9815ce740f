"""Rules on what accountants allow, and on what batches buy."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

from dpmc_papers.outputs._league_accounting import batch_shares
from dpmc_papers.verdicts.bootstrap import Measurement
from dpmc_papers.verdicts.evidence import Evidence, NotRunError, Rule, or_not_run
from dpmc_papers.verdicts.kinds import kind
from dpmc_papers.verdicts.printed import curve_rows
from dpmc_papers.verdicts.scales import PLAIN


@kind(
    "curve",
    "label",
    "accountant",
    "over",
    describe=lambda rule: (
        f"iterations by {rule.get('accountant')} over those by {rule.get('over')}"
    ),
    exact=True,
)
def allowed(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure how many times more iterations one accountant allows than another, per epsilon.

    Keys: `curve`, `label`, `accountant`, `over`, and `below`: the largest epsilon that counts.
    """
    table = curve_rows(rule, evidence)
    table = table[
        (table["label"] == rule["label"]) & (table["epsilon"] <= rule.get("below", math.inf))
    ]
    counts = table.pivot_table("num_iterations", "epsilon", "accountant", sort=False)
    for name in (rule["accountant"], rule["over"]):
        if name not in counts:
            raise NotRunError(f"not in this run: {name} of {rule['label']} ({rule['curve']})")
    counts = counts[counts.gt(0).any(axis=1)]
    ratios = counts[rule["accountant"]] / counts[rule["over"]]
    return or_not_run(
        [
            Measurement(f"epsilon {epsilon:g}", float(value), 0.0, 0, PLAIN)
            for epsilon, value in ratios.items()
        ],
        [f"an epsilon that allows an iteration of {rule['label']}"],
        rule,
    )


@kind("curve", describe=lambda rule: "what batches say over what all rows would", exact=True)
def batches(rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
    """Measure what batches say of a mode over what the budget buys of all rows, per setting.

    Keys: `curve`, and those that count: `rates`, shares of the rows in a batch, and `most_noise`.
    """
    table = batch_shares(curve_rows(rule, evidence), evidence.config["accounting"][rule["curve"]])
    if "rates" in rule:
        table = table[table["rate"].isin(rule["rates"])]
    table = table[table["noise_multiplier"] <= rule.get("most_noise", math.inf)]
    if table.empty:
        raise NotRunError(f"not in this run: batches of these sizes ({rule['curve']})")
    return [
        Measurement(_words(row), float(row["share"]), 0.0, 0, PLAIN)
        for row in table.to_dict("records")
    ]


def _words(row: Mapping[Hashable, Any]) -> str:
    noise, epsilon = row["noise_multiplier"], row["epsilon"]
    return f"batches of {row['rate']:g}, noise {noise:g}, epsilon {epsilon:g}"
