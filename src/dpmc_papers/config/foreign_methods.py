"""Commands of a YAML file joined into the league: methods of somebody else in a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from dpmc.numerics.source_digest import module_names
from dpmc.registry import listed, refusal
from dpmc.types import DpmcError
from dpmc_papers.config import reader
from dpmc_papers.config.crosschecks import check_paper
from dpmc_papers.config.reader import Config
from dpmc_papers.config.settings import Paper, Study, StudyMethod

RIVALS = "dpmc_league.rivals"
# The document, its study of our methods, and that of commands which outputs also read.
PAPER, OURS, COMMANDS = "league", "table", "commands"
# The study of the commands of the file.
THEIRS = "yours"
STUDY, METHOD, VARIANT = "league_commands", "foreign", "as_published"


def load_config(values: Mapping[str, Any], root: Path, *, check: bool = True) -> Config:
    """Configuration of a run, of whose keys ``methods`` may name a file of commands.

    It is :func:`dpmc_papers.config.reader.load_config` but for that; `check` is false for a job,
    whose run has checked it.
    """
    given = dict(values)
    methods = given.pop("methods", None)
    config = reader.load_config(given, root, check=check)
    if methods is None:
        return config
    if not isinstance(methods, str):
        raise DpmcError(f"config: {refusal('methods', 'the path of a YAML file', methods)}")
    if PAPER not in config.papers:
        wanted = f"given beside papers that hold {PAPER}"
        raise DpmcError(f"config: {refusal('methods', wanted, methods)}")
    path = Path(methods)
    paper = _joined(config.papers[PAPER], path)
    if check:
        check_paper(paper, PAPER, str(path))
    return Config(
        scale=config.scale,
        results_dir=config.results_dir,
        seeds_per_job=config.seeds_per_job,
        papers={**config.papers, PAPER: paper},
        root=config.root,
    )


def _joined(paper: Paper, path: Path) -> Paper:
    """League with the commands of a file beside all others."""
    from dpmc_league import foreign

    ours, found = paper.studies[OURS], foreign.read(path)
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
        seeds_per_job=ours.seeds_per_job,
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
