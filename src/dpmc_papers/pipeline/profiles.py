"""Files of a cluster's profile: found wherever the command is given and wherever the run works.

A profile is read before Snakemake has read its command or the workflow, so it looks at the
command itself. No result depends on this module.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from dpmc.types import DpmcError
from dpmc_papers.pipeline.cluster import Site, load_site

# Tells the rules, and the jobs of a run, which file the profile has read.
CHOSEN = "DPMC_SITE_FILE"
SITE = Path("profiles", "slurm", "site.yaml")
SYSTEM = Path("/etc/xdg/snakemake")


def site_of_profile() -> Site:
    """Return what is said of the cluster of a command of Snakemake, for its profile.

    The file is the first of these that is there: ``profiles/slurm/site.yaml`` of the folder that
    the run works in, ``site.yaml`` beside the profile, and that of the checkout. A line says so
    if none is.

    Raises
    ------
    DpmcError
        One line, if the file says something else.
    """
    told = _command()
    run, checkout = Path(told.directory).resolve(), _checkout(told)
    own = [] if run == checkout else [run / SITE]
    beside = [folder.resolve() / SITE.name for folder in _folders(told)]
    path = _first([*own, *beside, checkout / SITE])
    if path is None:
        os.environ.pop(CHOSEN, None)
        places = " or ".join(dict.fromkeys(map(str, (run, checkout))))
        _tell(
            f"{SITE}: not in {places}, nor beside the profile: account, partition, qos and limits "
            "are left to the cluster"
        )
        return Site()
    os.environ[CHOSEN] = str(path)
    return load_site(path)


def site_of_run(checkout: Path) -> Site:
    """Return what is said of the cluster, for the rules: as the profile has read it.

    Parameters
    ----------
    checkout : Path
        That of the workflow. Without a profile its file counts unless the folder that the run
        works in, which is the current one, has its own.

    Raises
    ------
    DpmcError
        One line, if the file says something else.
    """
    chosen = os.environ.get(CHOSEN)
    path = _first([Path(chosen)] if chosen else [SITE, checkout / SITE])
    return Site() if path is None else load_site(path)


def scripts(*names: str) -> list[str]:
    """Return the paths of scripts that are beside the profile that is being read.

    Raises
    ------
    DpmcError
        If a script is beside no profile of the command.
    """
    told, found = _command(), []
    for name in names:
        path = _first(folder.resolve() / name for folder in _folders(told))
        if path is None:
            raise DpmcError(f"{name}: must be beside the profile, got --profile {told.profile}")
        found.append(str(path))
    return found


def _command() -> argparse.Namespace:
    """Return what the command of this process says of folders; Snakemake judges the rest."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--directory", "-d", default=".")
    parser.add_argument("--snakefile", "-s", default="Snakefile")
    parser.add_argument("--profile", action="append")
    parser.add_argument("--workflow-profile")
    told, _ = parser.parse_known_args(sys.argv[1:])
    return told


def _checkout(told: argparse.Namespace) -> Path:
    return Path(told.snakefile).resolve().parent


def _folders(told: argparse.Namespace) -> Iterator[Path]:
    """Yield the folders of the profiles of a command, the last first: it counts most."""
    variable = os.environ.get("SNAKEMAKE_PROFILE")
    named = told.profile or ([variable] if variable else [])
    users = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "snakemake"
    for name in filter(None, [told.workflow_profile, *reversed(named)]):
        path = _first(place / name for place in (Path(), users, SYSTEM))
        if path is not None:
            yield path if path.is_dir() else path.parent


def _first(paths: Iterable[Path]) -> Path | None:
    """Return the first path that is there."""
    return next((path for path in paths if path.exists()), None)


@functools.cache
def _tell(line: str) -> None:
    """Write a line once: Snakemake reads a profile more than once."""
    print(f"dpmc: {line}", file=sys.stderr)
