"""What makes a value that carries its sensitivity, and how far a row moves it."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np
import pytest

from dpmc.automatic import purse
from dpmc.privacy import clipped
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.clipped import Clip, Clipped
from dpmc.privacy.ledger import Ledger
from dpmc.rows.vectors import clip_rows, clipped_mean

SOURCE = Path(__file__).parents[2] / "src"  # every package of the project
# Where rows are clipped, counted or averaged, beside the bound that it is done with; and where a
# user, a regression whose statistics name their bounds, or a target without rows states one.
MAKERS = {
    "row_sum": {
        "dpmc/rows/sums.py",
        *(f"dpmc/automatic/{name}.py" for name in ("purse", "whitened")),
        *(f"dpmc/automatic/glm/{name}.py" for name in ("person_rows", "rows", "till")),
    },
    "row_span": {
        "dpmc/automatic/whitened.py",
        *(f"dpmc/automatic/glm/{name}.py" for name in ("person_rows", "rows")),
    },
    "row_matrices": {"dpmc/automatic/glm/rows.py", "dpmc/automatic/whitened.py"},
    "row_histogram": {
        "dpmc/families/shares.py",
        *(f"dpmc/automatic/glm/{name}.py" for name in ("person_rows", "rows")),
        *(f"dpmc_league/{name}.py" for name in ("regressions/napsu_mq", "synthetic")),
    },
    "row_counts": {"dpmc/automatic/glm/units.py"},
    "row_mean": {"dpmc/rows/vectors.py"},
    "row_count": {
        "dpmc/automatic/whitened.py",
        *(f"dpmc/automatic/{name}.py" for name in ("run", "glm/rows", "glm/run", "glm/units")),
        "dpmc_league/sep_clips.py",
    },
    "row_shares": {"dpmc/mcmc/clip_shares.py"},
    "Clipped": {"dpmc/privacy/clipped.py", "dpmc/mcmc/batch_ratios.py"},
    "BarkerRatio": {"dpmc/mcmc/batch_ratios.py"},
    "Clip": {"dpmc/rows/batches.py", "dpmc/ep/settings.py"},
    "asserted": {"dpmc/privacy/single_releases.py", "dpmc/linreg/nodes.py", "dpmc_league/price.py"},
    "_replace": set(),
}


def calls(name: str) -> set[str]:
    """Return the files that make a value by a name, or change one."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if name not in text or (name == "_replace" and "Clipped" not in text):
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call):
                called = ast.unparse(call.func).split(".")[-1]
                found |= {path.relative_to(SOURCE).as_posix()} if called == name else set()
    return found


@pytest.mark.parametrize("name", MAKERS)
def test_only_what_clips_makes_a_value_with_a_sensitivity(name):
    assert calls(name) == MAKERS[name]


def test_every_maker_is_looked_at():
    public = {
        name
        for name, one in vars(clipped).items()
        if getattr(one, "__module__", "") == clipped.__name__
    }
    assert public - set(MAKERS) == {"check_value", "number", "V"}


def test_opposite_rows_attain_what_a_value_carries():
    rows = np.zeros((6, 2))
    one, other = rows.copy(), rows.copy()
    one[0], other[0] = (1e9, 0.0), (-1e9, 0.0)
    means = [clipped_mean(x.copy(), 0.5) for x in (one, other)]
    sums = []
    for x in (one.copy(), other.copy()):
        clip_rows(x, 0.5)
        sums.append(clipped.row_sum(x.sum(axis=0), 0.5))
    counts = [clipped.row_count(k) for k in (3, 4)]
    shares = [clipped.row_shares(np.full(3, k / 6), 6) for k in (3, 4)]
    for first, second in (means, sums, counts, shares):
        moved = np.linalg.norm(np.atleast_1d(first.value - second.value))
        assert moved == pytest.approx(first.sensitivity, rel=1e-12)
    assert Clip(0.5, 3.0, 2).sensitivity == pytest.approx(2 * 0.5 * 3.0 * math.sqrt(2))


@pytest.mark.parametrize("extra", [0, 1])
def test_a_search_leaves_its_interval_by_noisy_counts_alone(extra, monkeypatch):
    """Counts that differ by one row, with the same answers: the same bound, and each is paid."""
    answers = iter([1e3] * 3 + [1e3, -1e3])
    monkeypatch.setattr(
        purse.Purse, "count", lambda self, number, cost: (paid.append(number), next(answers))[1]
    )
    paid: list[Clipped] = []
    ledger = Ledger(GaussianBudget(1.0))
    found = purse.search(
        purse.Purse(ledger, np.random.default_rng()),
        lambda lengths: {length: clipped.row_count(100 + extra) for length in lengths},
        100.5,
        -7.5,
        -4.5,
        3,
        0.3,
    )
    assert found == 2.0 ** (-4.5 + 1.5)
    assert len(paid) == 5
