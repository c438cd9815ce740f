"""Jobs of a paper: from its checked configuration to files that a person can name.

A file stands where its experiment, problem, method and point say. What it holds is determined by
its settings, which it carries, and by code.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from dpmc import registry
from dpmc.numerics.source_digest import short_digest
from dpmc_papers.config import code, grids, problems, settings
from dpmc_papers.config.reader import Config
from dpmc_papers.config.settings import Paper, plain
from dpmc_papers.config.setups import BudgetSetup, ChainSetup, ProblemSetup, canonical
from dpmc_papers.pipeline import files

Paths = str | tuple[str, ...]
Batch = tuple[int, int]
# All modules of dpmc_papers.verdicts: whichever is edited, it takes seconds to judge again.
JUDGES = sorted(path.stem for path in (Path(__file__).parents[1] / "verdicts").glob("[!_]*.py"))


@dataclass(frozen=True)
class Job:
    """One file, or those of one output, and all that determines it.

    Parameters
    ----------
    paths : tuple of str
        The files that are made.
    settings : mapping
        Plain values.
    modules : tuple of str
        What is run, by name.
    inputs : mapping of str to str or tuple of str
        The files that are read, by the name that a script knows them by.
    reads : mapping of str to str
        The digest of each result among them, by its place in the folder of the paper.
    """

    paths: tuple[str, ...]
    settings: Mapping[str, Any]
    modules: tuple[str, ...]
    inputs: Mapping[str, Paths] = field(default_factory=dict)
    reads: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """Eight hexadecimal digits of the settings, and of those of all that is read."""
        return short_digest(made(self.settings, self.reads))

    @property
    def code(self) -> str:
        """Eight hexadecimal digits of the modules."""
        return code.digest(*self.modules)

    @property
    def given(self) -> list[str]:
        """All files that are read."""
        every = ((one,) if isinstance(one, str) else one for one in self.inputs.values())
        return [path for paths in every for path in paths]


def made(given: Mapping[str, Any], reads: Mapping[str, str]) -> dict[str, Any]:
    """What a result says of itself: its settings, and the digests of what it was made from."""
    return {**given, "reads": dict(reads)}


@dataclass(frozen=True)
class Point:
    """Replicates of a method at one point of the grid of an experiment.

    Parameters
    ----------
    experiment, problem, label, point : str
        Where it stands in the configuration; ``point`` in words, such as ``eps=4``.
    replicates : int
    setup : ChainSetup
        All that determines a replicate, but its number.
    folder : str
        Where its chains are. Points of one setup share the first one's.
    """

    experiment: str
    problem: str
    label: str
    point: str
    replicates: int
    setup: ChainSetup
    folder: str


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
        Folder of the results.
    problems : dict of str to ProblemSetup
        Those that are used, by name.
    points : tuple of Point
        Of all experiments, in the order of the configuration.
    files : dict of str to Job
        What is kept between jobs, by its path.
    outputs : dict of str to Job
        Figures and tables by name, ``verdict`` and ``guarantees``.
    """

    def __init__(self, config: Config, paper: str) -> None:
        self.config = config
        self.paper = config.papers[paper]
        self.folder = f"{config.results_dir}/{config.scale}/{paper}"
        used = {p for e in self.paper.experiments.values() for p in e.methods}
        used |= {p for study in self.paper.studies.values() for p in study.problems}
        for output in self.paper.outputs.values():
            used |= {*output.reference, *output.data}
        self.problems = {
            name: ProblemSetup.of(name, entry)
            for name, entry in self.paper.problems.items()
            if name in used
        }
        self.points = tuple(self._points())
        self.files: dict[str, Job] = {}
        for problem in self.problems:
            self._add_problem(problem)
        self._add_chains()
        for experiment, entry in self.paper.experiments.items():
            for problem, methods in entry.methods.items():
                self._add_metrics(experiment, problem, list(methods))
        for name in self.paper.accounting:
            self._add_curves(name)
        for name, study in self.paper.studies.items():
            for problem in study.problems:
                self._add_study(name, problem)
        self.outputs = {name: self._output(name) for name in self.paper.outputs}
        self.outputs |= {name: self._whole(name) for name in ("verdict", "guarantees")}

    def path(self, kind: str, *names: str) -> str:
        """The path of a result."""
        return "/".join([self.folder, kind, *names]) + ".parquet"

    def job(
        self,
        paths: Sequence[str],
        given: Mapping[str, Any],
        modules: Sequence[str],
        inputs: Mapping[str, Paths],
    ) -> Job:
        """A job that reads results of this paper."""
        read = Job(tuple(paths), given, tuple(modules), inputs).given
        results = {path: self.files[path] for path in read if path in self.files}
        reads = {path.removeprefix(f"{self.folder}/"): job.digest for path, job in results.items()}
        return Job(tuple(paths), given, tuple(modules), inputs, reads)

    def _add(
        self, path: str, given: Mapping[str, Any], modules: Sequence[str], **inputs: Paths
    ) -> None:
        self.files[path] = self.job([path], given, modules, inputs)

    def _add_problem(self, name: str) -> None:
        setup, sizes = self.problems[name], self.paper.reference
        rows = {"problem": name, "data": plain(setup.data), "seed": self.paper.seed}
        modules = [f"dpmc_papers.data.{setup.data.name}"]
        path, raw = self.path("data", name), problems.raw_file(setup)
        inputs = {} if raw is None else {"raw": f"{self.folder}/raw/{raw}.json"}
        self._add(path, rows, modules, **inputs)
        if setup.model is None or sizes is None:
            return
        modules = ["dpmc_papers.config.problems", f"dpmc.models.{setup.model.name}"]
        exact = {"problem": name, "model": plain(setup.model), "seed": self.paper.seed}
        first = {**exact, "num_draws": sizes.num_draws}
        self._add(self.path("reference", name), first, modules, data=path)
        further = {**first, "num_baselines": sizes.num_baselines}
        modules = [*modules, "dpmc_papers.pipeline.chain_metrics"]
        self._add(self.path("baselines", name), further, modules, data=path)

    def _points(self) -> Iterator[Point]:
        folders: dict[str, str] = {}
        for name, experiment in self.paper.experiments.items():
            for problem, methods in experiment.methods.items():
                for label, method in methods.items():
                    replicates = method.replicates or experiment.replicates
                    for point, epsilon, extra in grids.points(method, experiment.budgets(method)):
                        setup = self._chain(experiment, problem, method, epsilon, extra)
                        place = f"{name}/{problem}/{label}/{in_path(point)}"
                        folder = f"{self.folder}/chains/{place}"
                        folder = folders.setdefault(canonical(setup), folder)
                        yield Point(name, problem, label, point, replicates, setup, folder)

    def _chain(
        self,
        experiment: settings.Experiment,
        problem: str,
        method: settings.Method,
        epsilon: float | None,
        extra: Mapping[str, Any],
    ) -> ChainSetup:
        setup, budget = self.problems[problem], None
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

    def _add_chains(self) -> None:
        replicates: dict[str, int] = {}
        for one in self.points:
            replicates[one.folder] = max(one.replicates, replicates.get(one.folder, 0))
        for one in self.points:
            setup, budget = one.setup, one.setup.budget
            modules = ["dpmc_papers.pipeline.run_chains", f"dpmc.mcmc.methods.{setup.method}"]
            modules += [f"dpmc.models.{setup.problem.model.name}"] if setup.problem.model else []
            modules += [f"dpmc.privacy.accountants.{budget.accountant}"] if budget else []
            for batch in batches(replicates[one.folder], self.config.seeds_per_job):
                path = f"{one.folder}/{seeds(batch)}.parquet"
                if path not in self.files:
                    self._add(
                        path,
                        {"chain": plain(setup), "seeds": list(batch)},
                        modules,
                        data=self.path("data", one.problem),
                        reference=self.path("reference", one.problem),
                    )
        self._replicates = replicates

    def chains(self, point: Point) -> list[str]:
        """The files that hold the replicates of a point."""
        held = batches(self._replicates[point.folder], self.config.seeds_per_job)
        return [f"{point.folder}/{seeds(b)}.parquet" for b in held if b[0] < point.replicates]

    def _add_metrics(self, experiment: str, problem: str, labels: Sequence[str]) -> None:
        own = [p for p in self.points if (p.experiment, p.problem) == (experiment, problem)]
        points = [
            {
                "label": point.label,
                "point": point.point,
                "replicates": point.replicates,
                "files": [path.removeprefix(f"{self.folder}/") for path in self.chains(point)],
            }
            for label in labels
            for point in own
            if point.label == label
        ]
        self._add(
            self.path("metrics", experiment, problem),
            {"experiment": experiment, "points": points, "seed": self.paper.seed},
            [
                "dpmc_papers.pipeline.chain_metrics",
                "dpmc.diagnostics.mmd",
                "dpmc.diagnostics.autocorrelation",
                "dpmc.diagnostics.convergence",
            ],
            chains=tuple(dict.fromkeys(path for p in own for path in self.chains(p))),
            reference=self.path("reference", problem),
        )

    def _add_curves(self, name: str) -> None:
        setup = self.paper.accounting[name]
        entries = setup.settings.values()
        modules = {f"dpmc.mcmc.methods.{entry.method}" for entry in entries}
        modules |= {f"dpmc.privacy.accountants.{a}" for e in entries for a in e.accountants}
        modules |= {"dpmc_papers.pipeline.accounting_curves"}
        self._add(self.path("accounting", name), {"curves": plain(setup)}, sorted(modules))

    def _add_study(self, name: str, problem: str) -> None:
        study = self.paper.studies[name]
        own = study.on(problem)
        replicates = study.replicates_on(problem)
        modules = {registry.home(study.study, m.method) for m in own.methods.values()}
        modules |= {f"dpmc_papers.studies.{study.study}"}
        reads = "reads" in code.defined(f"dpmc_papers.studies.{study.study}")
        others = registry.load("study", study.study).reads if reads else None
        for first, last in batches(max(replicates.values()), study.batch(problem)):
            given = {
                "paper": self.paper.paper,
                "experiment": name,
                "problem": plain(self.problems[problem]),
                "study": plain(own),
                "seeds": {
                    label: [first, min(last, number - 1)]
                    for label, number in replicates.items()
                    if first < number
                },
                "outside": self.paper.outside,
                "seed": self.paper.seed,
            }
            if others is not None:
                given["others"] = [
                    others({**study.params, **m.params}) for m in own.methods.values()
                ]
            path = self.path("studies", name, problem, seeds((first, last)))
            self._add(path, given, sorted(modules), data=self.path("data", problem))

    def studies(self, name: str) -> list[str]:
        """The tables of a study, problem by problem."""
        study = self.paper.studies[name]
        return [
            self.path("studies", name, problem, seeds(batch))
            for problem in study.problems
            for batch in batches(max(study.replicates_on(problem).values()), study.batch(problem))
        ]

    def _output(self, name: str) -> Job:
        output, part = self.paper.outputs[name], self.paper.part(name)
        modules = [f"dpmc_papers.outputs.{self.paper.paper}"]
        if output.kind == "figure":
            modules += [f"dpmc_papers.plots.{one}" for one in ("style", "drawn", "panels")]
        chains = tuple(self._picked(output.chains)) if output.chains else ()
        inputs = {
            **self._runs(output.metrics, part, output.accounting),
            "chains": chains,
            "references": self._of("reference", output.reference),
            "datasets": self._of("data", output.data),
        }
        paths = [f"{self.folder}/{name}.{ending}" for ending in files.endings(name, output.kind)]
        return self.job(paths, part.determining(), modules, inputs)

    def _whole(self, name: str) -> Job:
        modules = {
            "verdict": [f"dpmc_papers.verdicts.{one}" for one in JUDGES],
            "guarantees": ["dpmc_papers.outputs._guarantees"],
        }[name]
        if name == "verdict" and self.paper.paper in registry.names("rules"):
            modules.append(f"dpmc_papers.outputs._rules.{self.paper.paper}")
        every = [*self.paper.experiments, *self.paper.studies]
        inputs = self._runs(every, self.paper, self.paper.accounting if name == "verdict" else ())
        paths = [f"{self.folder}/{file}" for file in files.OF_DOCUMENT[name]]
        return self.job(paths, self.paper.determining(), modules, inputs)

    def _runs(
        self, names: Iterable[str], part: Paper, accounting: Iterable[str]
    ) -> dict[str, Paths]:
        """The tables of experiments, studies, exact samples and accountants."""
        chosen = set(names)
        metrics = [
            self.path("metrics", name, problem)
            for name, experiment in self.paper.experiments.items()
            for problem in experiment.methods
            if name in chosen
        ]
        studies = [
            path for name in self.paper.studies if name in chosen for path in self.studies(name)
        ]
        return {
            "metrics": (*metrics, *studies),
            "baselines": self._of("baselines", part.problems if metrics else ()),
            "curves": tuple(self.path("accounting", name) for name in accounting),
        }

    def _of(self, kind: str, names: Container[str]) -> tuple[str, ...]:
        """The files of some problems, in the order of the configuration."""
        paths = (self.path(kind, name) for name in self.problems if name in names)
        return tuple(path for path in paths if path in self.files)

    def _picked(self, wanted: settings.ChainsRead) -> Iterator[str]:
        """The chains of each method that an output asks for."""
        own = [
            point
            for point in self.points
            if (point.experiment, point.problem) == (wanted.experiment, wanted.problem)
        ]
        for label in dict.fromkeys(point.label for point in own):
            points = [point for point in own if point.label == label]
            chosen = {"all": points, "first": points[:1], "last": points[-1:]}[wanted.point]
            for point in chosen:
                yield from self.chains(point)


def batches(replicates: int, size: int | None) -> list[Batch]:
    """The first and the last replicate of each batch.

    Its borders are multiples of `size`, so that one replicate more changes one batch or adds one;
    without a size there is one batch.
    """
    step = size or replicates
    return [(first, min(first + step, replicates) - 1) for first in range(0, replicates, step)]


def seeds(batch: Batch) -> str:
    """The name of a batch."""
    return f"seeds={batch[0]}-{batch[1]}"


def in_path(point: str) -> str:
    """The name of a point as part of a path, where a comma would end a word of a command."""
    return point.replace(",", "+")
