"""The YAML configuration: read, merged with a scale and checked before any work starts.

Imports nothing heavy: the workflow reads it whenever it plans. Names and parameters are
checked by :mod:`dpmc.experiments.config.crosschecks`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from dpmc.experiments.config.crosschecks import check_paper, listed
from dpmc.types import DpmcError


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
        paper = {"experiments": {}, "studies": {}, **paper}
        check_paper(paper, key, where)
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
                raise DpmcError(f"{where}: {key}: null removes it, allowed {listed(merged)}")
            del merged[key]
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value, f"{where}: {key}")
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def scales(root: Path | None = None) -> tuple[str, ...]:
    """Return the sorted names of the scales under `root`."""
    return _stems((root or Path()) / "config" / "scales")


def papers(root: Path | None = None) -> tuple[str, ...]:
    """Return the sorted keys of the papers under `root`."""
    return _stems((root or Path()) / "config" / "papers")


class _UniqueKeys(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML that refuses a key given twice, where the plain loader keeps the last.

    Keys are looked at as they are written: what a merge key (``<<``) adds may be given again.
    The compiled parser is used where PyYAML has it.
    """

    def get_single_node(self) -> yaml.Node | None:
        root: yaml.Node | None = super().get_single_node()
        waiting, looked_at = [root], set()
        while waiting:
            node = waiting.pop()
            if id(node) in looked_at:
                continue
            looked_at.add(id(node))
            if isinstance(node, yaml.SequenceNode):
                waiting.extend(node.value)
            elif isinstance(node, yaml.MappingNode):
                _check_keys(node)
                waiting.extend(value for _, value in node.value)
        return root


def _check_keys(node: yaml.MappingNode) -> None:
    seen: set[Any] = set()
    for key, _ in node.value:
        if key.value in seen:
            raise yaml.composer.ComposerError(
                None, None, f"key {key.value!r} is given twice", key.start_mark
            )
        seen.add(key.value)


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
        raise DpmcError(f"{kind}: {name!r}, allowed {listed(_stems(folder))}")
    return folder / f"{name}.yaml"


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
        return f"{prefix}unknown key {unknown[0]!r}, allowed {listed(allowed)}"
    if error.validator == "required":
        missing = next(key for key in limit if key not in value)
        return f"{prefix}{missing} is missing"
    phrases = {
        "enum": listed(limit) if isinstance(limit, list) else "",
        "minimum": f">= {limit}",
        "exclusiveMinimum": f"> {limit}",
        "maximum": f"<= {limit}",
        "exclusiveMaximum": f"< {limit}",
        "minItems": f"at least {limit}",
        "uniqueItems": "no entry twice",
    }
    told = schema.get("description") or phrases.get(str(error.validator), str(limit))
    return f"{prefix}{value!r}, allowed {told}"
