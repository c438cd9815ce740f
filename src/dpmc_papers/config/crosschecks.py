"""Cross-field checks of a paper's settings that its schema cannot express.

Names must exist, settings must fit together, and the ``Params`` of each data set, model, method and
study must take what is given to them, with every value of a grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from dpmc import registry
from dpmc.checks import START_RULES
from dpmc.registry import listed, refusal
from dpmc.types import DpmcError
from dpmc_papers.config import code, grids
from dpmc_papers.config.settings import (
    Curve,
    Experiment,
    Method,
    Output,
    Paper,
    Problem,
    Start,
    Study,
)
from dpmc_papers.config.setups import ProblemSetup, StudyPoint

# Files that every document has, and so no name of a figure or table.
OF_DOCUMENT = ("guarantees", "power", "provenance", "runs", "verdict")


def check_paper(paper: Paper, key: str, where: str) -> None:
    """Check the settings of a paper that fit its schema; `key` is the name of their file."""
    with _at(where):
        if paper.paper != key:
            raise DpmcError(refusal("paper", f"{key!r}, as the file name", paper.paper))
        if key not in registry.names("output"):
            wanted = "the name of a module of dpmc_papers.outputs"
            raise DpmcError(refusal("paper", wanted, key, registry.names("output")))
        _check_sections(paper)
        for name, problem in paper.problems.items():
            _check_problem(problem, f"problems.{name}")
        for name, experiment in paper.experiments.items():
            _check_experiment(experiment, paper, f"experiments.{name}")
        for name, study in paper.studies.items():
            _check_study(study, paper, name)
        for name, curves in paper.accounting.items():
            for label, curve in curves.settings.items():
                _check_curve(curve, f"accounting.{name}.settings.{label}")
        for name, output in paper.outputs.items():
            if name in OF_DOCUMENT:
                wanted = f"another name than {listed(OF_DOCUMENT)}, which every document has"
                raise DpmcError(refusal(f"outputs.{name}", wanted, None))
            _check_output(output, paper, f"outputs.{name}")


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Name the place of what is refused inside."""
    try:
        yield
    except DpmcError as error:
        raise DpmcError(f"{where}: {error}") from None


def _check_sections(paper: Paper) -> None:
    if not paper.experiments and not paper.studies:
        raise DpmcError("`experiments` or `studies` must be given")
    if paper.experiments and paper.reference is None:
        raise DpmcError(refusal("reference", "given beside experiments", None))


def _check_problem(problem: Problem, where: str) -> None:
    of_model = {"model": problem.model, "start": problem.start, "delta": problem.delta}
    given = [key for key, value in of_model.items() if value is not None]
    if given and len(given) < len(of_model):
        missing = next(key for key in of_model if key not in given)
        raise DpmcError(refusal(f"{where}.{missing}", f"given beside {given[0]}", None))
    for kind, part in (("data", problem.data), ("model", problem.model)):
        if part is not None:
            module = _module(kind, part.name, f"{where}.{kind}.name")
            with _at(f"{where}.{kind}.params"):
                params = registry.parameters(module, part.params)
                if kind == "model":
                    module.build(params)
    if problem.start is not None:
        _check_start(problem.start, f"{where}.start")


def _check_start(start: Start, where: str) -> None:
    _check_name(start.rule, START_RULES, f"{where}.rule")
    needed = START_RULES[start.rule]
    for key in ("centre", "scale"):
        value = getattr(start, key)
        if value is not None and key not in needed:
            allowed = " and ".join(needed) or "nothing else"
            wanted = f"left out, since rule {start.rule} takes {allowed}"
            raise DpmcError(refusal(f"{where}.{key}", wanted, value))
        if value is None and key in needed:
            raise DpmcError(refusal(f"{where}.{key}", f"given with rule {start.rule}", None))


def _check_experiment(experiment: Experiment, paper: Paper, where: str) -> None:
    modelled = [key for key, entry in paper.problems.items() if entry.model is not None]
    for problem, methods in experiment.methods.items():
        _check_name(problem, modelled, f"{where}.methods")
        for label, method in methods.items():
            _check_method(method, experiment, f"{where}.methods.{problem}.{label}")


def _check_method(method: Method, experiment: Experiment, where: str) -> None:
    module = _module("method", method.method, f"{where}.method")
    if (method.accountant is None) == (method.num_iterations is None):
        raise DpmcError(f"`{where}` must have either an accountant or num_iterations")
    if method.accountant is not None:
        _check_name(method.accountant, registry.names("accountant"), f"{where}.accountant")
        if not (method.epsilons or experiment.epsilons):
            raise DpmcError(refusal(f"{where}.epsilons", "given here or in the experiment", None))
    for key in ("epsilons", "max_iterations"):
        if getattr(method, key) is not None and method.accountant is None:
            wanted = "left out without an accountant"
            raise DpmcError(refusal(f"{where}.{key}", wanted, getattr(method, key)))
    grid = method.grid or {}
    for key in grid:
        if key in method.params:
            raise DpmcError(refusal(f"{where}.grid.{key}", "left out, being in params", None))
    for point in grids.combinations(grid):
        place = f"{where}, {grids.name(point)}" if grid else f"{where}.params"
        _check_params(module, {**method.params, **point}, place)


