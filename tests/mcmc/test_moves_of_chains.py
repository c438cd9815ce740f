"""What a chain keeps after a test: gradients, directions, and the prior in its decision."""

from __future__ import annotations

import numpy as np
import pytest

from dpmc.mcmc import barker_correction, moves, noisy_hmc
from dpmc.mcmc.methods import dp_barker, dp_hmc, dp_penalty
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from tests.support.posteriors import gaussian_model, rows


def kernel_of(module, monkeypatch, params, home=None):
    """Return the kernel of a method in place of the sampler that is made of it."""
    monkeypatch.setattr(home or module, "chain_sampler", lambda kernel: kernel)
    return module.sampler(Posterior(gaussian_model(), rows("chains", 40, 2)), params)


@pytest.mark.parametrize("accepted", [False, True])
def test_a_rejection_keeps_the_gradient_of_its_position(accepted, monkeypatch):
    """An accepted proposal brings the gradient of its own."""
    monkeypatch.setattr(moves, "accept", lambda *_: accepted)
    params = dp_hmc.Params(0.1, 2, 0.1, 0.1, 5.0, 5.0, reuse_gradient=True)
    kernel = kernel_of(dp_hmc, monkeypatch, params, noisy_hmc)
    streams, ledger = Streams.of(1, "kept"), Ledger()
    state = kernel.init(np.zeros(2), 3, ledger, streams)
    for _ in range(3):
        after, info = kernel.step(state, ledger, streams)
        assert info.accepted == accepted
        assert (after.gradient is state.gradient) == (not accepted)
        assert (after.theta is state.theta) == (not accepted)
        state = after


@pytest.mark.parametrize("one_component", [False, True])
@pytest.mark.parametrize("accepted", [False, True])
def test_a_guided_walk_turns_round_on_rejection_alone(accepted, one_component, monkeypatch):
    monkeypatch.setattr(moves, "accept", lambda *_: accepted)
    params = dp_penalty.Params(0.3, 0.1, 1.0, one_component=one_component, guided=True)
    kernel = kernel_of(dp_penalty, monkeypatch, params)
    streams, ledger = Streams.of(2, "guided"), Ledger()
    state = kernel.init(np.zeros(2), 20, ledger, streams)
    assert set(np.abs(state.direction)) == {1.0}
    for _ in range(20):
        after, _ = kernel.step(state, ledger, streams)
        turned = int(np.sum(after.direction != state.direction))
        assert turned == (0 if accepted else (1 if one_component else 2))
        moved = after.theta - state.theta
        assert (moved * state.direction >= 0).all()
        assert (moved != 0).any() == accepted
        state = after


def test_barker_weighs_the_prior_beside_the_noisy_ratio(monkeypatch):
    """Where neither the rows nor the correction say anything, the prior alone decides."""

    class Nothing(Ledger):
        def release_barker(self, ratio, rng):
            return 0.0

    monkeypatch.setattr(barker_correction.Correction, "draw", lambda *_: 0.0)
    kernel = kernel_of(dp_barker, monkeypatch, dp_barker.Params(0.3, 10))
    streams, model = Streams.of(3, "prior"), gaussian_model()
    state = kernel.init(np.zeros(2), 200, Nothing(), streams)
    proposals = []
    walk = moves.random_walk

    def proposing(*arguments):
        proposals.append(walk(*arguments))
        return proposals[-1]

    monkeypatch.setattr(moves, "random_walk", proposing)
    for _ in range(200):
        after, info = kernel.step(state, Nothing(), streams)
        better = model.log_prior(proposals[-1]) > model.log_prior(state.theta)
        assert info.accepted == better
        state = after._replace(theta=np.zeros(2), log_prior=model.log_prior(np.zeros(2)))
    decided = [model.log_prior(p) > model.log_prior(np.zeros(2)) for p in proposals]
    assert 20 < sum(decided) < 180
