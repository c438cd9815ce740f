"""YAML files read as frozen types: one line refuses what is no YAML, unknown, missing or wrong."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import yaml
from msgspec import Struct

from dpmc.registry import listed, refusal
from dpmc.types import DpmcError

if TYPE_CHECKING:
    import jsonschema


class Settings(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A mapping of the YAML files."""


T = TypeVar("T", bound=Settings)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds one mapping."""
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
    """
    values = read_yaml(path)
    if nulls:
        values = {key: value for key, value in values.items() if value is not None}
    return checked(values, kind, str(path))


def schema(kind: type[Settings]) -> dict[str, Any]:
    """JSON schema of a type. Null stands for no value where it says so alone."""
    made: dict[str, Any] = _without_null(msgspec.json.schema(kind))
    return made


def typed(values: Mapping[str, Any], kind: type[T]) -> T:
    """Checked values as a frozen value.

    Raises
    ------
    msgspec.ValidationError
        If they are not of that type.
    """
    return msgspec.convert(values, kind)


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


def checked(values: Mapping[str, Any], kind: type[T], where: str) -> T:
    """Values as a frozen value, refusing what its schema does in one line."""
    for path, value in _numbers(values):
        if not math.isfinite(value):
            raise DpmcError(f"{where}: {refusal(path, 'a finite number', value)}")
    errors = sorted(_validator(kind).iter_errors(values), key=lambda e: list(map(str, e.path)))
    if errors:
        raise DpmcError(f"{where}: {_one_line(errors[0])}")
    return typed(values, kind)


@functools.cache
def _validator(kind: type[Settings]) -> jsonschema.Draft202012Validator:
    import jsonschema  # of no use to a job, whose run has checked its settings

    return jsonschema.Draft202012Validator(schema(kind))


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


def _without_null(schema: Any) -> Any:
    """Take null out of the alternatives of a property that may be left out."""
    if isinstance(schema, list):
        return [_without_null(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _without_null(entry) for key, entry in schema.items() if key != "default"}
    if "anyOf" in kept and "description" not in kept:
        choices = [entry for entry in kept.pop("anyOf") if entry != {"type": "null"}]
        return {**kept, **(choices[0] if len(choices) == 1 else {"anyOf": choices})}
    return kept