def _check_study(study: Study, paper: Paper, name: str) -> None:
    where = f"studies.{name}"
    module = _module("study", study.study, f"{where}.study")
    for problem in study.problems:
        _check_name(problem, paper.problems, f"{where}.problems")
    for key in study.together:
        _check_name(key, study.grid, f"{where}.together")
    for key in study.seeds_per_job if isinstance(study.seeds_per_job, dict) else ():
        _check_name(key, paper.problems, f"{where}.seeds_per_job")
    for label, method in study.methods.items():
        here = f"{where}.methods.{label}"
        for problem in method.problems or ():
            _check_name(problem, study.problems, f"{here}.problems")
        takes = fields(_module(study.study, method.method, f"{here}.method").Params)
        for key in method.params:
            if key in study.params:
                raise DpmcError(refusal(f"{here}.params.{key}", "left out, being in params", None))
            _check_key(key, [entry.name for entry in takes], f"{here}.params", method.method)
        for point in _points(study, paper, name, label):
            with _at(f"{here}, {grids.name(point.point)}"):
                module.check(point)
    _check_shared(study, module, f"{where}.params")


def _points(study: Study, paper: Paper, name: str, label: str) -> Iterator[StudyPoint]:
    method = study.methods[label]
    for problem in method.problems or study.problems:
        for point in grids.each_value({**study.grid, **method.grid}):
            yield StudyPoint(
                paper=paper.paper,
                study=study.study,
                experiment=name,
                problem=ProblemSetup.of(problem, paper.problems[problem]),
                label=label,
                method=method.method,
                variant=method.variant,
                params={**study.params, **method.params},
                outside=paper.outside,
                seed=paper.seed,
                point=point,
            )


def _check_shared(study: Study, module: Any, where: str) -> None:
    """Refuse a parameter of a study that neither it nor a method has."""
    own = getattr(module, "Params", None)
    known = {entry.name for entry in (fields(own) if own else ())}
    # Methods share the parameters of a study, and leave out those that they do not have.
    chosen = [method.method for method in study.methods.values()]
    for name in dict.fromkeys([*chosen, *registry.names(study.study)]):
        if set(study.params) <= known:
            return
        known |= {entry.name for entry in fields(registry.load(study.study, name).Params)}
    for key in study.params:
        _check_key(key, known, where, study.study)


def _check_curve(curve: Curve, where: str) -> None:
    module = _module("method", curve.method, f"{where}.method")
    _check_params(module, curve.params, f"{where}.params")
    for accountant in curve.accountants:
        known = registry.names("accountant")
        _check_name(accountant, known, f"{where}.accountants")


def _check_output(output: Output, paper: Paper, where: str) -> None:
    module = f"{registry.package('output')}.{paper.paper}"
    functions = {name for name in code.defined(module) if not name.startswith("_")}
    if output.function not in functions:
        wanted = f"a function of {module}"
        raise DpmcError(refusal(f"{where}.function", wanted, output.function, functions))
    for name in output.metrics:
        _check_name(name, [*paper.experiments, *paper.studies], f"{where}.metrics")
    for key in ("reference", "data"):
        for name in getattr(output, key):
            _check_name(name, paper.problems, f"{where}.{key}")
    for name in output.accounting:
        _check_name(name, paper.accounting, f"{where}.accounting")
    if output.chains is not None:
        read = output.chains
        _check_name(read.experiment, paper.experiments, f"{where}.chains.experiment")
        methods = paper.experiments[read.experiment].methods
        _check_name(read.problem, methods, f"{where}.chains.problem")


def _module(kind: str, name: str, where: str) -> Any:
    _check_name(name, registry.names(kind), where)
    return registry.load(kind, name)


def _check_params(module: Any, params: Mapping[str, Any], where: str) -> None:
    with _at(where):
        registry.parameters(module, params)


def _check_name(name: str, known: Iterable[str], where: str) -> None:
    known = list(known)
    if name not in known:
        raise DpmcError(refusal(where, f"one of {listed(known)}", name, known))


def _check_key(key: str, known: Iterable[str], where: str, owner: str) -> None:
    known = list(known)
    if key not in known:
        wanted = f"a parameter of {owner} ({listed(known)})"
        raise DpmcError(refusal(f"{where}.{key}", wanted, None, known))
