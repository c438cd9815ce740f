"""The chains of one job, run from its configuration.

Each result is a function of its settings and of the code alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Literal

import msgspec

from dpmc import registry
from dpmc.fits import Fit
from dpmc.mcmc import fit as fitting
from dpmc.mcmc.posterior import Posterior
from dpmc.progress import Progress, silent
from dpmc.rng import Streams
from dpmc.types import CLIP_FRACTIONS_OUTSIDE, Array, Dataset
from dpmc_papers.config.problems import make_model, start_points
from dpmc_papers.config.setups import ChainSetup, canonical


def row_order(setup: ChainSetup) -> Literal["features", "rows"]:
    """How the method of `setup` reads the rows, so that they are laid out once."""
    order: Literal["features", "rows"] = registry.load("method", setup.method).ROW_ORDER
    return order


def run_chains(
    setup: ChainSetup,
    dataset: Dataset,
    reference: Array,
    replicates: Iterable[int],
    progress: Progress = silent,
) -> Iterator[tuple[int, Fit]]:
    """Run replicates of one point of an experiment, each from its own streams.

    Parameters
    ----------
    setup : ChainSetup
        All that determines the result.
    dataset : Dataset
        The rows of the problem. They may be overwritten.
    reference : ndarray of shape (1 + baselines, draws, d)
        Scales the start points, where the problem says so.
    replicates : iterable of int
        Which replicates to run.
    progress : callable
        Told the iterations done and to do, over all replicates.

    Yields
    ------
    (int, Fit)
        A replicate and its result.
    """
    problem, budget = setup.problem, setup.budget
    module = registry.load("method", setup.method)
    params = registry.parameters(module, setup.params)
    chains, seed = setup.num_chains, setup.seed
    plan, iterations = fitting.allocate(
        module,
        params,
        dataset.num_rows,
        chains,
        setup.num_iterations,
        budget.epsilon if budget else None,
        budget.delta if budget else None,
        budget.accountant if budget else None,
        setup.max_iterations,
    )
    truth, outside = dataset.truth, _outside(setup, dataset)
    sampler = module.sampler(Posterior(make_model(problem), dataset, consume=True), params)
    key = stream_key(setup)
    wanted = list(replicates)
    for position, replicate in enumerate(wanted):
        starts = start_points(problem, truth, reference, seed, [replicate], chains)[0]
        streams = [Streams.of(seed, key, replicate, chain) for chain in range(chains)]
        report = _offset(progress, position, len(wanted))
        yield replicate, fitting.run(sampler, plan, iterations, starts, streams, outside, report)


def stream_key(setup: ChainSetup) -> str:
    """Text that keys the streams of a point: a parameter may have a ``key`` that is not its name.

    Should it change for a setup, every result of it is another draw.
    """
    entries = fields(registry.load("method", setup.method).Params)
    keys = {field.name: field.metadata.get("key", field.name) for field in entries}
    params = {keys[name]: value for name, value in setup.params.items()}
    return canonical(msgspec.structs.replace(setup, params=params))


def _offset(progress: Progress, position: int, count: int) -> Progress:
    return lambda done, total, info: progress(position * total + done, count * total, info)


def _outside(setup: ChainSetup, dataset: Dataset) -> list[str]:
    outside, start = list(setup.outside), setup.problem.start
    if start is not None and start.scale == "reference":
        around = "around the truth, " if start.rule == "around_truth" else ""
        outside.append(f"start points {around}scaled by the exact posterior")
    if dataset.bounds_source == "data":
        outside.append("bounds taken from the data")
    return [*outside, CLIP_FRACTIONS_OUTSIDE, "a known seed"]
