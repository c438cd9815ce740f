"""Reasons of verdicts: plain sentences, whatever the status of a run says."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpmc.types import UNAVAILABLE
from dpmc_papers.verdicts import claim_file, printed_series, verdict
from dpmc_papers.verdicts.evidence import AS_PUBLISHED, Evidence, unavailable

ROOT = Path(__file__).parents[3]
PAPERS = sorted(path.stem for path in (ROOT / "config/published").glob("*.yaml"))
# Names of exceptions, calls, addresses and paths, and the first words of a traceback.
CODE = re.compile(
    r"\w*(?:Error|Exception|Warning|Pool|StopIteration|Interrupt)\b|\w\('|Traceback|Errno"
    r"|object at 0x|<class|https?:|/\w+/\w+/"
)
STATUS = (
    f"{UNAVAILABLE}: https://example.org/rows.zip must be downloadable, got: "
    "HTTPSConnectionPool(host='example.org', port=443): Max retries exceeded with url: /rows.zip "
    '(Caused by NameResolutionError("HTTPSConnection(ho'
)


def value(wanted):
    """Return a value that passes a filter of a rule."""
    if isinstance(wanted, list):
        return wanted[0]
    if isinstance(wanted, dict):
        return wanted.get("at_least", 0.0)
    return wanted


def filtering(paper):
    """Return a rule of a document for each set of columns that its rules filter by."""
    published = claim_file.load(ROOT / f"config/published/{paper}.yaml")
    cells = (cell for block in published.get("series", ()) for cell in printed_series.expand(block))
    rules = [entry["rule"] for entry in (*published["entries"], *cells)]
    return {frozenset(rule["where"]): rule for rule in rules if "where" in rule}.values()


def reason(rule, status):
    filters = rule["where"]
    row = {"problem": "some_rows", **{key: value(wanted) for key, wanted in filters.items()}}
    rows = pd.DataFrame([{**row, "variant": AS_PUBLISHED, "mmd": math.nan, "status": status}])
    return unavailable(rule, Evidence(rows, {}, np.random.default_rng(0), 10))


@pytest.mark.parametrize("paper", PAPERS)
def test_no_rule_quotes_what_a_download_raised(paper):
    told = [reason(rule, STATUS) for rule in filtering(paper)]
    assert len(told) > 2
    for text in told:
        assert text.startswith(f"{UNAVAILABLE}: the raw file of ")
        assert not CODE.search(text)


def test_a_rule_whose_runs_are_complete_has_its_data():
    rule = {"where": {"problem": "some_rows"}}
    assert reason(rule, "complete") is None
    assert "of some_rows was" in reason(rule, STATUS)
    assert reason({"where": {"problem": "some_rows", "epsilon": {"below": -1}}}, STATUS) is None


@pytest.mark.parametrize("paper", PAPERS)
def test_published_reasons_are_plain(paper):
    read = verdict.read(ROOT / "results/published" / paper / "verdict.csv")
    assert [entry.id for entry in read if CODE.search(entry.reason)] == []


@pytest.mark.parametrize(
    "text",
    [
        STATUS, "KeyError: 'mmd'", "lacking: 'mmd' (KeyError)", "Traceback (most recent call last)",
        "[Errno 2] No such file", "urllib3.exceptions.MaxRetryError", "float('nan')",
        "no file /home/someone/rows.csv", "<class 'float'>",
    ],
)  # fmt: skip
def test_code_is_found_in_a_reason(text):
    assert CODE.search(text)
