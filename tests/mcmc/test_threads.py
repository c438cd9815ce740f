"""Chains in threads: the bytes of one thread, for every method and whatever the number."""

from __future__ import annotations

import functools
import sys
import threading
import warnings

import numpy as np
import pytest

import dpmc
from dpmc import registry
from dpmc.mcmc import chains
from dpmc.mcmc.chains import Info, Kernel, Run
from dpmc.mcmc.chains import sampler as chain_sampler
from dpmc.privacy import calibration
from dpmc.privacy.clipped import asserted
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from tests.support.methods import PRIVATE, example
from tests.support.posteriors import gaussian_model, rows


@pytest.fixture(scope="module", autouse=True)
def one_plan():
    """Count what a budget buys once for all fits of a method: no thread has a part in that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibration, "plan", functools.cache(calibration.plan))
        yield


def fitted(method: str, num_threads: int) -> dpmc.Fit:
    budget = {"epsilon": 15.0, "delta": 1e-5, "max_iterations": 40}
    if method not in PRIVATE:
        budget = {"num_iterations": 40}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        return dpmc.fit(
            gaussian_model(),
            rows("threads", 5000, 2),
            method=method,
            num_chains=4,
            num_threads=num_threads,
            seed=7,
            progress=False,
            **budget,
            **example(method),
        )


def everything(fit: dpmc.Fit) -> tuple[object, ...]:
    """Return all that a fit holds, arrays as bytes."""
    arrays = {**fit.info, **fit.totals}
    return (
        fit.draws.tobytes(),
        {name: (values.dtype, values.shape, values.tobytes()) for name, values in arrays.items()},
        fit.ledger,
        fit.status,
        fit.guarantee,
        fit.plan.values(),
        dict(fit.diagnostics),
    )


@pytest.mark.parametrize("method", registry.names("method"))
def test_a_fit_is_the_same_whatever_the_number_of_threads(method):
    alone = everything(fitted(method, 1))
    assert everything(fitted(method, 4)) == alone
    assert everything(fitted(method, 3)) == alone


def test_a_stream_that_chains_shared_would_show(monkeypatch):
    """The broken variant: all chains on the first stream.

    Threads that happen to run one after another hide it: they change over often, and one of fifty
    fits that differs is enough.
    """
    interval = sys.getswitchinterval()

    def shared(run):
        return lambda start, k, streams, ledger, progress: run(
            start, k, [streams[0]] * len(streams), ledger, progress
        )

    right = chains.threaded
    monkeypatch.setattr("dpmc.mcmc.fit.threaded", lambda make, number: shared(right(make, number)))
    alone = everything(fitted("rwmh", 1))
    sys.setswitchinterval(1e-6)
    try:
        assert any(everything(fitted("rwmh", 4)) != alone for _ in range(50))
    finally:
        sys.setswitchinterval(interval)


def walk(step):
    """Return a sampler of a walk whose steps a test looks into."""
    return chain_sampler(Kernel(lambda theta, k, ledger, streams: State(theta), step, 1))


class State:
    def __init__(self, theta):
        self.theta = theta


def test_chains_run_side_by_side():
    """Each waits in its first step until all four are there: one after the other never ends."""
    together = threading.Barrier(4, timeout=60)
    waited = threading.local()

    def step(state, ledger, streams):
        if not getattr(waited, "yes", False):
            waited.yes = True
            together.wait()
        return State(state.theta + streams.chain.standard_normal(2)), Info(True, 0)

    run = chains.threaded(lambda: walk(step), 4)
    streams = [Streams.of(1, "together", c) for c in range(4)]
    assert run(np.zeros((4, 2)), 10, streams, Ledger()).draws.shape == (10, 4, 2)


def test_an_error_in_one_chain_ends_the_others():
    """They end at their next release, and the error is that of the first."""
    begun = threading.Barrier(2, timeout=60)

    def step(state, ledger, streams):
        if streams is failing:
            begun.wait()
            raise ValueError("of the first chain")
        if not hasattr(begun, "met"):
            begun.met = True
            begun.wait()
        ledger.release(asserted(0.0, 1.0), 10.0, streams.noise)
        return state, Info(True, 0)

    streams = [Streams.of(1, "error", c) for c in range(2)]
    failing = streams[0]
    run = chains.threaded(lambda: walk(step), 2)
    with pytest.raises(ValueError, match="of the first chain"):
        run(np.zeros((2, 2)), 10**9, streams, Ledger())


def test_releases_of_all_threads_are_counted():
    """200,000 releases of eight threads: without a lock, additions would be lost."""
    ledger = Ledger()

    def step(state, shared, streams):
        for _ in range(25):
            shared.release(asserted(0.0, 1.0), 10.0, streams.noise)
        return state, Info(True, 0)

    run = chains.threaded(lambda: walk(step), 8)
    run(np.zeros((8, 1)), 1000, [Streams.of(1, "count", c) for c in range(8)], ledger)
    assert dict(ledger.records()) == {"gaussian(10.0)": 200_000}


def test_a_chain_that_stopped_early_cuts_the_others():
    def one(length: int, status: str) -> Run:
        draws = np.arange(length, dtype=float).reshape(length, 1, 1)
        return Run(
            draws, {"accepted": draws[:, :, 0] > 0}, {"num_iterations": np.array([length])}, status
        )

    early = "chain 0 left the finite numbers after iteration 3"
    run = chains.joined([one(8, "complete"), one(3, early), one(8, "complete")])
    assert run.draws.shape == (3, 3, 1)
    assert run.totals["num_iterations"].tolist() == [8, 3, 8]
    assert run.status == "chain 1 left the finite numbers after iteration 3"
