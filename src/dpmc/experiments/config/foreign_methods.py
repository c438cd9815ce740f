"""Methods of somebody else: a YAML file of commands, read, checked, and joined into the league."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from dpmc.experiments.config import reader
from dpmc.experiments.config.crosschecks import check_paper
from dpmc.experiments.config.reader import Config
from dpmc.experiments.config.settings import (
    Name,
    Names,
    Paper,
    Positive,
    Settings,
    Study,
    StudyMethod,
)
from dpmc.numerics.source_digest import module_names
from dpmc.registry import listed, refusal
from dpmc.types import DpmcError

if TYPE_CHECKING:
    from dpmc.league.foreign import Foreign

RIVALS = "dpmc.league.rivals"
# The document, its study of our methods, and that of commands which outputs also read.
PAPER, OURS, COMMANDS = "league", "table", "commands"
# The study of the commands of the file.
THEIRS = "yours"
STUDY, METHOD, VARIANT = "league_commands", "foreign", "as_published"


class ForeignMethod(Settings, frozen=True):
    """A command that takes part in the league, on some of its tasks or on all."""

    command: Annotated[
        list[Annotated[str, Meta(min_length=1, description="a text")]],
        Meta(min_length=1, description="a list of texts"),
    ]
    time_limit: Positive | None = None
    many: bool | None = None
    tasks: Annotated[Names, Meta(min_length=1)] | None = None

    def given(self, folder: Path) -> dict[str, Any]:
        """Return what :class:`dpmc.league.foreign.Foreign` is told, without what is its default."""
        others = {"time_limit": self.time_limit, "many": self.many}
        told = {name: value for name, value in others.items() if value is not None}
        return {"command": self.command, **told, "folder": str(folder)}


class ForeignFile(Settings, frozen=True):
    """A file of commands, which run in its folder."""

    methods: Annotated[dict[Name, ForeignMethod], Meta(min_length=1)]


def commands(path: Path) -> dict[str, Foreign]:
    """Return the commands of a file by their names.

    Raises
    ------
    DpmcError
        One line: what is wrong with the file.
    """
    from dpmc.league.foreign import Foreign  # a run of other documents needs nothing of it

    return {name: Foreign(**one.given(path.parent)) for name, one in _read(path).items()}


def load_config(values: Mapping[str, Any], root: Path) -> Config:
    """Return the configuration of a run, of whose keys ``methods`` names a file of commands.

    Parameters
    ----------
    values : mapping
        As for :func:`dpmc.experiments.config.reader.load_config`, and ``methods``.
    root : Path

    Raises
    ------
    DpmcError
        One line: what is wrong with the configuration or with the file.
    """
    given = dict(values)
    methods = given.pop("methods", None)
    config = reader.load_config(given, root)
    if methods is None:
        return config
    if not isinstance(methods, str):
        raise DpmcError(f"config: {refusal('methods', 'the path of a YAML file', methods)}")
    if PAPER not in config.papers:
        wanted = f"given beside papers that hold {PAPER}"
        raise DpmcError(f"config: {refusal('methods', wanted, methods)}")
    path = Path(methods)
    paper = _joined(config.papers[PAPER], path)
    check_paper(paper, PAPER, str(path))
    return Config(
        scale=config.scale,
        results_dir=config.results_dir,
        seeds_per_job=config.seeds_per_job,
        seconds_per_job=config.seconds_per_job,
        papers={**config.papers, PAPER: paper},
        root=config.root,
    )


def _read(path: Path) -> dict[str, ForeignMethod]:
    return reader.read_typed(path, ForeignFile).methods


def _joined(paper: Paper, path: Path) -> Paper:
    """Return the league with the commands of a file beside all others."""
    ours, found = paper.studies[OURS], _read(path)
    taken = {
        *module_names(RIVALS),
        *(name for study in paper.studies.values() for name in study.methods),
    }
    for name, one in found.items():
        if name in taken:
            wanted = f"a name that no method of the league has ({listed(taken)})"
            raise DpmcError(f"{path}: {refusal(f'methods.{name}', wanted, name)}")
        for task in one.tasks or ():
            if task not in ours.problems:
                wanted = f"tasks of this run ({listed(ours.problems)})"
                where = f"methods.{name}.tasks"
                raise DpmcError(f"{path}: {refusal(where, wanted, task, ours.problems)}")
    theirs = Study(
        study=STUDY,
        problems=ours.problems,
        replicates=ours.replicates,
        grid=ours.grid,
        params=ours.params,
        runs_per_job=ours.runs_per_job,
        methods={
            name: StudyMethod(
                method=METHOD,
                variant=VARIANT,
                problems=one.tasks,
                params=one.given(path.parent),
            )
            for name, one in found.items()
        },
    )
    outputs = {
        name: msgspec.structs.replace(entry, metrics=[*entry.metrics, THEIRS])
        if COMMANDS in entry.metrics
        else entry
        for name, entry in paper.outputs.items()
    }
    return msgspec.structs.replace(
        paper, studies={**paper.studies, THEIRS: theirs}, outputs=outputs
    )
