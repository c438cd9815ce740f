"""What a fit says is outside of its guarantee."""

from __future__ import annotations

import pytest

import dpmc
from dpmc.types import SEED
from tests.support.posteriors import gaussian_model, rows

PARAMS = {
    "dp_penalty": {"proposal_sd": 0.1, "ratio_noise_multiplier": 8.0, "ratio_clip_bound": 2.0},
    "dp_sgld": {"batch_size": 50, "gradient_clip_bound": 1.0, "step_size": 0.05},
}


def fit(method: str, seed: int | None = 3):
    """Fit with exact diagnostics."""
    more = {"diagnostics": "exact"}
    return dpmc.fit(
        gaussian_model(),
        rows("fit", 500, 2),
        method=method,
        epsilon=4.0,
        delta=1e-5,
        max_iterations=5,
        num_chains=1,
        seed=seed,
        progress=False,
        **PARAMS[method],
        **more,
    )


@pytest.mark.parametrize("method", PARAMS)
def test_exact_clip_counts_are_named_as_outside_of_the_guarantee(method):
    """They are sums over rows without noise, and stand in `info` and `totals`."""
    result = fit(method)
    assert any("clipped" in name for name in (*result.totals, *result.info))
    assert any("clip" in text for text in result.guarantee.outside)
    assert "clip" in str(result.guarantee)


@pytest.mark.parametrize("seed", [3, None])
def test_a_known_seed_is_named(seed):
    assert (SEED in fit("dp_penalty", seed).guarantee.outside) == (seed is not None)
