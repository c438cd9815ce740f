"""The YAML configuration: read, merged with a scale and checked before any work starts.

Imports nothing heavy: the workflow reads it whenever it plans. Parameter names are
checked against the source of the ``Params`` of a method, model or data set, unrun.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from dpmc.digest import module_names, module_tree
from dpmc.types import DpmcError

KINDS = {
    "method": "dpmc.methods",
    "model": "dpmc.models",
    "data": "dpmc.data",
    "accountant": "dpmc.privacy.accountants",
}


@dataclass(frozen=True)
class Config:
    """What a run computes: everything that the YAML files say, merged and checked.

    Parameters
    ----------
    scale : str
        Name of the scale.
    results_dir : str
        Folder of all results.
    seeds_per_job : int
        The most replicates that one job computes.
    seconds_per_job : float
        The longest that a job with more than one replicate should take, in seconds.
    papers : mapping of str to dict
        The settings of each paper, by its key.
    """

    scale: str
    results_dir: str
    seeds_per_job: int
    seconds_per_job: float
    papers: Mapping[str, dict[str, Any]]


def load_config(source: Mapping[str, Any] | Path, root: Path | None = None) -> Config:
    """Read a configuration, the scale and the papers that it names.

    Parameters
    ----------
    source : mapping or Path
        The contents of ``config/config.yaml``, or its path.
    root : Path, optional
        Folder that holds ``config/`` and ``workflow/schemas/``; the current one by default.

    Returns
    -------
    Config
        Checked against the closed schemas and the code.

    Raises
    ------
    DpmcError
        One line: the file and key, the value, and what is allowed.
    """
    root = root or Path()
    where = str(source) if isinstance(source, Path) else "config"
    values = dict(read_yaml(source) if isinstance(source, Path) else source)
    if isinstance(values.get("papers"), str):
        values["papers"] = [values["papers"]]
    _check(values, root, "config", where)
    scale = str(values["scale"])
    scale_path = _known(root / "config" / "scales", "scale", scale)
    overlay = read_yaml(scale_path)
    _check(overlay, root, "scale", str(scale_path))
    papers = {}
    for key in values["papers"]:
        path = _known(root / "config" / "papers", "paper", key)
        where = f"{path} (scale {scale})"
        paper = _plain(merge(read_yaml(path), overlay["papers"].get(key, {}), where))
        _check(paper, root, "paper", where)
        _check_paper(paper, key, where)
        papers[key] = {name: value for name, value in paper.items() if name != "shared"}
    return Config(
        scale=scale,
        results_dir=str(values["results_dir"]).rstrip("/"),
        seeds_per_job=int(values.get("seeds_per_job") or overlay["seeds_per_job"]),
        seconds_per_job=float(overlay["seconds_per_job"]),
        papers=papers,
    )


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds one mapping.

    Raises
    ------
    DpmcError
        If the file is missing, is not YAML, repeats a key or holds no mapping.
    """
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)
    except OSError as error:
        raise DpmcError(f"{path}: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise DpmcError(f"{path}: line {line}, {error.problem}") from None
    if not isinstance(values, dict):
        raise DpmcError(f"{path}: {type(values).__name__}, allowed a mapping")
    return values


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return `base` changed by `overlay`, key by key at every depth.

    Lists and numbers are replaced; null removes a key. Both arguments stay as they are.

    Raises
    ------
    DpmcError
        If `overlay` removes a key that `base` does not have.
    """
    merged = copy.deepcopy(dict(base))
    for key, value in overlay.items():
        if value is None:
            if key not in merged:
                raise DpmcError(f"{where}: {key}: null removes it, allowed {_listed(merged)}")
            del merged[key]
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value, f"{where}: {key}")
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def scales(root: Path | None = None) -> tuple[str, ...]:
    """Return the sorted names of the scales under `root`."""
    return _stems((root or Path()) / "config" / "scales")


def parameters(kind: str, name: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the parameters of a method, model or data set, and those without a default.

    Raises
    ------
    DpmcError
        If the module has no class ``Params``.
    """
    tree = module_tree(f"{KINDS[kind]}.{name}")
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Params":
            entries = [entry for entry in node.body if isinstance(entry, ast.AnnAssign)]
            every = {e.target.id: e.value for e in entries if isinstance(e.target, ast.Name)}
            return frozenset(every), frozenset(k for k, v in every.items() if v is None)
    raise DpmcError(f"{kind} {name!r}: its module has no class Params")


class _UniqueKeys(yaml.SafeLoader):
    """YAML that refuses a key given twice, where the plain loader keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key.value!r} is given twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _plain(value: Any) -> Any:
    # 1.0 reads as 1: what is equal must look equal to whoever compares settings.
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _stems(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in folder.glob("*.yaml")))


def _known(folder: Path, kind: str, name: str) -> Path:
    if name not in _stems(folder):
        raise DpmcError(f"{kind}: {name!r}, allowed {_listed(_stems(folder))}")
    return folder / f"{name}.yaml"


def _listed(names: Any) -> str:
    return ", ".join(sorted(map(str, names))) or "none"


def _check(values: Mapping[str, Any], root: Path, schema_name: str, where: str) -> None:
    for path, value in _numbers(values):
        if not math.isfinite(value):
            raise DpmcError(f"{where}: {path}: {value}, allowed a finite number")
    schema = read_yaml(root / "workflow" / "schemas" / f"{schema_name}.yaml")
    validator = jsonschema.Draft202012Validator(schema)
    errors = sorted(validator.iter_errors(values), key=lambda error: list(map(str, error.path)))
    if errors:
        raise DpmcError(f"{where}: {_one_line(errors[0])}")


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield path, value
    elif isinstance(value, Mapping | list):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, entry in items:
            yield from _numbers(entry, f"{path}.{key}" if path else str(key))


def _one_line(error: jsonschema.ValidationError) -> str:
    path = ".".join(map(str, error.absolute_path))
    prefix = f"{path}: " if path else ""
    value: Any = error.instance
    limit: Any = error.validator_value
    schema = error.schema if isinstance(error.schema, dict) else {}
    if error.validator == "additionalProperties":
        allowed = schema.get("properties", {})
        unknown = sorted(set(map(str, value)) - set(allowed))
        return f"{prefix}unknown key {unknown[0]!r}, allowed {_listed(allowed)}"
    if error.validator == "required":
        missing = next(key for key in limit if key not in value)
        return f"{prefix}{missing} is missing"
    phrases = {
        "enum": _listed(limit) if isinstance(limit, list) else "",
        "minimum": f">= {limit}",
        "exclusiveMinimum": f"> {limit}",
        "maximum": f"<= {limit}",
        "exclusiveMaximum": f"< {limit}",
        "minItems": f"at least {limit}",
        "uniqueItems": "no entry twice",
    }
    told = schema.get("description") or phrases.get(str(error.validator), str(limit))
    return f"{prefix}{value!r}, allowed {told}"


def _check_paper(paper: Mapping[str, Any], key: str, where: str) -> None:
    if paper["paper"] != key:
        raise DpmcError(f"{where}: paper: {paper['paper']!r}, allowed {key!r}, as the file name")
    for name, problem in paper["problems"].items():
        for kind in ("data", "model"):
            entry = problem[kind]
            _check_params(
                kind, entry["name"], entry["params"], (), f"{where}: problems.{name}.{kind}"
            )
    for name, experiment in paper["experiments"].items():
        here = f"{where}: experiments.{name}"
        for problem, methods in experiment["methods"].items():
            if problem not in paper["problems"]:
                raise DpmcError(
                    f"{here}.methods: {problem!r}, allowed {_listed(paper['problems'])}"
                )
            for label, method in methods.items():
                _check_method(method, experiment, f"{here}.methods.{problem}.{label}")
    for name, output in paper["outputs"].items():
        wanted = [*output.get("metrics", ()), *_experiment_of(output)]
        for experiment in wanted:
            if experiment not in paper["experiments"]:
                raise DpmcError(
                    f"{where}: outputs.{name}: experiment {experiment!r}, "
                    f"allowed {_listed(paper['experiments'])}"
                )


def _experiment_of(output: Mapping[str, Any]) -> tuple[str, ...]:
    return (output["chains"]["experiment"],) if "chains" in output else ()


def _check_method(method: Mapping[str, Any], experiment: Mapping[str, Any], where: str) -> None:
    if ("accountant" in method) == ("num_iterations" in method):
        raise DpmcError(f"{where}: allowed either an accountant or num_iterations, not both")
    if "accountant" in method:
        _check_name("accountant", method["accountant"], where)
        if not (method.get("epsilons") or experiment.get("epsilons")):
            raise DpmcError(f"{where}: epsilons is missing here and in the experiment")
    elif "epsilons" in method:
        raise DpmcError(f"{where}: epsilons: allowed only with an accountant")
    _check_params("method", method["method"], method["params"], method.get("grid", ()), where)


def _check_name(kind: str, name: str, where: str) -> None:
    allowed = module_names(KINDS[kind])
    if name not in allowed:
        raise DpmcError(f"{where}: {kind} {name!r}, allowed {_listed(allowed)}")


def _check_params(kind: str, name: str, params: Any, grid: Any, where: str) -> None:
    _check_name(kind, name, where)
    every, required = parameters(kind, name)
    given = [*params, *grid]
    for key in given:
        if key not in every:
            raise DpmcError(f"{where}: {name} parameter {key!r}, allowed {_listed(every)}")
        if given.count(key) > 1:
            raise DpmcError(f"{where}: {name} parameter {key!r}, allowed in params or in grid")
    for key in sorted(required - set(given)):
        raise DpmcError(f"{where}: {name} parameter {key!r} is missing")
