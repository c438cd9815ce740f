"""Cross-field checks of a paper's configuration that JSON Schema cannot express.

Names must exist, and settings must fit together. Parameter names are read from the source of
the ``Params`` of a method, model or data set; no module is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

from dpmc import registry
from dpmc.checks import START_RULES
from dpmc.numerics.source_digest import module_names, module_tree
from dpmc.types import DpmcError


def check_paper(paper: Mapping[str, Any], key: str, where: str) -> None:
    """Check the settings of a paper that fit its schema.

    Parameters
    ----------
    paper : mapping
        The settings.
    key : str
        Name of their file.
    where : str
        What messages start with.

    Raises
    ------
    DpmcError
        One line: the place, the value, and what is allowed.
    """
    if paper["paper"] != key:
        raise DpmcError(f"{where}: paper: {paper['paper']!r}, allowed {key!r}, as the file name")
    for name, problem in paper["problems"].items():
        here = f"{where}: problems.{name}"
        for kind in ("data", "model"):
            if kind in problem:
                part = problem[kind]
                _check_params(kind, part["name"], part["params"], (), f"{here}.{kind}")
        if "start" in problem:
            _check_start(problem["start"], f"{here}.start")
    modelled = [key for key, entry in paper["problems"].items() if "model" in entry]
    for name, experiment in paper["experiments"].items():
        here = f"{where}: experiments.{name}.methods"
        for problem, methods in experiment["methods"].items():
            _check_names([problem], modelled, f"{here}:")
            for label, method in methods.items():
                _check_method(method, experiment, f"{here}.{problem}.{label}")
    for name, study in paper["studies"].items():
        _check_study(study, paper, f"{where}: studies.{name}")
    for name, entry in paper.get("accounting", {}).items():
        for label, setting in entry["settings"].items():
            here = f"{where}: accounting.{name}.settings.{label}"
            _check_params("method", setting["method"], setting["params"], (), here)
            for accountant in setting["accountants"]:
                _check_kind("accountant", accountant, here)
    for name, output in paper["outputs"].items():
        _check_output(output, paper, f"{where}: outputs.{name}")


def listed(names: Iterable[object]) -> str:
    """Return names as a reader wants to see them."""
    return ", ".join(sorted(map(str, names))) or "none"


def parameters(kind: str, name: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the parameters of a method, model or data set, and those without a default.

    Raises
    ------
    DpmcError
        If the module has no class ``Params``.
    """
    every = _fields(f"{registry.package(kind)}.{name}", "Params")
    if every is None:
        raise DpmcError(f"{kind} {name!r}: its module has no class Params")
    return frozenset(every), frozenset(key for key, value in every.items() if value is None)


def _fields(module: str, name: str) -> dict[str, ast.expr | None] | None:
    """Return the fields of a class and their defaults, those of its bases in the package too.

    A module also has the classes that it imports.
    """
    tree = module_tree(module)
    found = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name]
    if not found:
        home = _imported(tree, _aliased(tree, name))
        return _fields(*_parted(home)) if home else None
    every: dict[str, ast.expr | None] = {}
    for base in found[0].bases:
        # As in ``class Params(gibbs.ChainParams)``, after ``from dpmc.linreg import gibbs``, or
        # in ``class Params(ChainParams)``, after importing that.
        if isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name):
            home = _imported(tree, base.value.id)
            every |= (home and _fields(home, base.attr)) or {}
        elif isinstance(base, ast.Name) and (home := _imported(tree, base.id)):
            every |= _fields(*_parted(home)) or {}
    entries = [entry for entry in found[0].body if isinstance(entry, ast.AnnAssign)]
    return every | {e.target.id: e.value for e in entries if isinstance(e.target, ast.Name)}


def _aliased(tree: ast.Module, name: str) -> str:
    """Return what a module assigns to `name`, as in ``Params = NoParams``, or the name itself."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            targets = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if name in targets:
                return node.value.id
    return name


def _imported(tree: ast.Module, name: str) -> str | None:
    """Return what a module imports from a package under `name`, if it is of this library."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpmc"):
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    return f"{node.module}.{alias.name}"
    return None


def _parted(path: str) -> tuple[str, str]:
    """Return the module of a class and its name."""
    module, _, name = path.rpartition(".")
    return module, name


