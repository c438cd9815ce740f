"""The planted bugs, read from `bugs/*.yaml` and checked against the source that they change."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SOURCES = Path("src")
KEYS = {"id", "file", "find", "replace", "why", "tests"}


@dataclass(frozen=True)
class Bug:
    """One planted bug.

    Parameters
    ----------
    id : str
        Unique name.
    area : str
        Name of the file that lists it.
    file : str
        Path of the changed file below ``src``.
    find, replace : str
        Text that occurs there exactly once, and what takes its place.
    why : str
        Why the bug matters.
    tests : tuple of str
        Test ids that pytest takes; at least one of them must fail.
    """

    id: str
    area: str
    file: str
    find: str
    replace: str
    why: str
    tests: tuple[str, ...]

    def planted(self, source: str) -> str:
        """Return `source` with the bug.

        Raises
        ------
        ValueError
            If the text does not occur exactly once, or nothing changes, or the result is not
            Python.
        """
        count = source.count(self.find)
        if count != 1:
            raise ValueError(f"{self.id}: `find` occurs {count} times in {self.file}, allowed once")
        mutant = source.replace(self.find, self.replace)
        try:
            unchanged = ast.dump(ast.parse(mutant)) == ast.dump(ast.parse(source))
        except SyntaxError as error:
            raise ValueError(f"{self.id}: `replace` gives no Python: {error}") from None
        if unchanged:
            raise ValueError(f"{self.id}: `replace` changes nothing that runs")
        return mutant


def read(folder: Path = HERE / "bugs") -> tuple[Bug, ...]:
    """Return all planted bugs, area by area.

    Raises
    ------
    ValueError
        If an entry lacks a key or has another one, or an id is given twice.
    """
    bugs: dict[str, Bug] = {}
    for path in sorted(folder.glob("*.yaml")):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
            bug = _bug(entry, path)
            if bug.id in bugs:
                raise ValueError(f"{path.name}: id {bug.id!r} is given twice")
            bugs[bug.id] = bug
    return tuple(bugs.values())


def _bug(entry: dict[str, Any], path: Path) -> Bug:
    if set(entry) != KEYS:
        wrong = ", ".join(sorted(set(entry) ^ KEYS))
        raise ValueError(f"{path.name}: {entry.get('id')}: keys missing or unknown: {wrong}")
    texts = {key: str(entry[key]) for key in KEYS - {"tests"}}
    if not entry["tests"]:
        raise ValueError(f"{path.name}: {entry['id']}: no tests, allowed one or more")
    return Bug(area=path.stem, tests=tuple(entry["tests"]), **texts)


def problems(bugs: tuple[Bug, ...], root: Path = ROOT) -> Iterator[str]:
    """Yield what keeps a bug from being planted, or its tests from being found.

    Of a text that has moved to another file of the package, the new place is named.
    """
    for bug in bugs:
        path = root / SOURCES / bug.file
        source = path.read_text(encoding="utf-8") if path.is_file() else ""
        try:
            bug.planted(source)
        except ValueError as error:
            homes = _homes(bug, root) if bug.find not in source else []
            yield f"{error}" + (f"; it is in {', '.join(homes)}" if homes else "")
        for test in bug.tests:
            if not _is_test(root, test):
                yield f"{bug.id}: no test {test}"


def _homes(bug: Bug, root: Path) -> list[str]:
    package = root / SOURCES
    return [
        path.relative_to(package).as_posix()
        for path in sorted(package.rglob("*.py"))
        if bug.find in path.read_text(encoding="utf-8")
    ]


def _is_test(root: Path, test: str) -> bool:
    """Return whether a test id names a file and a function that exist, parameters aside."""
    name, *inner = test.partition("[")[0].split("::")
    path = root / name
    if not path.is_file():
        return False
    body: list[Any] = ast.parse(path.read_text(encoding="utf-8")).body
    for part in inner:
        named = [node for node in body if getattr(node, "name", None) == part]
        if not named:
            return False
        body = getattr(named[0], "body", [])
    return True


def sample(bugs: tuple[Bug, ...], size: int, commit: str) -> tuple[Bug, ...]:
    """Return `size` bugs that depend on the commit alone; an unknown one is an empty text."""
    return tuple(
        sorted(bugs, key=lambda bug: sha256(f"{commit} {bug.id}".encode()).digest())[:size]
    )
