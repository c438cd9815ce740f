"""From a checked configuration to the jobs of a paper, each with a stable file name."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from typing import Any

from dpmc import registry
from dpmc.experiments.config import grids
from dpmc.experiments.config.reader import Config
from dpmc.experiments.pipeline.jobs import Curves, Job, Metrics, Output, Problem, Study
from dpmc.numerics.source_digest import (
    closure,
    code_digest,
    module_names,
    module_tree,
    short_digest,
)

# Time grows with the number of iterations that a budget buys: by a factor of 33 from
# epsilon 2 to 15 for compositions of Gaussian mechanisms at delta = 1e-6.
EPSILON_EXPONENT = 1.74


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
    problems : dict of str to Problem
        By name.
    jobs : tuple of Job
        In the order of the configuration.
    metrics : tuple of Metrics
        In the order of the configuration.
    curves : dict of str to Curves
        By name.
    studies : tuple of Study
        In the order of the configuration.
    outputs : dict of str to Output
        Figures and tables by name, ``verdict``, ``guarantees`` and ``page``.
    files : dict of str to Problem, Job, Metrics, Curves, Study or Output
        Whatever has a digest in its name, by its path.
    """

    def __init__(self, config: Config, paper: str) -> None:
        self.config = config
        self.paper = config.papers[paper]
        self.folder = f"{config.results_dir}/{config.scale}/{paper}"
        used = {p for e in self.paper["experiments"].values() for p in e["methods"]}
        used |= {p for study in self.paper["studies"].values() for p in study["problems"]}
        used |= {p for output in self.paper["outputs"].values() for p in _read(output)}
        self.problems = {
            name: self._problem(name) for name in self.paper["problems"] if name in used
        }
        self.metrics = tuple(self._all_metrics())
        self.jobs = tuple(job for entry in self.metrics for job in entry.jobs)
        self.curves = {name: self._curves(name) for name in self.paper.get("accounting", {})}
        self.studies = tuple(self._all_studies())
        self.outputs = {name: self._output(name) for name in self.paper["outputs"]}
        self.outputs["verdict"] = self._whole("verdict", "dpmc.experiments.verdicts.judge")
        self.outputs["guarantees"] = self._whole(
            "guarantees", "dpmc.experiments.outputs._guarantees"
        )
        self.outputs["page"] = self._whole("page", "dpmc.experiments.site.build")
        self.files: dict[str, Problem | Job | Metrics | Curves | Study | Output] = {
            **{p: entry for entry in self.problems.values() for p in entry.paths},
            **{entry.path: entry for entry in self.jobs},
            **{entry.path: entry for entry in self.metrics},
            **{entry.path: entry for entry in self.curves.values()},
            **{entry.path: entry for entry in self.studies},
            **{entry.request: entry for entry in self.outputs.values()},
        }

    def _problem(self, name: str) -> Problem:
        entry = {k: v for k, v in self.paper["problems"][name].items() if k != "label"}
        spec = {"name": name, **entry}
        seed = self.paper["seed"]
        data_code = _code(
            "dpmc.experiments.config.problems",
            "dpmc.experiments.pipeline.store",
            f"dpmc.experiments.data.{spec['data']['name']}",
        )
        data = short_digest([name, seed, spec["data"], data_code])
        rows = f"{self.folder}/data/{name}-{data}.parquet"
        if "model" not in spec:
            return Problem(name, spec, rows)
        model_code = _code(
            "dpmc.experiments.config.problems", f"dpmc.models.{spec['model']['name']}"
        )
        sizes = self.paper["reference"]
        reference = short_digest([data, spec["model"], sizes["num_draws"], model_code])
        baseline = short_digest(
            [reference, sizes, _code("dpmc.experiments.pipeline.chain_metrics")]
        )
        return Problem(
            name=name,
            spec=spec,
            data=rows,
            reference=f"{self.folder}/reference/{name}-{reference}.parquet",
            baseline=f"{self.folder}/metrics/baseline/{name}-{baseline}.parquet",
        )

    def _all_metrics(self) -> Iterator[Metrics]:
        code = _code("dpmc.experiments.pipeline.chain_metrics", "dpmc.experiments.pipeline.store")
        for experiment, settings in self.paper["experiments"].items():
            for problem, methods in settings["methods"].items():
                for label in methods:
                    jobs = tuple(self._jobs(experiment, problem, label))
                    reference = self.problems[problem].reference
                    reads = [self._inside(path) for path in (reference, *(j.path for j in jobs))]
                    digest = short_digest([reads, self.paper["seed"], code])
                    path = f"{self.folder}/metrics/{experiment}/{problem}/{label}-{digest}.parquet"
                    yield Metrics(experiment, problem, label, jobs, reference, path)

    def _jobs(self, experiment: str, problem: str, label: str) -> Iterator[Job]:
        settings = self.paper["experiments"][experiment]
        method = settings["methods"][problem][label]
        epsilons = method.get("epsilons") or settings.get("epsilons") or ()
        replicates = method.get("replicates") or settings["replicates"]
        for point, epsilon, extra in grids.points(method, epsilons):
            chain = self._chain(settings, problem, method, epsilon, extra)
            digest = self._chain_digest(chain)
            seconds = method.get("seconds", 1.0)
            if epsilon is not None:
                seconds *= (epsilon / self.paper["timed_at_epsilon"]) ** EPSILON_EXPONENT
            size = max(
                1, min(self.config.seeds_per_job, int(self.config.seconds_per_job / seconds))
            )
            folder = f"{self.folder}/chains/{experiment}/{problem}/{label}/{point}-{digest}"
            for first in range(0, replicates, size):
                last = min(first + size, replicates) - 1
                yield Job(
                    experiment=experiment,
                    problem=problem,
                    label=label,
                    point=point,
                    digest=digest,
                    first=first,
                    last=last,
                    chain=chain,
                    data=self.problems[problem].data,
                    reference=self.problems[problem].reference,
                    path=f"{folder}/{first}-{last}.parquet",
                    seconds=seconds * (last - first + 1),
                )

    def _chain(
        self,
        settings: Mapping[str, Any],
        problem: str,
        method: Mapping[str, Any],
        epsilon: float | None,
        extra: Mapping[str, Any],
    ) -> dict[str, Any]:
        spec = self.problems[problem].spec
        budget = None
        if epsilon is not None:
            budget = {
                "epsilon": float(epsilon),
                "delta": spec["delta"],
                "accountant": method["accountant"],
                "split": "chains",
            }
        chain = {
            "paper": self.paper["paper"],
            "problem": spec,
            "method": method["method"],
            "variant": method["variant"],
            "params": {**method["params"], **extra},
            "budget": budget,
            "num_chains": settings["num_chains"],
            "num_iterations": method.get("num_iterations"),
            "outside": self.paper.get("outside", []),
            "seed": self.paper["seed"],
        }
        # Streams are keyed by these settings: a key that is not given must not appear.
        if "max_iterations" in method:
            chain["max_iterations"] = method["max_iterations"]
        return chain

    def _chain_digest(self, chain: Mapping[str, Any]) -> str:
        problem = self.problems[chain["problem"]["name"]]
        modules = [
            "dpmc.experiments.pipeline.run_chains",
            "dpmc.experiments.pipeline.store",
            f"dpmc.mcmc.methods.{chain['method']}",
            f"dpmc.models.{chain['problem']['model']['name']}",
            f"dpmc.experiments.data.{chain['problem']['data']['name']}",
        ]
        if chain["budget"] is not None:
            # A run carries the guarantee of the tightest accountant that is valid, whichever it is.
            names = module_names("dpmc.privacy.accountants")
            modules += [f"dpmc.privacy.accountants.{name}" for name in names]
        reads = [self._inside(problem.data), self._inside(problem.reference)]
        return short_digest([chain, reads, _code(*modules)])

    def _curves(self, name: str) -> Curves:
        spec = self.paper["accounting"][name]
        entries = spec["settings"].values()
        modules = {f"dpmc.mcmc.methods.{entry['method']}" for entry in entries}
        modules |= {f"dpmc.privacy.accountants.{a}" for e in entries for a in e["accountants"]}
        digest = short_digest(
            [
                spec,
                _code(
                    "dpmc.experiments.pipeline.accounting_curves",
                    "dpmc.experiments.pipeline.store",
                    *sorted(modules),
                ),
            ]
        )
        return Curves(name, spec, f"{self.folder}/accounting/{name}-{digest}.parquet")

    def _all_studies(self) -> Iterator[Study]:
        for name, study in self.paper["studies"].items():
            for problem in study["problems"]:
                for label, method in study["methods"].items():
                    if problem in method.get("problems", study["problems"]):
                        yield from self._studies(name, problem, label)

    def _studies(self, name: str, problem: str, label: str) -> Iterator[Study]:
        study = self.paper["studies"][name]
        method = study["methods"][label]
        rows = self.problems[problem].data
        module = f"{registry.package(study['study'])}.{method['method']}"
        code = _code(
            "dpmc.experiments.pipeline.store", f"dpmc.experiments.studies.{study['study']}", module
        )
        settings = {
            "paper": self.paper["paper"],
            "study": study["study"],
            "experiment": name,
            "problem": self.problems[problem].spec,
            "label": label,
            "method": method["method"],
            "variant": method["variant"],
            "params": {**study.get("params", {}), **method.get("params", {})},
            "outside": self.paper.get("outside", []),
            "seed": self.paper["seed"],
        }
        replicates = method.get("replicates", study["replicates"])
        size = min(self.config.seeds_per_job, replicates)
        grid = {**study["grid"], **method.get("grid", {})}
        for point, values in grids.together(grid, study.get("together", ())):
            chosen = {**settings, "points": values}
            digest = short_digest([chosen, self._inside(rows), code])
            folder = f"{self.folder}/studies/{name}/{problem}/{label}/{point}-{digest}"
            for first in range(0, replicates, size):
                last = min(first + size, replicates) - 1
                path = f"{folder}/{first}-{last}.parquet"
                yield Study(name, problem, label, point, first, last, chosen, rows, path)

    def _inside(self, path: str) -> str:
        # Digests know files by their place in the folder: the folder itself determines nothing.
        return path.removeprefix(self.folder)

    def _output(self, name: str) -> Output:
        spec = self.paper["outputs"][name]
        chains = spec.get("chains", {})
        experiments = [*spec.get("metrics", ()), *([chains["experiment"]] if chains else [])]
        experiments = [key for key in self.paper["experiments"] if key in experiments]
        studies = [key for key in self.paper["studies"] if key in spec.get("metrics", ())]
        problems = {p for key in experiments for p in self.paper["experiments"][key]["methods"]}
        problems |= {p for key in studies for p in self.paper["studies"][key]["problems"]}
        problems |= _read(spec)
        config = {
            **{k: v for k, v in self.paper.items() if not isinstance(v, dict)},
            "problems": {k: v for k, v in self.paper["problems"].items() if k in problems},
            "experiments": {k: self.paper["experiments"][k] for k in experiments},
            "outputs": {name: spec},
        }
        if "reference" in self.paper:
            config["reference"] = self.paper["reference"]
        if studies:
            config["studies"] = {k: self.paper["studies"][k] for k in studies}
        if "accounting" in spec:
            config["accounting"] = {k: self.paper["accounting"][k] for k in spec["accounting"]}
        code = _code(
            f"dpmc.experiments.outputs.{self.paper['paper']}", "dpmc.experiments.pipeline.store"
        )
        return self._with_request(name, spec, config, problems, code)

    def _whole(self, name: str, module: str) -> Output:
        spec = {
            "kind": name,
            "metrics": [*self.paper["experiments"], *self.paper["studies"]],
            "accounting": list(self.curves),
        }
        code = _code(module, "dpmc.experiments.pipeline.store")
        return self._with_request(name, spec, self.paper, set(self.problems), code)

    def _with_request(
        self,
        name: str,
        spec: Mapping[str, Any],
        config: Mapping[str, Any],
        problems: set[str],
        code: str,
    ) -> Output:
        used = [self.problems[key] for key in self.problems if key in problems]
        wanted = spec.get("metrics", ())
        metrics = tuple(m.path for m in self.metrics if m.experiment in wanted)
        baselines = tuple(p.baseline for p in used if p.baseline and metrics)
        metrics += tuple(study.path for study in self.studies if study.experiment in wanted)
        chains = _picked(self.metrics, spec.get("chains", {}))
        references = tuple(p.reference for p in used if p.name in spec.get("reference", ()))
        datasets = tuple(p.data for p in used if p.name in spec.get("data", ()))
        curves = tuple(self.curves[key].path for key in spec.get("accounting", ()))
        files = (metrics, baselines, chains, references, datasets, curves)
        reads = [self._inside(path) for kind in files for path in kind]
        digest = short_digest([config, reads, code])
        request = f"{self.folder}/requests/{name}-{digest}.json"
        return Output(name, spec, config, *files, request)


