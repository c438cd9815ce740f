"""What a private run of expectation propagation tells beside its noisy states: nothing of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpmc.ep.mixture import dp_sep as mixture_dp_sep
from dpmc.ep.mixture import engine as mixture_engine
from dpmc.ep.mixture.model import MixtureModel
from dpmc.ep.mixture.settings import MixtureSettings
from dpmc.ep.network import dp_sep as network_dp_sep
from dpmc.ep.network import engine as network_engine
from dpmc.ep.network import variants as network_variants
from dpmc.ep.network.layout import COUNTS
from dpmc.ep.network.settings import NetworkSettings
from dpmc.ep.network.task import Task
from dpmc.privacy.schedules import COUNTERS, STANDARDISATION
from dpmc.rng import stream
from dpmc.types import Budget, DpmcError

NUM_ROWS = 200
BUDGET = Budget(1.0, 1e-5, "any")


def neighbours():
    """Return rows none of which has a finite prediction, and the same with one that has."""
    x, y = np.full((NUM_ROWS, 3), 1e200), np.ones(NUM_ROWS)
    other = x.copy()
    other[7] = [0.1, -0.2, 0.3]
    return (x, y), (other, y)


def told(x, y, params, seed):
    """Return all that a run says beside its noisy state."""
    found = network_engine.fit(x, y, params, stream(seed, "neighbours"))
    return found.status, found.num_passes, dict(found.counters) | {"raised": 0}, found.releases


@pytest.mark.parametrize("order", ["permutation", "independent"])
@pytest.mark.parametrize("learned", [False, True])
def test_control_flow_does_not_tell_neighbours_apart(order, learned):
    params = network_variants.private(6, 2, 0.3, 1.5, None if learned else 0.3)
    params = replace(params, order=order)
    for seed in range(5):
        one, other = (told(*rows, params, seed) for rows in neighbours())
        assert one == other
        assert one[0] == "complete"
    # The check can fail: a run without noise says where no row had a finite prediction.
    bare = replace(params, noise_multiplier=0.0, order="permutation")
    one, other = (told(*rows, bare, 0) for rows in neighbours())
    assert one[0] == "stopped in pass 1: no step had a finite prediction"
    assert other[0] == "complete"
    assert one != other
    # So can its part about counts, which exact diagnostics hand out.
    exact = replace(params, order="permutation", diagnostics="exact")
    one, other = (told(*rows, exact, 0) for rows in neighbours())
    assert set(one[2]) == set(COUNTS)
    assert one[0] == other[0] == "complete"
    assert one != other


def test_a_private_run_on_a_network_counts_released_states_only():
    rng = stream(1, "rows")
    x, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    fits = {}
    for diagnostics in ("none", "exact"):
        params = network_dp_sep.Params(num_passes=2, diagnostics=diagnostics)
        fits[diagnostics] = network_dp_sep.fit(
            x, y, Task("rows", 6), params, BUDGET, stream(2, "fit")
        )
    assert set(fits["none"].counters) == {"steps", "raised"}
    assert fits["none"].guarantee.outside == (STANDARDISATION,)
    assert set(fits["exact"].counters) == set(COUNTS)
    assert fits["exact"].guarantee.outside == (COUNTERS, STANDARDISATION)
    means = [fits[name].predictor.means[0] for name in fits]
    np.testing.assert_array_equal(*means)
    with pytest.raises(DpmcError, match=r"diagnostics.*'all'"):
        NetworkSettings(diagnostics="all")


def test_a_private_run_on_a_mixture_counts_released_states_only():
    model = MixtureModel.isotropic(0.5, [[-1.0], [1.0]], 0.1)
    rows = stream(3, "rows").standard_normal((30, 1))
    rows[:20] = 1e200  # without a factor
    fits = {}
    for diagnostics in ("none", "exact"):
        params = mixture_dp_sep.Params(num_passes=2, diagnostics=diagnostics)
        fits[diagnostics] = mixture_dp_sep.fit(rows, model, params, BUDGET, stream(4, "fit"))
    (plain, silent), (full, named) = fits["none"], fits["exact"]
    assert set(plain.counters) == {"steps", "repaired"}
    assert silent.outside == ()
    assert full.counters["invalid"] > 0
    assert named.outside == (COUNTERS,)
    np.testing.assert_array_equal(plain.means, full.means)
    with pytest.raises(DpmcError, match=r"diagnostics.*'all'"):
        mixture_dp_sep.fit(
            rows, model, mixture_dp_sep.Params(diagnostics="all"), BUDGET, stream(4, "fit")
        )


def test_runs_without_privacy_return_all_counts():
    model = MixtureModel.isotropic(0.5, [[-1.0], [1.0]], 0.1)
    params = MixtureSettings(num_passes=1)
    found = mixture_engine.fit(np.zeros((5, 1)), model, params, stream(5, "fit"))
    assert set(found.counters) == {"steps", "skipped", "invalid", "clipped", "repaired"}


def test_rows_whose_sum_overflows_are_no_error():
    x, y = np.full((9, 3), 1.7e308), np.ones(9)
    found = network_engine.fit(
        x, y, network_variants.private(6, 2, 0.3, 1.5, 0.3), stream(7, "fit")
    )
    assert found.status == "complete"