def _check_start(start: Mapping[str, Any], where: str) -> None:
    rule = start["rule"]
    if rule not in START_RULES:
        raise DpmcError(f"{where}.rule: {rule!r}, allowed {listed(START_RULES)}")
    needed = START_RULES[rule]
    for key in ("centre", "scale"):
        if key in start and key not in needed:
            allowed = " and ".join(needed) or "nothing else"
            raise DpmcError(f"{where}.{key}: {start[key]!r}, allowed with rule {rule}: {allowed}")
        if key in needed and key not in start:
            raise DpmcError(f"{where}: {key} is missing, which rule {rule} needs")


def _check_method(method: Mapping[str, Any], experiment: Mapping[str, Any], where: str) -> None:
    if ("accountant" in method) == ("num_iterations" in method):
        raise DpmcError(f"{where}: allowed either an accountant or num_iterations, not both")
    if "accountant" in method:
        _check_kind("accountant", method["accountant"], where)
        if not (method.get("epsilons") or experiment.get("epsilons")):
            raise DpmcError(f"{where}: epsilons is missing here and in the experiment")
    for key in ("epsilons", "max_iterations"):
        if key in method and "accountant" not in method:
            raise DpmcError(f"{where}: {key}: allowed only with an accountant")
    _check_params("method", method["method"], method["params"], method.get("grid", ()), where)


def _check_study(study: Mapping[str, Any], paper: Mapping[str, Any], where: str) -> None:
    _check_kind("study", study["study"], where)
    _check_names(study["problems"], paper["problems"], f"{where}.problems:")
    _check_names(study.get("together", ()), study["grid"], f"{where}.together:")
    for label, method in study["methods"].items():
        here = f"{where}.methods.{label}"
        _check_names(method.get("problems", ()), study["problems"], f"{here}.problems:")
        _check_kind(study["study"], method["method"], here)
        every, _ = parameters(study["study"], method["method"])
        for key in method.get("params", {}):
            if key in study.get("params", {}):
                raise DpmcError(f"{here}: params.{key}, allowed here or in the study, not both")
            _check_names([key], every, f"{here}: {method['method']} parameter")
    # Methods share the parameters of a study, and leave out those that they do not have.
    known = set(_fields(f"{registry.package('study')}.{study['study']}", "Params") or ())
    for name in module_names(registry.package(study["study"])):
        known |= parameters(study["study"], name)[0]
    _check_names(study.get("params", ()), known, f"{where}: parameter")


def _check_kind(kind: str, name: str, where: str) -> None:
    allowed = module_names(registry.package(kind))
    if name not in allowed:
        raise DpmcError(f"{where}: {kind} {name!r}, allowed {listed(allowed)}")


def _check_params(kind: str, name: str, params: Any, grid: Any, where: str) -> None:
    _check_kind(kind, name, where)
    every, required = parameters(kind, name)
    given = [*params, *grid]
    for key in given:
        if key not in every:
            raise DpmcError(f"{where}: {name} parameter {key!r}, allowed {listed(every)}")
        if given.count(key) > 1:
            raise DpmcError(f"{where}: {name} parameter {key!r}, allowed in params or in grid")
    for key in sorted(required - set(given)):
        raise DpmcError(f"{where}: {name} parameter {key!r} is missing")


def _check_output(output: Mapping[str, Any], paper: Mapping[str, Any], where: str) -> None:
    chains = output.get("chains")
    named = {
        "experiments": [chains["experiment"]] if chains else [],
        "problems": [*output.get("reference", ()), *output.get("data", ())],
    }
    for section, names in named.items():
        _check_names(names, paper[section], f"{where}: {section.removesuffix('s')}")
    measured = [*paper["experiments"], *paper["studies"]]
    _check_names(output.get("metrics", ()), measured, f"{where}: experiment")
    known = paper.get("accounting", {})
    _check_names(output.get("accounting", ()), known, f"{where}: accounting")
    if chains:
        methods = paper["experiments"][chains["experiment"]]["methods"]
        _check_names([chains["problem"]], methods, f"{where}: chains.problem")


def _check_names(names: Iterable[str], allowed: Iterable[str], where: str) -> None:
    known = list(allowed)
    for name in names:
        if name not in known:
            raise DpmcError(f"{where} {name!r}, allowed {listed(known)}")
