"""The YAML configuration: read, merged with a scale and checked before any work starts.

What is read is checked against the schemas of :mod:`dpmc.experiments.config.settings`, whose frozen
types it becomes; names and parameters are checked by
:mod:`dpmc.experiments.config.crosschecks`.
"""

from __future__ import annotations

import copy
import functools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import jsonschema
import msgspec
import yaml

from dpmc.experiments.config import settings
from dpmc.experiments.config.crosschecks import check_paper
from dpmc.experiments.config.settings import Paper, RunSettings, Scale, Settings
from dpmc.registry import listed, refusal
from dpmc.types import DpmcError

T = TypeVar("T", bound=Settings)


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
    papers : mapping of str to Paper
        The settings of each paper, by its key.
    root : Path
        Folder that holds ``config/`` and ``workflow/``.
    """

    scale: str
    results_dir: str
    seeds_per_job: int
    seconds_per_job: float
    papers: Mapping[str, Paper]
    root: Path = Path()


def load_config(source: Mapping[str, Any] | Path, root: Path | None = None) -> Config:
    """Read a configuration, the scale and the papers that it names.

    Parameters
    ----------
    source : mapping or Path
        The contents of ``config/config.yaml``, or its path.
    root : Path, optional
        Folder that holds ``config/``; the current one by default.

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
        values["papers"] = [key.strip() for key in values["papers"].split(",")]
    run = _typed(values, RunSettings, where)
    scale_path = _known(root / "config" / "scales", "scale", run.scale)
    scale = read_typed(scale_path, Scale)
    papers = {}
    for key in run.papers:
        path = _known(root / "config" / "papers", "papers", key)
        where = f"{path} (scale {run.scale})"
        merged = merge(read_yaml(path), scale.papers.get(key, {}), where)
        paper = _typed(settings.whole(merged), Paper, where)
        check_paper(paper, key, where)
        papers[key] = msgspec.structs.replace(paper, shared={})
    return Config(
        scale=run.scale,
        results_dir=run.results_dir.rstrip("/"),
        seeds_per_job=run.seeds_per_job or scale.seeds_per_job,
        seconds_per_job=scale.seconds_per_job,
        papers=papers,
        root=root,
    )


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds one mapping.

    Raises
    ------
    DpmcError
        If the file is missing, is not YAML in UTF-8, repeats a key or holds no mapping.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DpmcError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DpmcError(f"{path}: line {line}, must be text in UTF-8, got other bytes") from None
    if control := yaml.reader.Reader.NON_PRINTABLE.search(text):
        line, code = text.count("\n", 0, control.start()) + 1, ord(control[0])
        raise DpmcError(f"{path}: line {line}, must hold no control character, got U+{code:04X}")
    try:
        values = yaml.load(text, Loader=_UniqueKeys)
        json.dumps(values, default=str, skipkeys=True)  # a list may hold itself
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}, " if error.problem_mark else ""
        raise DpmcError(f"{path}: {where}{error.problem}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split())  # of PyYAML, such as 2026-02-30 brings about
        raise DpmcError(f"{path}: must hold values that YAML can read, got {reason}") from None
    if not isinstance(values, dict):
        raise DpmcError(f"{path}: must be a mapping, got a {type(values).__name__}")
    return values


def read_typed(path: Path, kind: type[T], nulls: bool = False) -> T:
    """Read a YAML file as a frozen value, checked against the schema of its type.

    Parameters
    ----------
    path : Path
    kind : type
    nulls : bool
        Whether null may stand for a key that is left out.

    Raises
    ------
    DpmcError
        One line: the file and key, what is allowed, and the value.
    """
    values = read_yaml(path)
    if nulls:
        values = {key: value for key, value in values.items() if value is not None}
    return _typed(values, kind, str(path))


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
                wanted = f"one of {listed(merged)}, to be removed by null"
                raise DpmcError(f"{where}: {refusal('key', wanted, key, merged)}")
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
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.composer.ComposerError(
                None, None, "a key must be a text or a number", key.start_mark
            )
        if key.value in seen:
            raise yaml.composer.ComposerError(
                None, None, f"key {key.value!r} is given twice", key.start_mark
            )
        seen.add(key.value)


def _stems(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in folder.glob("*.yaml")))


def _known(folder: Path, kind: str, name: str) -> Path:
    known = _stems(folder)
    if name not in known:
        raise DpmcError(refusal(kind, f"one of {listed(known)}", name, known))
    return folder / f"{name}.yaml"


def _typed(values: Mapping[str, Any], kind: type[T], where: str) -> T:
    """Return values as a frozen value, refusing what its schema does in one line."""
    for path, value in _numbers(values):
        if not math.isfinite(value):
            raise DpmcError(f"{where}: {refusal(path, 'a finite number', value)}")
    errors = sorted(_validator(kind).iter_errors(values), key=lambda e: list(map(str, e.path)))
    if errors:
        raise DpmcError(f"{where}: {_one_line(errors[0])}")
    return settings.typed(values, kind)


@functools.cache
def _validator(kind: type[Settings]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(settings.schema(kind))


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield path, value
    elif isinstance(value, Mapping | list):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, entry in items:
            yield from _numbers(entry, f"{path}.{key}" if path else str(key))


def _one_line(error: jsonschema.ValidationError) -> str:
    schema = error.schema if isinstance(error.schema, dict) else {}
    path = ".".join(map(str, error.absolute_path))
    value: Any = error.instance
    limit: Any = error.validator_value
    if error.validator in ("additionalProperties", "required"):
        allowed = schema.get("properties", {})
        if error.validator == "required":
            missing = next(key for key in limit if key not in value)
            return refusal(f"{path}.{missing}" if path else missing, "given", None)
        unknown = min(set(map(str, value)) - set(allowed))
        wanted = f"a key of {path}" if path else "a key"
        return refusal(unknown, f"{wanted} ({listed(allowed)})", None, allowed)
    phrases = {
        "enum": f"one of {listed(limit)}" if isinstance(limit, list) else "",
        "type": {"object": "a mapping", "array": "a list"}.get(str(limit), f"of type {limit}"),
        "minProperties": "a mapping that is not empty",
    }
    # The description of a type says what it is for, that of a value what it must be.
    wanted = "" if "title" in schema else schema.get("description", "")
    wanted = wanted or phrases.get(str(error.validator)) or f"{error.validator} {limit}"
    choices = limit if error.validator == "enum" else ()
    return refusal(path or str(value), wanted, value, choices)
