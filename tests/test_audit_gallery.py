"""The audit gallery: its page has all entries, and its audit finds what outcomes give away."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
GALLERY = runpy.run_path(str(ROOT / "benchmarks/audit_gallery.py"))
PAGE = (ROOT / "docs/audit.md").read_text(encoding="utf-8")


def test_the_page_has_a_row_of_each_mechanism_and_every_known_fault_is_found():
    rows = re.findall(
        r"^\| ([\w-]+) ([\d.]+) \| (`.*?) \| (?:epsilon|mu) = (\d) \| ([\d.]+)"
        r" \| (.*?) \| (.*?) \|$",
        PAGE,
        re.MULTILINE,
    )
    entries = list(GALLERY["ENTRIES"].values())
    assert len(rows) >= 8
    assert {(f"{name}=={version}", what) for name, version, what, *_ in rows} == {
        (entry.packages.split()[0], entry.what) for entry in entries
    }
    faults = {entry.known for entry in entries if entry.known}
    for _, _, _, claim, bound, said, known in rows:
        violated = float(bound) > float(claim)
        assert said == ("violated" if violated else "not violated")
        assert known == "no" or known.removeprefix("[yes](").removesuffix(")") in faults
        assert (known != "no") == violated


def test_its_audit_finds_too_little_noise_and_nothing_else():
    """The confidence is 0.99 and the seeds are fixed; a right claim is refuted in 1 % of seeds."""
    rng = np.random.default_rng(0)

    def pools(scale: float) -> list[list[float]]:
        return [list(side + rng.laplace(scale=scale, size=4000)) for side in (0, 1)]

    right, wrong = (GALLERY["audited"]("opendp_laplace", pools(scale)) for scale in (1.0, 0.5))
    assert not right.violates_claim
    assert wrong.violates_claim
    assert GALLERY["row"]("opendp_laplace", wrong).endswith("| violated | no |")
