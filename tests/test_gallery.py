"""The gallery: its examples run on fewer rows, and each draws the picture that the page shows."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"\]\(examples/(\w+)\.py\)", PAGE)
# Epsilon of what is returned, and what makes the example small.
FITS: dict[str, tuple[float, dict[str, Any]]] = {
    "rare_outcome": (1, {"number": 8_000}),
    "exposure": (1, {"number": 5_000}),
    "raw_units": (1, {"number": 5_000}),
    "heavy_tails": (0.5, {"number": 5_000}),
    "hierarchy": (1, {"number": 5_000}),
    "visits": (1, {"patients": 1_000}),
    "one_budget": (0.7, {"number": 3_000}),
    "somebodys_release": (float("inf"), {"num_draws": 200}),
    "hospitals": (1, {"number": 9_000}),
    "big_files": (0.1, {"number": 60_000}),
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning"),
]


def drawn(name: str, folder: Path, **small: Any) -> Any:
    """What the main function of an example returns, which leaves a picture."""
    path = ROOT / f"docs/examples/{name}.py"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 80
    found = runpy.run_path(str(path))["main"](folder / f"{name}.png", **small)
    assert (folder / f"{name}.png").stat().st_size > 10_000
    return found


@pytest.mark.parametrize("name", FITS)
def test_an_example_fits_within_its_budget_and_draws(name, tmp_path):
    epsilon, small = FITS[name]
    found = drawn(name, tmp_path, **small)
    fit = next(iter(found.values())) if isinstance(found, dict) else found
    fit = fit[0] if isinstance(fit, tuple | list) else fit
    assert np.isfinite(fit.draws).all()
    assert fit.guarantee.epsilon == epsilon


def test_the_audit_finds_the_fault_and_not_the_mended_code(tmp_path):
    """At a confidence of 0.999999, the chance that the mended code is found guilty is 1e-6."""
    found = drawn("audit_other_code", tmp_path)
    assert found["found_somewhere"].violates_claim
    assert not found["mended"].violates_claim


def test_a_method_of_ones_own_is_scored_beside_others(tmp_path):
    table = drawn("own_in_league", tmp_path)
    assert list(table.index) == ["auto", "dp_penalty", "lazy walk"]
    assert (table["status"] == "scored").all()


def test_the_page_shows_twelve_examples_each_with_its_picture():
    assert re.findall(r"\]\(images/(\w+)\.png\)", PAGE) == EXAMPLES
    assert set(EXAMPLES) == {*FITS, "audit_other_code", "own_in_league"}
    assert len(EXAMPLES) == 12
    assert all((ROOT / f"docs/images/{name}.png").stat().st_size < 120_000 for name in EXAMPLES)
