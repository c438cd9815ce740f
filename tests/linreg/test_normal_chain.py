"""What the chain of MCMC-normalX asks of its parts, in plain Python."""

from __future__ import annotations

import numpy as np

from dpmc.linreg.gibbs import conditionals, normal_x, wishart_moves
from tests.support.linreg_releases import dense_prior, release


def test_degrees_of_freedom_of_the_precision_are_those_of_its_prior_and_all_rows(monkeypatch):
    """Tests of the law of the precision are in tests/statistical."""
    told, rng = [], np.random.default_rng(5)
    monkeypatch.setattr(normal_x, "refresh", lambda *_: True)
    monkeypatch.setattr(normal_x, "sweep_scales", lambda *_: (True, 0))
    monkeypatch.setattr(
        normal_x, "draw_precision", lambda total, dof, *_: told.append(dof) or False
    )
    noisy = release(rng, (7, 11), np.array([0.5, -0.5]), 1.0)
    prior = dense_prior(2)
    settings = normal_x.NormalXSettings(3, 0, False, True, True, 0.44, 0, 0.0)
    state = wishart_moves.StatisticsState.of(np.array(noisy.s), np.zeros(2), 1.0)
    released = conditionals.ReleasedStatistics.of(noisy)
    arguments = (released, conditionals.PriorTerms.of(prior), settings, None, state, None)
    scratch = wishart_moves.StatisticsScratch.of(2, 2)
    stopped = normal_x.sample.py_func(*arguments, scratch, *[None] * 4)
    assert stopped == (1, 0)
    assert told == [prior.dof + 7 + 11]
