"""Digests of all that a result depends on besides its settings: code, its script, packages."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from dpmc.numerics import source_digest
from dpmc.numerics.source_digest import (
    closure,
    file_digest,
    imported,
    module_digest,
    module_names,
    module_tree,
    short_digest,
    versions,
)
from dpmc.yaml_files import read_yaml
from dpmc_papers.config.settings import Paper
from dpmc_papers.pipeline.output_files import is_numbered

SCRIPTS = Path("workflow", "scripts")
# Logs, locks and the names of unfinished files: no result depends on it.
WITHOUT_EFFECT = {"_job"}
# What a script takes from them counts by itself: values of claims, and raw files by their content.
READERS = {
    "dpmc_papers.pipeline.raw_files",
    "dpmc_papers.verdicts.claim_file",
}
# They carry settings, which count by themselves, and find damaged files.
CARRIERS = {"dpmc_papers.pipeline.folders", "dpmc_papers.pipeline.jobs"}
# Functions of figures that show printed numbers of the document beside ours; numbered tables do.
SHOW_PRINTED = ("figure_networks", "figure_profiles", "figure_slopes")


@functools.cache
def code(root: Path, script: str, *modules: str, named: frozenset[str] = frozenset()) -> str:
    """Return the digest of a script, of modules, of what both import, and of package versions.

    `READERS` do not count where a script itself imports them, and `CARRIERS` nowhere. A module
    that looks others up by their names says so in a constant ``LOOKED_UP``, a list of packages:
    all modules in them count whose name the settings or the code mention.

    Parameters
    ----------
    root : Path
        Folder that holds ``workflow/``. The script of a folder without it counts as empty.
    script : str
        Name of the script that makes the result.
    *modules : str
        Dotted names of what it looks up.
    named : frozenset of str
        All strings of its settings.

    Returns
    -------
    str

    Raises
    ------
    DpmcError
        If a module is missing or a file is not Python.
    """
    every = _with_looked_up((*modules, *_of_package(root, script)), named)
    return short_digest([script_digest(root, script), _modules_digest(every), versions(*every)])


@functools.cache
def _modules_digest(names: tuple[str, ...]) -> str:
    counted = {name: module_digest(name) for name in closure(*names) if name not in CARRIERS}
    return short_digest(counted)


@functools.cache
def code_about(
    package: str, *modules: str, named: frozenset[str] = frozenset(), without: frozenset[str]
) -> str:
    """Return the digest of modules and of what they reach that is of `package` or imports of it.

    Enough for what that package alone decides: no other code counts, nor do versions of others'
    packages.

    Parameters
    ----------
    package : str
        Dotted name.
    *modules, named
        See `code`.
    without : frozenset of str
        Modules of the package that decide nothing.

    Returns
    -------
    str

    Raises
    ------
    DpmcError
        If a module is missing or is not Python.
    """
    reached = closure(*_with_looked_up(modules, named))
    about = {name for name in reached if name.startswith(f"{package}.")} - without
    counted = [
        name
        for name in reached
        if name in about or name in modules or (name not in without and about & {*imported(name)})
    ]
    return short_digest({name: module_digest(name) for name in counted})


def _with_looked_up(modules: tuple[str, ...], named: frozenset[str]) -> tuple[str, ...]:
    """Return modules, and those that they or what they import look up, see `code`."""
    used: set[str] = set()
    while more := set(_looked_up(closure(*modules, *used), named)) - used:
        used |= more
    return (*modules, *sorted(used))


@functools.cache
def _of_package(root: Path, script: str) -> tuple[str, ...]:
    """Return the modules of the package that a script and its helpers import and that count."""
    path = root / SCRIPTS / f"{script}.py"
    files = (path, *_helpers(path)) if path.is_file() else ()
    found = {name for file in files for name in imports_of(file)}
    return tuple(sorted(name for name in found - READERS - CARRIERS if _is_module(name)))


def _is_module(name: str) -> bool:
    """Return whether a name is one of a module or package inside of this package."""
    head, *rest = name.split(".")
    place = source_digest.ROOT.joinpath(head, *rest)
    files = (place.with_suffix(".py"), place / "__init__.py")
    return head in source_digest.PACKAGES and bool(rest) and any(file.is_file() for file in files)


@functools.cache
def script_digest(root: Path, script: str) -> str:
    """Return the digest of a script and of the helpers that it imports from its folder."""
    path = root / SCRIPTS / f"{script}.py"
    return file_digest(path, *_helpers(path)) if path.is_file() else ""


def content_digest(*paths: Path) -> str:
    """Return the digest of the contents of text files; one that is missing counts as empty.

    Of YAML files the values count, in their order, and not how they are written.
    """
    total = hashlib.sha256()
    for path in paths:
        content = path.read_bytes() if path.is_file() else b""
        digest = hashlib.sha256(content).digest()
        if path.suffix == ".yaml" and content:
            digest = _values_digest(path, digest)
        total.update(digest)
    return total.hexdigest()[:8]


@functools.cache
def _values_digest(path: Path, content: bytes) -> bytes:
    """Return the digest of the values of a YAML file, read once for each digest of its content."""
    return hashlib.sha256(json.dumps(read_yaml(path)).encode()).digest()


def texts(root: Path, paper: Paper, output: str) -> list[Path]:
    """Return the files besides results that verdicts, a page, a figure or a table is made from."""
    if output == "verdict" or shows_printed(paper, output):
        return [root / "config" / "published" / f"{paper.paper}.yaml"]
    if output == "page":
        captions = sorted({entry.caption for entry in paper.outputs.values()})
        shown = [root / "workflow" / "report" / caption for caption in captions]
        return [*shown, root / "docs" / f"{paper.paper}.md", *site_parts()]
    return []


def shows_printed(paper: Paper, output: str) -> bool:
    """Return whether a figure or table shows printed numbers of the document beside ours."""
    entry = paper.outputs.get(output)
    if entry is None:
        return False
    return entry.function in SHOW_PRINTED or (entry.kind == "table" and is_numbered(output))


def site_parts() -> list[Path]:
    """Return what all pages of the site share."""
    docs = source_digest.ROOT.parent / "docs"
    return [docs / "conf.py", *sorted((docs / "static").glob("*.*"))]


def _helpers(path: Path) -> list[Path]:
    """Return the files of its own folder that a script imports, and those that these import."""
    reached: dict[Path, None] = {}
    waiting = [path]
    while waiting:
        for name in imports_of(waiting.pop()):
            helper = path.with_name(f"{name}.py")
            if name not in WITHOUT_EFFECT and helper.is_file() and helper not in reached:
                reached[helper] = None
                waiting.append(helper)
    return sorted(reached)


@functools.cache
def imports_of(path: Path) -> tuple[str, ...]:
    """Return the names of what a file imports: modules, and what it takes from them."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.append(node.module or "")
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(found)


