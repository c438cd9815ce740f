"""Sentences of a document that can be tested, each with the claims that judge it or a reason."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dpmc.types import DpmcError

NEEDED = ("where", "says")
ONE_OF = ("rows", "instead")
TEST = re.compile(r"(tests/[\w/]+\.py)(?:::(\w+))?")


@dataclass(frozen=True)
class Sentence:
    """One sentence of a document, in words of our own.

    Parameters
    ----------
    where : str
        Its place.
    says : str
    rows : tuple of str
        Ids of the entries and series of the file of claims that judge it.
    instead : str
        Where none can: why, or which test shows it.
    """

    where: str
    says: str
    rows: tuple[str, ...] = ()
    instead: str = ""

    @property
    def tests(self) -> tuple[tuple[str, str], ...]:
        """File and function of every test that `instead` names; "" for no function."""
        return tuple(TEST.findall(self.instead))


def load(path: Path | str) -> tuple[Sentence, ...]:
    """Read the sentences of a document.

    Parameters
    ----------
    path : Path or str
        A YAML file: a list of mappings with the keys `where`, `says` and one of `rows` and
        `instead`.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        entries, tree = yaml.safe_load(text), yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as error:
        raise DpmcError(f"{path}: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise DpmcError(f"{path}: line {line}, {error.problem}") from None
    if not isinstance(tree, yaml.SequenceNode) or not entries:
        raise DpmcError(f"{path}: must be a list of sentences, got {type(entries).__name__}")
    seen: set[tuple[str, str]] = set()
    for entry, node in zip(entries, tree.value, strict=True):
        line = node.start_mark.line + 1
        for fault in _faults(entry, node):
            raise DpmcError(f"{path}: line {line}, {fault}")
        if (entry["where"], entry["says"]) in seen:
            raise DpmcError(f"{path}: line {line}, the sentence {entry['says']!r} is given twice")
        seen.add((entry["where"], entry["says"]))
    return tuple(
        Sentence(e["where"], e["says"], tuple(e.get("rows", ())), e.get("instead", ""))
        for e in entries
    )


def check(sentences: Collection[Sentence], ids: Collection[str], where: str) -> None:
    """Refuse sentences and claims that do not name each other.

    Parameters
    ----------
    sentences : collection of Sentence
    ids : collection of str
        Of the entries and series of the file of claims.
    where : str
        What the file of sentences is called in messages.
    """
    named = {name for sentence in sentences for name in sentence.rows}
    for name in sorted(named - set(ids)):
        close = difflib.get_close_matches(name, ids, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise DpmcError(
            f"{where}: `rows` must name entries of the file of claims, got {name!r}{hint}"
        )
    for name in sorted(set(ids) - named):
        raise DpmcError(f"{where}: entry {name!r} of the file of claims is named by no sentence")


def _faults(entry: Any, node: yaml.Node) -> Iterator[str]:
    if not isinstance(entry, dict):
        yield f"a sentence must be a mapping, got {entry!r}"
    keys = [key.value for key, _ in node.value]
    for key in keys:
        if key not in (*NEEDED, *ONE_OF):
            yield f"a key must be one of {', '.join((*NEEDED, *ONE_OF))}, got {key!r}"
        if keys.count(key) > 1:
            yield f"`{key}` is given twice"
    for key in NEEDED:
        if key not in entry:
            yield f"`{key}` is missing"
    if sum(key in entry for key in ONE_OF) != 1:
        yield "one of `rows` and `instead` must be given"
    for key in entry:
        value = entry[key]
        listed = value if key == "rows" and isinstance(value, list) else [value]
        if key == "rows" and (not isinstance(value, list) or not value):
            yield f"`rows` must be a list of ids, got {value!r}"
        if not all(isinstance(part, str) and part.strip() for part in listed):
            yield f"`{key}` must be text, got {value!r}"
    rows = entry.get("rows", [])
    if len(set(rows)) < len(rows):
        yield f"`rows` must name every id once, got {rows!r}"
