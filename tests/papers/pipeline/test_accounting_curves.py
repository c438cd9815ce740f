"""Iterations by accountant: against counts by hand, against print, and what is refused."""

from __future__ import annotations

import math

import pytest
from scipy.stats import norm

from dpmc.yaml_files import typed
from dpmc_papers.config.settings import Curves
from dpmc_papers.pipeline import accounting_curves, store

DELTA, ROWS = 1e-6, 100_000
PENALTY = {
    "method": "dp_penalty",
    "params": {
        "proposal_sd": 0.008,
        "ratio_clip_bound": 2,
        "ratio_noise_multiplier": 0.1 * ROWS**0.5,
    },
    "accountants": ["zcdp", "gaussian"],
}
HMC = {
    "method": "dp_hmc",
    "params": {
        "step_size": 0.0005,
        "num_leapfrog_steps": 10,
        "ratio_clip_bound": 2,
        "gradient_clip_bound": 1,
        "ratio_noise_multiplier": 0.1 * ROWS**0.5,
        "gradient_noise_multiplier": 0.4 * ROWS**0.5,
        "reuse_gradient": True,
    },
    "accountants": ["zcdp", "gaussian"],
}
MINIBATCH = {
    "method": "minibatch_penalty",
    "params": {
        "proposal_sd": 0.0008,
        "batch_size": 1000,
        "ratio_clip_bound": 1.5,
        "ratio_noise_multiplier": 0.9**0.5,
        "variance_factor": 3,
    },
    "accountants": ["rdp_truncated", "rdp_integer"],
}


def settings(epsilons=(1, 2, 3, 4, 5, 6), **entries):
    given = {"delta": DELTA, "num_rows": ROWS, "epsilons": list(epsilons), "settings": entries}
    return typed(given, Curves)


def counts(table, label, accountant):
    rows = table[(table["label"] == label) & (table["accountant"] == accountant)]
    return list(rows["num_iterations"])


def test_counts_of_gaussian_releases_are_those_of_the_closed_forms():
    """One release costs mu = 1 / (2 z^2); the counts are those of the definitions."""
    table = accounting_curves.curve(settings(a=PENALTY))
    cost, log_inverse = 1 / (2 * PENALTY["params"]["ratio_noise_multiplier"] ** 2), -math.log(DELTA)

    def delta(epsilon, count):
        mu = count * cost
        s = math.sqrt(2 * mu)
        tail = math.exp(epsilon) * norm.cdf((-mu - epsilon) / s)
        return norm.cdf((mu - epsilon) / s) - tail

    for epsilon, loose, tight in zip(
        range(1, 7), counts(table, "a", "zcdp"), counts(table, "a", "gaussian"), strict=True
    ):
        rho = (math.sqrt(epsilon + log_inverse) - math.sqrt(log_inverse)) ** 2
        assert loose == math.floor(rho / cost)
        assert delta(epsilon, tight) <= DELTA < delta(epsilon, tight + 1)


def test_counts_are_those_that_the_thesis_draws():
    """Figure 6.1 at epsilon 1 to 6, read from the vector figure to about one iteration."""
    table = accounting_curves.curve(settings(penalty=PENALTY, hmc=HMC, minibatch=MINIBATCH))
    drawn = {
        ("penalty", "zcdp"): [35, 134, 294, 508, 770, 1079],
        ("penalty", "gaussian"): [55, 201, 419, 701, 1041, 1431],
        ("hmc", "zcdp"): [21, 82, 181, 312, 474, 664],
        ("hmc", "gaussian"): [34, 123, 258, 432, 640, 880],
        ("minibatch", "rdp_truncated"): [0, 22, 289, 650, 1065, 1542],
    }
    for key, expected in drawn.items():
        assert counts(table, *key) == pytest.approx(expected, abs=1.01)
    # The sum with its last term.
    assert counts(table, "minibatch", "rdp_integer") == [0, 5, 262, 638, 1062, 1537]


def test_rows_come_in_the_order_of_the_settings_with_their_own_epsilons(tmp_path):
    other = {**PENALTY, "epsilons": [0.5], "accountants": ["gaussian"]}
    table = accounting_curves.curve(settings((2, 1), b=PENALTY, a=other))
    assert list(table.columns) == list(accounting_curves.COLUMNS)
    assert list(table["label"]) == ["b"] * 4 + ["a"]
    assert list(table["accountant"]) == ["zcdp"] * 2 + ["gaussian"] * 3
    assert list(table["epsilon"]) == [2, 1, 2, 1, 0.5]
    assert set(table["delta"]) == {DELTA}
    assert table["upper_bound"].all()
    store.write_table(tmp_path / "a.parquet", table)
    assert (
        store.read_tables([tmp_path / "a.parquet"]).astype(accounting_curves.COLUMNS).equals(table)
    )


def test_a_count_that_nobody_proves_is_marked():
    table = accounting_curves.curve(settings((4,), a=MINIBATCH))
    assert dict(zip(table["accountant"], table["upper_bound"], strict=True)) == {
        "rdp_truncated": False,
        "rdp_integer": True,
    }
