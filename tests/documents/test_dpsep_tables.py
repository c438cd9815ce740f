"""[vinaroz2022dpsep] Tables 2 and 3: cut digits of naval, and the splits of wine."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import yaml

from dpmc.rng import stream
from dpmc_papers.data import uci, uci_network

ROOT = Path(__file__).parents[2]
SERIES = ("", "-clipped", "-dp")


def printed() -> list[tuple[str, float, float]]:
    """Return table, test error and log-likelihood of every printed row with public code."""
    told = yaml.safe_load((ROOT / "config/published/vinaroz2022dpsep.yaml").read_text())
    cells = {entry["id"]: entry["cells"] for entry in told["series"]}
    return [
        (table, error[0], likelihood[0])
        for kind in SERIES
        for table in ("naval", "kin8nm", "power", "wine", "protein")
        for error, likelihood in zip(
            cells[f"T-2{kind}"][table], cells[f"T-3{kind}"][table], strict=True
        )
    ]


def calibrated_error(log_likelihood: float) -> float:
    """Return the error at which normal predictions of the right width have this likelihood."""
    return math.exp(-log_likelihood) / math.sqrt(2 * math.pi * math.e)


def test_errors_of_naval_are_cut_off_after_three_digits():
    """Each other printed error is within 2 % of what its log-likelihood implies."""
    found = printed()
    assert len(found) == 20
    for table, error, likelihood in found:
        implied = calibrated_error(likelihood)
        if table == "naval":
            assert implied > 1.08 * error
            assert math.floor(implied * 1000) == round(error * 1000)
        else:
            assert implied == pytest.approx(error, rel=0.02)


def test_ten_splits_of_wine_are_easy_ones():
    """Least squares on the splits of seeds 1 to 10, and on those of seeds 1 to 120.

    No random numbers of ours: the splits are those of the seeds.
    """
    if uci.find(uci.resolve("wine")) is None:
        pytest.skip("DPMC_UCI_DIR names no folder with wine_red")
    errors = np.array([least_squares_error(seed) for seed in range(1, 121)])
    assert errors.mean() == pytest.approx(0.6486, abs=5e-4)
    assert errors[:10].mean() == pytest.approx(0.6115, abs=5e-4)
    assert errors[:10].mean() < errors.mean() - 2.5 * errors.std() / math.sqrt(10)


def least_squares_error(seed: int) -> float:
    params = uci_network.Params("wine", seed, "authors")
    part = uci_network.split(uci_network.generate(params, stream(0, "unused")))
    inputs, tested = (np.column_stack((x, np.ones(len(x)))) for x in (part.x, part.x_test))
    weights = np.linalg.lstsq(inputs, part.y, rcond=None)[0]
    return float(part.y_scale * np.sqrt(np.mean((tested @ weights - part.y_test) ** 2)))
