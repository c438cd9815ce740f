"""Estimate the processor time of paper scale from short runs of every method on every problem.

``uv run python benchmarks/measure_paper.py raisa2021dphmc``; names of experiments restrict it. Of
each method on each problem one chain runs for about a fifth of a second, or one replicate of a
study at its first and its last point; the time of an iteration or of a replicate is multiplied by
those that the configuration asks for. Points of a study that take very different times make its
estimate a rough one. What has no raw file on this machine is left out, and so are starts of jobs,
metrics and outputs (``python -m dpmc_papers plan`` has them).
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import msgspec

from dpmc import registry, yaml_files
from dpmc.mcmc import fit as fitting
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.ledger import Ledger
from dpmc.progress import silent
from dpmc.rng import Streams
from dpmc.types import DpmcError, UnavailableError
from dpmc_papers.config import problems, reader
from dpmc_papers.config.setups import ChainSetup
from dpmc_papers.pipeline.jobs import ChainJob, StudyPart
from dpmc_papers.pipeline.workload import Workload

# Seconds of a chain that is timed, and iterations of the one before it, which compiles.
ENOUGH, FEW = 0.2, 20


def timed_chain(setup: ChainSetup, posterior: Posterior, start: object, most: int) -> float:
    """Return the seconds of one iteration of one chain."""
    module = registry.load("method", setup.method)
    sampler = module.sampler(posterior, registry.parameters(module, setup.params))

    def seconds(count: int) -> float:
        began = process_time()
        sampler(start, count, [Streams.of(setup.seed, "timing")], Ledger())
        return process_time() - began

    seconds(min(FEW, most))
    count = min(FEW, most)
    while (taken := seconds(count)) < ENOUGH and count < most:
        count = min(most, 4 * count)
    return taken / count


def iterations(setup: ChainSetup, num_rows: int) -> int:
    """Return the iterations of a chain, which a budget may decide."""
    module, budget = registry.load("method", setup.method), setup.budget
    of_budget = (budget.epsilon, budget.delta, budget.accountant) if budget else (None,) * 3
    params = registry.parameters(module, setup.params)
    given = setup.num_chains, setup.num_iterations, *of_budget, setup.max_iterations
    return fitting.allocate(module, params, num_rows, *given)[1]


def chains(work: Workload, wanted: list[str]) -> Iterator[tuple[str, float]]:
    """Yield every method on every problem, and its seconds at paper scale."""
    by_problem = functools.partial(sorted, key=lambda job: job.problem)
    jobs = [job for job in work.jobs if not wanted or job.experiment in wanted]
    for _, group in itertools.groupby(by_problem(jobs), key=lambda job: job.problem):
        of_problem: list[ChainJob] = list(group)
        setup = of_problem[0].setup
        data = problems.make_data(setup.problem, setup.seed)
        posterior = Posterior(problems.make_model(setup.problem), data)
        reference = problems.make_reference(setup.problem, data, setup.seed, 100, 1)
        for label, alike in itertools.groupby(of_problem, lambda job: (job.experiment, job.label)):
            total, each = 0.0, 0.0
            for job in reversed(list(alike)):
                count = iterations(job.setup, data.num_rows)
                if not each or job.setup.budget is None:
                    place = job.setup.problem, data.truth, reference, setup.seed, [job.first], 1
                    start = problems.start_points(*place)[0]
                    each = timed_chain(job.setup, posterior, start, count)
                total += each * count * job.setup.num_chains * (job.last - job.first + 1)
            yield f"{label[0]}/{job.problem}/{label[1]}", total


def timed_part(part: StudyPart, data: object) -> float:
    """Return the seconds of one replicate, from its first and last point."""
    ends = [part.setup.points[0], part.setup.points[-1]]
    setup = msgspec.structs.replace(part.setup, points=ends)
    study = registry.load("study", setup.study)
    few = {key: FEW for key in ("num_iterations",) if key in setup.params}
    # A count for some chains, a share for others.
    few |= {"burn_in": FEW // 2} if setup.params.get("burn_in", 0) >= 1 else {}
    # To compile: a study may refuse so few draws, after it has run.
    with contextlib.suppress(DpmcError):
        few_draws = msgspec.structs.replace(setup, params=setup.params | few)
        study.run(few_draws, data, [part.first], silent)
    began = process_time()
    study.run(setup, data, [part.first], silent)
    return (process_time() - began) * len(part.setup.points) / 2


def studies(work: Workload, wanted: list[str]) -> Iterator[tuple[str, float]]:
    """Yield every part of every study, and its seconds at paper scale."""
    for job in work.studies:
        if wanted and job.experiment not in wanted:
            continue
        setup = job.parts[0].setup
        try:
            data = problems.make_data(setup.problem, setup.seed)
        except UnavailableError:
            continue
        for part in job.parts:
            seconds = timed_part(part, data) * (part.last - part.first + 1)
            yield f"{job.experiment}/{job.problem}/{part.label}/{part.point}", seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paper")
    parser.add_argument("experiments", nargs="*", help="by default all")
    asked = parser.parse_args()
    source = yaml_files.read_yaml(Path("config/config.yaml"))
    config = reader.load_config(source | {"scale": "paper", "papers": [asked.paper]})
    work, total = Workload(config, asked.paper), 0.0
    for name, seconds in itertools.chain(
        chains(work, asked.experiments), studies(work, asked.experiments)
    ):
        total += seconds
        print(f"{seconds:10.1f} s  {name}", flush=True)
    print(f"{total:10.1f} s  {asked.paper}")


if __name__ == "__main__":
    main()