def strings(value: object) -> frozenset[str]:
    """Return all strings in nested mappings and sequences, keys too."""
    found: set[str] = set()
    waiting = [value]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, str):
            found.add(entry)
        elif isinstance(entry, list | tuple):
            waiting.extend(entry)
        elif isinstance(entry, Mapping):
            waiting.extend(entry.keys())
            waiting.extend(entry.values())
    return frozenset(found)


def _looked_up(reached: tuple[str, ...], named: frozenset[str]) -> Iterator[str]:
    """Yield the modules that others look up and that the code or the settings mention."""
    for package in sorted({package for name in reached for package in _packages(name)}):
        for member in module_names(package):
            # A name in settings may go on with a parameter, after an underscore.
            in_settings = any(f"{word}_".startswith(f"{member}_") for word in named)
            if in_settings or member in _mentioned(reached):
                yield f"{package}.{member}"


@functools.cache
def _mentioned(reached: tuple[str, ...]) -> frozenset[str]:
    """Return all strings in the code of modules."""
    return frozenset().union(*map(_constants, reached))


@functools.cache
def _packages(name: str) -> tuple[str, ...]:
    for node in module_tree(name).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LOOKED_UP":
            return tuple(ast.literal_eval(node.value))
    return ()


@functools.cache
def _constants(name: str) -> frozenset[str]:
    nodes = ast.walk(module_tree(name))
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    return frozenset(value for value in constants if isinstance(value, str))
