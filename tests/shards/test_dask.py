"""Shards summed by the workers of a Dask client: the same bytes, also when one of them dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest

import dpmc
from dpmc.automatic.whitened import WhitenedRows
from dpmc.models import poisson
from dpmc.rng import stream
from dpmc.rows import sources
from dpmc.types import Dataset
from tests.shards.folders import write
from tests.support.clipped import values

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client() -> Iterator[distributed.Client]:
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        distributed.LocalCluster(**settings, dashboard_address=None, memory_limit=0) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def counts(num_rows: int) -> np.ndarray:
    rng = stream(0, "shards", "dask", num_rows)
    features = rng.uniform(-1, 1, num_rows)
    return np.column_stack([features, rng.poisson(np.exp(0.3 + 0.5 * features))])


def test_a_fit_by_workers_has_the_same_draws(client, tmp_path):
    x = counts(4000)
    folder = write(tmp_path / "rows", x, [1000, 1500], "parquet")
    model = poisson.build(poisson.Params(1))
    options = {"epsilon": 2, "delta": 1e-6, "seed": 5, "num_draws": 50}
    rows = dpmc.open_rows(folder, workers=client)
    there, here = dpmc.fit(model, rows, **options), dpmc.fit(model, x, **options)
    assert there.draws.tobytes() == here.draws.tobytes()
    assert there.ledger == here.ledger


def test_a_worker_that_is_killed_changes_no_byte(client, tmp_path):
    """It dies with SIGKILL while parts of a pass wait for it; Dask starts another and goes on."""
    x = counts(6 * sources.SPAN)
    folder = write(tmp_path / "rows", x, [100_000, 500_000], "npy")
    model = poisson.build(poisson.Params(1))
    theta, basis = np.array([0.2, 0.4]), np.eye(2)
    killed = []

    class Killing:
        """The client, that kills a worker after it was given a part of the second pass."""

        def submit(self, *args, **options):
            future = client.submit(*args, **options)
            if not killed:
                pids = client.run(os.getpid)
                killed.append(next(iter(pids.values())))
                os.kill(killed[0], signal.SIGKILL)
            return future

        def __getattr__(self, name):
            return getattr(client, name)

    rows = dpmc.open_rows(folder, workers=client)
    before = values(WhitenedRows(model, rows).gradient_sum(theta, basis, 0.5))
    interrupted = WhitenedRows(model, dpmc.open_rows(folder, workers=Killing()))
    sums = [values(interrupted.gradient_sum(theta, basis, 0.5)) for _ in range(3)]
    here = values(WhitenedRows(model, Dataset.of("rows", x)).gradient_sum(theta, basis, 0.5))
    assert killed
    assert {one.tobytes() for one in (before, *sums, here)} == {here.tobytes()}


def test_a_worker_that_hangs_ends_the_fit(client, tmp_path):
    folder = write(tmp_path / "rows", counts(1000), [300], "npy")
    model = poisson.build(poisson.Params(1))

    class Hanging:
        """The client, whose workers wait before they begin."""

        def submit(self, function, *args, **options):
            return client.submit(_wait, **options)

        def __getattr__(self, name):
            return getattr(client, name)

    rows = dpmc.open_rows(folder, workers=Hanging(), time_limit=0.2)
    with pytest.raises(dpmc.DpmcError, match="a worker must answer within"):
        dpmc.fit(model, rows, epsilon=1, delta=1e-6)


def _wait() -> None:
    import time

    time.sleep(3)


def test_rows_that_change_are_refused_by_workers(client, tmp_path):
    folder = write(tmp_path / "rows", counts(1000), [300], "npy")
    model = poisson.build(poisson.Params(1))
    whitened = WhitenedRows(model, dpmc.open_rows(folder, workers=client))
    np.save(folder / "part-001.npy", np.zeros((700, 2)))
    with pytest.raises(dpmc.DpmcError, match="must stay as it is during a fit"):
        values(whitened.gradient_sum(np.zeros(2), np.eye(2), 1.0))
