"""Limits of a cluster, groups of its jobs, and whom to ask about them.

No result depends on this module.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import subprocess
import sys
from collections.abc import Callable, Collection, MutableMapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from msgspec import Meta

from dpmc.types import DpmcError
from dpmc.yaml_files import Settings, read_typed
from dpmc_papers.config.settings import Count

T = TypeVar("T")

# The group that all submissions belong to; the profile of a cluster says how many of its jobs
# may be joined. Without that every job goes alone.
BATCH = "batch"
MANY = 1000
# A submission has at least the three jobs of a problem, of two minutes each.
LEAST_LIMIT = 10
# The executor asks at most this many seconds apart, and what it misses it waits for for ever.
LONGEST_SILENCE = 180
SECONDS_TO_ANSWER = 60
ACCOUNTING = ("sacct", "--allocations", "--noheader", "--format=JobIDRaw,State")
MIN_JOB_AGE = re.compile(r"^MinJobAge\s*=\s*(\d+)", re.MULTILINE)

Text = Annotated[str | int, Meta(description="a name")]
Minutes = Annotated[int, Meta(ge=LEAST_LIMIT, description=f"an integer >= {LEAST_LIMIT}")]


class Site(Settings, frozen=True):
    """What differs from one cluster to the next; None leaves it to the cluster.

    Parameters
    ----------
    account : str, optional
        Who pays.
    partition : str, optional
        Where jobs go.
    qos : str, optional
        The quality of service that they ask for.
    largest_memory_mb : int, optional
        Memory of the largest node, in megabytes.
    longest_minutes : int, optional
        The longest time limit that the partition allows.
    """

    account: Text | None = None
    partition: Text | None = None
    qos: Text | None = None
    largest_memory_mb: Count | None = None
    longest_minutes: Minutes | None = None


def load_site(path: Path | str) -> Site:
    """Read the description of a site; one that is missing leaves everything to the cluster.

    Raises
    ------
    DpmcError
        One line, if it says something else.
    """
    return read_typed(Path(path), Site, nulls=True) if Path(path).exists() else Site()


def or_stop(function: Callable[..., T], *arguments: Any) -> T:
    """Return what a function does, or end this process with one line, as a profile must."""
    try:
        return function(*arguments)
    except DpmcError as error:
        sys.exit(f"dpmc: {error}")


def join(workflow: Any, name: Callable[[], str]) -> str | None:
    """Return the group of the jobs that are submitted together, None for each alone.

    Snakemake joins jobs that do not depend on each other only by ``--group-components``, which
    knows groups by the names that are written in rules. A computed name is made a child of the
    group ``batch``. On a node the jobs of a submission are one group again: the executor
    does not hand the option on, and each job would start Snakemake once more.

    This and `mend_targets` alone use attributes of a workflow that Snakemake does not document:
    here ``remote_exec``, ``group_settings`` and ``parent_groupids``. Where one is missing or has
    another form every job is submitted alone, and a line says so.

    Parameters
    ----------
    workflow : snakemake.workflow.Workflow
    name : callable
        Returns the name of the submission; it is not called where nothing joins jobs.
    """
    try:
        settings = workflow.group_settings
        components = settings.group_components
        if workflow.remote_exec:
            if components.get(BATCH, 1) < MANY:
                workflow.group_settings = dataclasses.replace(
                    settings, group_components={BATCH: MANY}
                )
            return BATCH
        if components.get(BATCH, 1) < 2:
            return None
        parents = workflow.parent_groupids
        if not isinstance(parents, MutableMapping):
            raise TypeError(f"parent_groupids is a {type(parents).__name__}")
    except (AttributeError, TypeError) as error:
        _tell(f"this version of Snakemake joins no jobs ({error}): each is submitted alone")
        return None
    parents[(group := name())] = BATCH
    return group


def mend_targets(workflow: Any, names: Collection[str]) -> None:
    """Let a node put values of wildcards together again that have commas.

    Snakemake hands the wildcards of a job to a node separated by commas, and the node divides
    ``point=eps=4,clip_bound=1`` into two wildcards. They are mended when it asks for the rule of
    the job, which is before it makes the job; of what Snakemake does not document this uses
    ``remote_exec``, ``get_rule`` and ``dag_settings``. Without them nothing is changed.

    Parameters
    ----------
    workflow : snakemake.workflow.Workflow
    names : collection of str
        All wildcards of the workflow: what is named otherwise belongs to the one before it.
    """
    find = getattr(workflow, "get_rule", None)
    if find is None or not getattr(workflow, "remote_exec", False):
        return

    def get_rule(name: str) -> Any:
        for spec in getattr(workflow.dag_settings, "target_jobs", ()):
            _mend(spec.wildcards_dict, names)
        return find(name)

    workflow.get_rule = get_rule


def _mend(wildcards: dict[str, str], names: Collection[str]) -> None:
    last = ""
    for key, value in list(wildcards.items()):
        if key in names:
            last = key
        elif last:
            wildcards[last] += f",{key}={value}"
            del wildcards[key]


def status_command() -> str:
    """Return the command of SLURM that tells the states of jobs here: ``sacct`` or ``squeue``.

    ``sacct`` knows every job, but only where SLURM keeps accounts. Where no SLURM answers, as for
    a dry run elsewhere, it is ``sacct``.

    Raises
    ------
    DpmcError
        If SLURM keeps no accounts, and forgets jobs before the executor asks for them.
    """
    if _answer(*ACCOUNTING) is not None:
        return "sacct"
    told = _answer("scontrol", "show", "config")
    if told is None:
        return "sacct"
    found = MIN_JOB_AGE.search(told)
    if not found or int(found[1]) <= LONGEST_SILENCE:
        raise DpmcError(
            f"`MinJobAge` of a SLURM that keeps no accounts must be > {LONGEST_SILENCE} seconds, "
            f"got {found[1] if found else None}: --profile profiles/generic needs neither"
        )
    return "squeue"


def _answer(*command: str) -> str | None:
    """Return what a command prints, None if it fails."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=SECONDS_TO_ANSWER,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


@functools.cache
def _tell(line: str) -> None:
    """Write a line once."""
    print(f"dpmc: {line}", file=sys.stderr)
