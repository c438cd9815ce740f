"""Stand-in for conda: environments of exactly what a file names, linked from that of the tests.

It knows the few commands that Snakemake gives. Packages that another needs come with it, as conda
would do, and nothing else does.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import venv
from importlib import metadata
from pathlib import Path

import yaml

# Of conda-forge, where another name is in use than on the index of Python.
NAMES = {"matplotlib-base": "matplotlib"}
NAME = re.compile(r"[A-Za-z0-9._-]+")
ACTIVATE = 'export PATH="$1/bin:$PATH"\n'


def install(folder: Path) -> Path:
    """Write the command to a folder, and return the folder of its programs."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    (programs / "activate").write_text(ACTIVATE)
    command = programs / "conda"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} {folder} "$@"\n')
    command.chmod(0o755)
    return programs


def named(file: Path) -> set[str]:
    """Return the distributions that a file of an environment names."""
    entries = yaml.safe_load(file.read_text(encoding="utf-8"))["dependencies"]
    by_pip = [text for entry in entries if isinstance(entry, dict) for text in entry["pip"]]
    plain = [entry for entry in entries if isinstance(entry, str)]
    found = {match[0] for text in plain + by_pip if (match := NAME.match(text))}
    return {NAMES.get(name, name) for name in found - {"python", "pip"}}


def with_needed(names: set[str]) -> set[str]:
    """Return distributions and those that they need, without extras."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        for text in metadata.requires(name) or ():
            match = NAME.match(text)
            if match and "extra ==" not in text and is_here(match[0]):
                waiting |= {match[0]} - found
    return found


def is_here(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def create(file: Path, prefix: Path) -> None:
    """Make an environment: links to all that the files of its distributions are in."""
    venv.create(prefix, with_pip=False)
    (place,) = prefix.glob("lib/python*/site-packages")
    for name in with_needed(named(file)):
        paths = metadata.files(name) or ()
        for top in {path.parts[0] for path in paths} - {"..", "__pycache__"}:
            source = Path(str(metadata.distribution(name).locate_file(top)))
            if source.exists() and not (place / top).exists():
                (place / top).symlink_to(source)


def main() -> int:
    home, *arguments = sys.argv[1:]
    match arguments:
        case ["info", "--json"]:
            print(json.dumps({"conda_prefix": home, "platform": "linux-64"}))
        case ["--version"]:
            print("conda 99.0.0")
        case ["config", "--get", *_]:
            print(json.dumps({"get": {"channel_priority": "strict"}}))
        case ["config" | "clean", *_]:
            pass
        case ["env", "create", *rest]:
            options = dict(itertools.pairwise(rest))
            create(Path(options["--file"]), Path(options["--prefix"]))
        case _:
            print(f"the stand-in does not know {arguments}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
