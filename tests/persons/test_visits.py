"""The example of visits of patients: it runs, and an audit finds what it should."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "docs/examples/visits.py"
# A right claim is found to be violated with a probability of at most 1e-7.
SURE = {"runs": 200, "confidence": 1 - 1e-7}


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_the_example_of_visits_runs(tmp_path, capsys):
    runpy.run_path(str(EXAMPLE))["main"](tmp_path / "visits.png")
    said = capsys.readouterr().out
    assert said.rstrip().endswith("(2, 1e-06)-DP, substitution of one patient")
    assert said.count("Privacy: (1, 1e-06)-DP, substitution of one patient.") == 2
    assert "admitted ~ dose" in said


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_guarantees_of_patients_survive_an_audit_and_that_of_rows_does_not(tmp_path):
    """A patient of fifty visits: as one of the rows of which each is protected it is found."""
    names = runpy.run_path(str(EXAMPLE))
    audited, pressure = names["audited"], names["pressure"]
    for part in (pressure, names["ever"]):
        assert not audited(part, folder=tmp_path, **SURE).violates_claim
    rows = audited(pressure, folder=tmp_path, options={"progress": False}, **SURE)
    assert rows.violates_claim
    assert rows.epsilon_lower > 8