def _read(output: Mapping[str, Any]) -> set[str]:
    """Return the problems of which an output reads the exact sample or the rows."""
    return {*output.get("reference", ()), *output.get("data", ())}


def _picked(metrics: tuple[Metrics, ...], chains: Mapping[str, str]) -> tuple[str, ...]:
    paths = []
    for entry in metrics:
        if (entry.experiment, entry.problem) == (chains.get("experiment"), chains.get("problem")):
            points = list(dict.fromkeys(job.point for job in entry.jobs))
            wanted = {"all": points, "first": points[:1], "last": points[-1:]}[chains["point"]]
            paths += [job.path for job in entry.jobs if job.point in wanted]
    return tuple(paths)


@functools.cache
def _code(*modules: str) -> str:
    """Return the digest of modules, of what they import, and of what those look up by name.

    A module that looks others up names their packages in a constant ``LOOKED_UP``: all modules
    in them count.
    """
    named: set[str] = set()
    while found := {m for name in closure(*modules, *named) for m in _looked_up(name)} - named:
        named |= found
    return code_digest(*modules, *sorted(named))


def _looked_up(name: str) -> Iterator[str]:
    for node in module_tree(name).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LOOKED_UP":
            for package in ast.literal_eval(node.value):
                yield from (f"{package}.{member}" for member in module_names(package))
