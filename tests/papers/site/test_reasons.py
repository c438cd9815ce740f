"""Reasons in words: every form that verdicts take, and none of their marks left."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from dpmc_papers.site import reasons, strip
from dpmc_papers.verdicts import verdict
from dpmc_papers.verdicts.verdict import Verdict

ROOT = Path(__file__).parents[3]
PAPERS = sorted(path.parent.name for path in ROOT.glob("results/published/*/verdict.csv"))
CONFIG = {"problems": {"paper_gauss_10d": {"label": "Gaussian"}}}
RULE = "ratio of medians of mmd >= 1.3 at each epsilon; error rate 0.05 on each side"
MARKS = re.compile(r"settings|least margin|epsilon=|not sure to|[a-z]_[a-z]|\be\+|\bmmd\b")


def judged(reason: str, outcome: str = "undecided", rule: str = RULE, name: str = "a") -> Verdict:
    return Verdict(name, "here", (), "as_published", "text", 1.0, 0.1, rule, outcome, reason)


@pytest.mark.parametrize(
    ("reason", "outcome", "told"),
    [
        (
            "established at 1 of 8 settings; least margin: 0.7996 (paper_gauss_10d, epsilon 10), "
            "interval 0.6 to 1.07 from 10 runs; not sure to be false: about 30 runs would decide",
            "undecided",
            "Established in 1 of 8 cases, its opposite in none. The closest case: Gaussian, "
            "ε = 10: ratio of medians of MMD 0.8 (0.6 to 1.07 from 10 runs), where at least 1.3 "
            "is asked for. About 30 runs would decide.",
        ),
        (
            "established at 3 of 8 settings, contradicted at 2; least margin: 0.5 (dp_hmc, "
            "epsilon 4), interval 0.4 to 0.6 from 10 runs",
            "contradicted",
            "The opposite is established in 2 of 8 cases, the claim in 3. Furthest beyond the "
            "limit: DP-HMC, ε = 4: ratio of medians of MMD 0.5 (0.4 to 0.6 from 10 runs), where "
            "at least 1.3 is asked for.",
        ),
        (
            "24 % from print, 1.8 standard errors, 20 runs; further away than one number in ten "
            "is by chance, but not one of all: no number of runs decides",
            "undecided",
            "24 % or 1.8 standard errors from print (20 runs): far for one number, but not for the "
            "furthest of so many. More runs would not decide it.",
        ),
        ("0.0145, 1.12 times print", "distance", "1.12 times the printed number."),
        ("5 % from print, all values the same, 3 runs", "contradicted", "5 % from print (3 runs)."),
        ("2 (from a single run: no uncertainty", "undecided", None),
    ],
)
def test_reasons_are_told_in_words(reason: str, outcome: str, told: str | None) -> None:
    found = reasons.why(judged(reason, outcome), CONFIG)
    assert found == (told or f"{reason}.")


def test_a_setting_is_told_with_that_in_print() -> None:
    rule = "problems.p.model.prior_variance = 1e+06; exact"
    entry = judged("1000 (problems.p.model.prior_variance)", "configured_otherwise", rule)
    assert reasons.why(entry, {}) == "Ours is 1,000 (prior variance), in print 1,000,000."


@pytest.mark.parametrize(("text", "told"), [("inf", "∞"), ("-inf", "-∞"), ("nan", "no number")])
def test_numbers_that_are_not_finite_have_words(text: str, told: str) -> None:
    assert reasons._number(text) == told


@pytest.mark.parametrize("paper", PAPERS)
def test_published_reasons_have_no_marks_left(paper: str) -> None:
    config = yaml.safe_load((ROOT / f"config/papers/{paper}.yaml").read_text(encoding="utf-8"))
    entries = verdict.read(ROOT / "results/published" / paper / "verdict.csv")
    told = [reasons.why(entry, config) for entry in entries]
    assert [text for text in told if MARKS.search(text)] == []
    assert any(MARKS.search(entry.reason) for entry in entries)


def test_the_strip_has_one_cell_per_claim_as_printed() -> None:
    entries = [
        judged("x", "contradicted"), judged("y", "holds"), judged("z", "reproduced", name="b"),
        judged("s", "as_configured", name="c"), judged("n", "reproduced", name="d/1"),
    ]  # fmt: skip
    cells = strip.cells(entries)
    assert [(cell.out, cell.held) for cell in cells] == [("no", "none"), ("yes", "none")]
    assert strip.out(cells) == {"yes": 1, "no": 1, "open": 0, "none": 0}
    assert strip.numbers(entries) == {"yes": 1, "no": 0, "open": 0, "none": 0}
    assert cells[0].title == "text: contradicted; no ε to judge"
