"""From a checked configuration to the jobs of a paper, each with a stable file name."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from dpmc import registry
from dpmc.numerics.source_digest import module_names, short_digest
from dpmc_papers.config import grids, settings
from dpmc_papers.config.reader import Config
from dpmc_papers.config.settings import Paper, plain
from dpmc_papers.config.setups import BudgetSetup, ChainSetup, ProblemSetup, StudySetup
from dpmc_papers.pipeline import dependencies, files, raw_files
from dpmc_papers.pipeline.batches import batches, filled
from dpmc_papers.pipeline.jobs import (
    ChainJob,
    CurvesJob,
    MetricsJob,
    MetricsPart,
    OutputJob,
    ProblemJob,
    Reads,
    StudyJob,
    StudyPart,
)

T = TypeVar("T")

# Time grows with the number of iterations that a budget buys: by a factor of 33 from
# epsilon 2 to 15 for compositions of Gaussian mechanisms at delta = 1e-6.
EPSILON_EXPONENT = 1.74
# The most chains that one job measures, unless those of one method are more.
CHAINS_PER_JOB = 400


class Workload:
    """All jobs of one paper.

    Parameters
    ----------
    config : Config
        Checked configuration.
    paper : str
        Key of the paper.

    Attributes
    ----------
    folder : str
        Folder of the paper's results.
    problems : dict of str to ProblemJob
        By name.
    jobs : tuple of ChainJob
        In the order of the configuration.
    metrics : tuple of MetricsJob
        In the order of the configuration.
    curves : dict of str to CurvesJob
        By name.
    studies : tuple of StudyJob
        In the order of the configuration.
    outputs : dict of str to OutputJob
        Figures and tables by name, ``verdict``, ``guarantees`` and ``page``.
    files : dict of str to ProblemJob, ChainJob, MetricsJob, CurvesJob, StudyJob or OutputJob
        Whatever has a digest in its name, by its path.
    """

    def __init__(self, config: Config, paper: str) -> None:
        self.config = config
        self.paper = config.papers[paper]
        self.folder = f"{config.results_dir}/{config.scale}/{paper}"
        used = {p for e in self.paper.experiments.values() for p in e.methods}
        used |= {p for study in self.paper.studies.values() for p in study.problems}
        for output in self.paper.outputs.values():
            used |= {*output.reference, *output.data}
        self.problems = {name: self._problem(name) for name in self.paper.problems if name in used}
        self.metrics = tuple(self._all_metrics())
        self.jobs = tuple(job for entry in self.metrics for job in entry.jobs)
        self.curves = {name: self._curves(name) for name in self.paper.accounting}
        self.studies = tuple(self._all_studies())
        self.outputs = {name: self._output(name) for name in self.paper.outputs}
        for name in ("verdict", "guarantees", "page"):
            self.outputs[name] = self._whole(name)
        self.files: dict[
            str, ProblemJob | ChainJob | MetricsJob | CurvesJob | StudyJob | OutputJob
        ] = {
            **{p: entry for entry in self.problems.values() for p in entry.paths},
            **{entry.path: entry for entry in self.jobs},
            **{entry.path: entry for entry in self.metrics},
            **{entry.path: entry for entry in self.curves.values()},
            **{entry.path: entry for entry in self.studies},
            **{entry.request: entry for entry in self.outputs.values()},
        }

    def _problem(self, name: str) -> ProblemJob:
        setup = ProblemSetup.of(name, self.paper.problems[name])
        rows_module = f"dpmc_papers.data.{setup.data.name}"
        data_code = self._code("data", rows_module, settings=plain(setup.data))
        data = short_digest([name, self.paper.seed, plain(setup.data), data_code])
        rows = self._rows(setup, data)
        if setup.model is None or self.paper.reference is None:
            return ProblemJob(name, setup, rows, raw=self._raw(setup))
        model_code = self._code("reference", f"dpmc.models.{setup.model.name}")
        sizes = self.paper.reference
        inside = self._inside(rows)
        reference = short_digest([inside, plain(setup.model), sizes.num_draws, model_code])
        baseline = short_digest([reference, plain(sizes), self._code("baseline")])
        return ProblemJob(
            name=name,
            setup=setup,
            data=rows,
            reference=f"{self.folder}/reference/{name}-{reference}.parquet",
            baseline=f"{self.folder}/baselines/{name}-{baseline}.parquet",
            raw=self._raw(setup),
        )

    def _all_metrics(self) -> Iterator[MetricsJob]:
        code = self._code("metrics")
        for name, experiment in self.paper.experiments.items():
            for problem, methods in experiment.methods.items():
                reference = self.problems[problem].reference
                parts = []
                for label in methods:
                    jobs = tuple(self._jobs(name, problem, label))
                    reads = [self._inside(reference), *self._covered(j.path for j in jobs)]
                    digest = short_digest([reads, self.paper.seed, code])
                    parts.append(MetricsPart(label, digest, jobs))
                for chosen in filled(parts, _chains, CHAINS_PER_JOB):
                    digest = short_digest([[part.label, part.digest] for part in chosen])
                    path = f"{self.folder}/metrics/{name}/{problem}-{digest}.parquet"
                    yield MetricsJob(name, problem, tuple(chosen), reference, path)

    def _jobs(self, name: str, problem: str, label: str) -> Iterator[ChainJob]:
        experiment = self.paper.experiments[name]
        method = experiment.methods[problem][label]
        replicates = method.replicates or experiment.replicates
        for point, epsilon, extra in grids.points(method, experiment.budgets(method)):
            setup = self._chain(experiment, problem, method, epsilon, extra)
            digest = self._chain_digest(setup)
            seconds = method.seconds
            if epsilon is not None and self.paper.timed_at_epsilon is not None:
                seconds *= (epsilon / self.paper.timed_at_epsilon) ** EPSILON_EXPONENT
            size = max(
                1, min(self.config.seeds_per_job, int(self.config.seconds_per_job / seconds))
            )
            folder = f"{self.folder}/chains/{name}/{problem}/{label}/{point}-{digest}"
            for first, last in batches(folder, replicates, size):
                yield ChainJob(
                    experiment=name,
                    problem=problem,
                    label=label,
                    point=point,
                    digest=digest,
                    first=first,
                    last=last,
                    setup=setup,
                    data=self.problems[problem].data,
                    reference=self.problems[problem].reference,
                    path=f"{folder}/{first}-{last}.parquet",
                    seconds=seconds * (last - first + 1),
                )

    def _chain(
        self,
        experiment: settings.Experiment,
        problem: str,
        method: settings.Method,
        epsilon: float | None,
        extra: Mapping[str, Any],
    ) -> ChainSetup:
        setup, budget = self.problems[problem].setup, None
        if epsilon is not None and method.accountant and setup.delta is not None:
            budget = BudgetSetup(epsilon=epsilon, delta=setup.delta, accountant=method.accountant)
        return ChainSetup(
            paper=self.paper.paper,
            problem=setup,
            method=method.method,
            variant=method.variant,
            params={**method.params, **extra},
            budget=budget,
            num_chains=experiment.num_chains,
            num_iterations=method.num_iterations,
            outside=self.paper.outside,
            seed=self.paper.seed,
            max_iterations=method.max_iterations,
        )

    def _chain_digest(self, setup: ChainSetup) -> str:
        problem = self.problems[setup.problem.name]
        modules = [
            f"dpmc.mcmc.methods.{setup.method}",
            f"dpmc_papers.data.{setup.problem.data.name}",
        ]
        if setup.problem.model is not None:
            modules.append(f"dpmc.models.{setup.problem.model.name}")
        if setup.budget is not None:
            # A run carries the guarantee of the tightest accountant that is valid, whichever it is.
            names = module_names("dpmc.privacy.accountants")
            modules += [f"dpmc.privacy.accountants.{name}" for name in names]
        reads = [self._inside(problem.data), self._inside(problem.reference)]
        code = self._code("chain", *modules, settings=plain(setup))
        return short_digest([plain(setup), reads, code])

    def _curves(self, name: str) -> CurvesJob:
        setup = self.paper.accounting[name]
        entries = setup.settings.values()
        modules = {f"dpmc.mcmc.methods.{entry.method}" for entry in entries}
        modules |= {f"dpmc.privacy.accountants.{a}" for e in entries for a in e.accountants}
        code = self._code("accounting", *sorted(modules), settings=plain(setup))
        digest = short_digest([plain(setup), code])
        return CurvesJob(name, setup, f"{self.folder}/accounting/{name}-{digest}.parquet")

    def _all_studies(self) -> Iterator[StudyJob]:
        for name, study in self.paper.studies.items():
            for problem in study.problems:
                parts = [
                    part
                    for label, method in study.methods.items()
                    if problem in (method.problems or study.problems)
                    for part in self._parts(name, problem, label)
                ]
                for chosen in filled(parts, _runs, study.most_runs(problem)):
                    digest = short_digest([[part.digest, part.first, part.last] for part in chosen])
                    place = "run_times" if study.timed else "studies"
                    path = f"{self.folder}/{place}/{name}/{problem}-{digest}.parquet"
                    rows = self.problems[problem].data
                    yield StudyJob(name, problem, tuple(chosen), rows, path, study.timed)

    def _parts(self, name: str, problem: str, label: str) -> Iterator[StudyPart]:
        study = self.paper.studies[name]
        method = study.methods[label]
        rows = self.problems[problem].data
        code = self._code(
            "study",
            f"dpmc_papers.studies.{study.study}",
            registry.home(study.study, method.method),
            settings=[plain(study), plain(self.problems[problem].setup)],
        )
        replicates = method.replicates or study.replicates
        for point, values in grids.together({**study.grid, **method.grid}, study.together):
            setup = StudySetup(
                paper=self.paper.paper,
                study=study.study,
                experiment=name,
                problem=self.problems[problem].setup,
                label=label,
                method=method.method,
                variant=method.variant,
                params={**study.params, **method.params},
                outside=self.paper.outside,
                seed=self.paper.seed,
                points=values,
            )
            reads = getattr(registry.load("study", study.study), "reads", None)
            others = [] if reads is None else [reads(setup.params)]
            digest = short_digest([plain(setup), self._inside(rows), code, *others])
            size = max(1, min(replicates, study.most_runs(problem) // len(values)))
            for first in range(0, replicates, int(size)):
                last = min(first + int(size), replicates) - 1
                yield StudyPart(label, point, digest, first, last, setup)

    def _code(self, script: str, *modules: str, settings: object = None) -> str:
        named = dependencies.strings([self.paper.paper, settings])
        return dependencies.code(self.config.root, script, *modules, named=named)

    def _rows(self, setup: ProblemSetup, digest: str) -> str:
        """Return the file of the rows of a problem.

        If an earlier run could not have them and this machine now can, they go to another file,
        so that all that is made from them is made again.
        """
        path = f"{self.folder}/data/{setup.name}-{digest}.parquet"
        if not files.is_absence(path):
            return path
        again = f"{self.folder}/data/{setup.name}-{short_digest([digest, 'again'])}.parquet"
        from dpmc_papers.config import problems

        return again if files.exists(again) or problems.is_here(setup) else path

    def _raw(self, setup: ProblemSetup) -> str:
        """Return the file that says where the raw file of a problem is, empty if it has none.

        What an earlier run wrote counts for as long as it is true. Then another file is written.
        """
        from dpmc_papers.config import problems

        name = problems.raw_file(setup)
        if name is None:
            return ""
        code = self._code("raw", "dpmc_papers.pipeline.raw_files")
        for number in itertools.count():
            path = f"{self.folder}/raw/{name}-{short_digest([name, code, number])}.json"
            if not raw_files.is_outdated(path, problems.is_here(setup)):
                break
        return path

    def _covered(self, paths: Iterable[str]) -> list[Any]:
        """Return the folders of batches and how many replicates they hold, however divided."""
        counts: dict[str, int] = {}
        for path in paths:
            folder, _, name = self._inside(path).rpartition("/")
            last = int(name.removesuffix(".parquet").partition("-")[2])
            counts[folder] = max(counts.get(folder, 0), last + 1)
        return [[folder, count] for folder, count in counts.items()]

    def _inside(self, path: str) -> str:
        # Digests know files by their place in the folder: the folder itself determines nothing.
        return path.removeprefix(self.folder)

    def _output(self, name: str) -> OutputJob:
        output, paper = self.paper.outputs[name], self.paper
        reads = Reads(
            output.kind,
            output.metrics,
            output.chains,
            output.reference,
            output.data,
            output.accounting,
        )
        read = {*output.metrics, *([output.chains.experiment] if output.chains else [])}
        experiments = _only(paper.experiments, read)
        studies = _only(paper.studies, output.metrics)
        problems = {p for experiment in experiments.values() for p in experiment.methods}
        problems |= {p for study in studies.values() for p in study.problems}
        problems |= {*output.reference, *output.data}
        part = msgspec.structs.replace(
            paper,
            problems=_only(paper.problems, problems),
            experiments=experiments,
            studies=studies,
            accounting=_only(paper.accounting, output.accounting),
            outputs={name: output},
        )
        module = f"dpmc_papers.outputs.{paper.paper}"
        code = self._code(output.kind, module, settings=part.plain())
        texts = dependencies.texts(self.config.root, self.paper, name)
        if texts:
            code = dependencies.content_digest(*texts) + code
        return self._with_request(name, reads, part, code)

    def _whole(self, name: str) -> OutputJob:
        metrics = [*self.paper.experiments, *self.paper.studies]
        reads = Reads(name, metrics, accounting=list(self.curves))
        texts = dependencies.content_digest(*dependencies.texts(self.config.root, self.paper, name))
        code = texts + self._code(name, settings=self.paper.plain())
        if name == "page":  # it shows the others
            code += short_digest([self._inside(output.request) for output in self.outputs.values()])
        return self._with_request(name, reads, self.paper, code)

    def _with_request(self, name: str, reads: Reads, part: Paper, code: str) -> OutputJob:
        used = [self.problems[key] for key in self.problems if key in part.problems]
        metrics = tuple(m.path for m in self.metrics if m.experiment in reads.metrics)
        baselines = tuple(p.baseline for p in used if p.baseline and metrics)
        studies = tuple(study.path for study in self.studies if study.experiment in reads.metrics)
        chains = _picked(self.metrics, reads.chains) if reads.chains else ()
        references = tuple(p.reference for p in used if p.name in reads.reference)
        datasets = tuple(p.data for p in used if p.name in reads.data)
        curves = tuple(self.curves[key].path for key in reads.accounting)
        whole = (metrics, studies, baselines, references, datasets, curves)
        inside = [self._inside(path) for kind in whole for path in kind]
        covered = self._covered(chains)
        config = part.determining()
        digest = short_digest([config, inside, covered, code])
        return OutputJob(
            name=name,
            reads=reads,
            config=config,
            experiments=part.experiments,
            metrics=(*metrics, *studies),
            baselines=baselines,
            chains=chains,
            references=references,
            datasets=datasets,
            curves=curves,
            request=f"{self.folder}/requests/{name}-{digest}.json",
        )


def _only(section: Mapping[str, T], names: Container[str]) -> dict[str, T]:
    return {key: value for key, value in section.items() if key in names}


def _picked(metrics: Iterable[MetricsJob], wanted: settings.ChainsRead) -> tuple[str, ...]:
    paths = []
    for entry in metrics:
        if (entry.experiment, entry.problem) == (wanted.experiment, wanted.problem):
            for part in entry.parts:
                points = list(dict.fromkeys(job.point for job in part.jobs))
                chosen = {"all": points, "first": points[:1], "last": points[-1:]}[wanted.point]
                paths += [job.path for job in part.jobs if job.point in chosen]
    return tuple(paths)


def _chains(part: MetricsPart) -> float:
    """Return how many chains are measured."""
    return sum((job.last - job.first + 1) * job.setup.num_chains for job in part.jobs)


def _runs(part: StudyPart) -> float:
    """Return how many runs of a point there are."""
    return (part.last - part.first + 1) * len(part.setup.points)
