"""Simulation-based calibration: the truth has every rank among draws, unless noise is ignored.

Ranks of 250 truths, drawn from the prior, are uniform if the posterior is right: a chi-squared test
with an error rate of 1e-6, at a fixed seed. 150 truths find out a posterior that ignores the noise
of its release, or the clamp of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import dpmc
from dpmc import mechanisms, priors
from dpmc.releases import moves, posterior

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")]
TRUTHS, ENOUGH, CHAINS, BINS = 250, 150, 24, 5
ERROR_RATE = 1e-6


@dataclass
class Setting:
    """A model, its prior as SciPy has it, records, and the mechanism of their release."""

    model: Any
    prior: Any
    draw: Any
    statistic: Any
    mechanism: Any
    wrong: dict[str, Any]
    options: dict[str, Any]

    def published(self, truth, rng):
        total = np.atleast_1d(np.sum(self.statistic(self.draw(truth, rng)), axis=-1))
        name, scale = self.mechanism.name, float(self.mechanism.scale)
        if name == "laplace":
            noise = rng.laplace(0, scale, total.shape)
        elif name == "geometric":
            stop = 1 - math.exp(-1 / scale)
            noise = rng.geometric(stop, total.shape) - rng.geometric(stop, total.shape)
        else:
            noise = rng.normal(0, scale, total.shape)
        return np.clip(total + noise, *self.mechanism.clamp)


def yes_or_no() -> Setting:
    return Setting(
        dpmc.model(
            lambda p, row: row[0] * math.log(p.t) + (1 - row[0]) * math.log1p(-p.t),
            {"t": priors.beta(1, 6)},
            num_columns=1,
        ),
        stats.beta(1, 6),
        lambda t, rng: (rng.random(15) < t) * 1.0,
        lambda x: x,
        mechanisms.geometric(4.0, clamp=(0, math.inf)),
        {"scale": mechanisms.geometric(0.4, clamp=(0, math.inf))},
        {"n": 15, "values": [0, 1]},
    )


def mean_of_scores() -> Setting:
    return Setting(
        dpmc.model(
            lambda p, row: -0.5 * (row[0] - p.t) ** 2, {"t": priors.normal(0, 0.5)}, num_columns=1
        ),
        stats.norm(0, 0.5),
        lambda t, rng: rng.normal(t, 1, 50),
        lambda x: x,
        mechanisms.laplace(20.0, clamp=(0, 60)),
        {"scale": mechanisms.laplace(2.0, clamp=(0, 60)), "clamp": mechanisms.laplace(20.0)},
        {"n": 50, "sample": lambda p, u: p.t + special.ndtri(u)},
    )


def incomes() -> Setting:
    return Setting(
        dpmc.model(
            lambda p, row: -math.log(p.t) - row[0] / p.t, {"t": priors.gamma(3, 2)}, num_columns=1
        ),
        stats.gamma(3, scale=0.5),
        lambda t, rng: rng.exponential(t, 8),
        lambda x: np.clip(x, 0, 4),
        mechanisms.laplace(6.0, clamp=(0, 32)),
        {"scale": mechanisms.laplace(0.6, clamp=(0, 32))},
        {"n": 8, "sample": lambda p, u: -p.t * np.log(u)},
    )


SETTINGS = {"enumeration": yes_or_no, "normal": mean_of_scores, "augmentation": incomes}


def p_value(setting: Setting, method: str, mechanism: Any, truths: int) -> float:
    rng = np.random.default_rng(44)
    ranks = []
    for seed in range(truths):
        truth = float(setting.prior.rvs(random_state=rng))
        told = dpmc.Release(setting.published(truth, rng), setting.statistic, mechanism)
        fit = dpmc.from_release(
            setting.model,
            told,
            **setting.options,
            method=method,
            num_chains=CHAINS,
            num_draws=1,
            seed=seed,
            progress=False,
        )
        ranks.append(int((fit.kept()[:, 0, 0] < truth).sum()))
    counts = np.bincount(np.array(ranks) * BINS // (CHAINS + 1), minlength=BINS)
    return float(stats.chisquare(counts).pvalue)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """One draw of each chain, after moves that are enough for one parameter."""
    monkeypatch.setattr(posterior, "WARM_UP", 12)
    monkeypatch.setattr(moves, "PRIOR_MOVES", 60)


@pytest.mark.parametrize("method", SETTINGS)
def test_the_truth_has_every_rank(method: str) -> None:
    setting = SETTINGS[method]()
    assert p_value(setting, method, setting.mechanism, TRUTHS) > ERROR_RATE


@pytest.mark.parametrize(
    ("method", "ignored"),
    [
        ("enumeration", "scale"),
        ("normal", "scale"),
        ("normal", "clamp"),
        ("augmentation", "scale"),
    ],
)
def test_ranks_show_noise_and_clamps_that_are_ignored(method: str, ignored: str) -> None:
    setting = SETTINGS[method]()
    assert p_value(setting, method, setting.wrong[ignored], ENOUGH) < ERROR_RATE
