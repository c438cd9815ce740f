"""The league again, for methods that are commands: see :mod:`dpmc_league.foreign`."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc.numerics import source_digest
from dpmc.progress import Progress, silent
from dpmc.types import Dataset, DpmcError
from dpmc_league.foreign import Foreign
from dpmc_papers.config.setups import StudyPoint, StudySetup
from dpmc_papers.studies import _league, _tables

if TYPE_CHECKING:
    import pandas as pd

METHODS = "dpmc_league"
METHOD = "foreign"
EXAMPLES = "docs/examples/league"

Params = _league.Params
COLUMNS = _league.COLUMNS
unavailable = _league.unavailable


def run(
    setup: StudySetup, dataset: Dataset, replicates: Iterable[int], progress: Progress = silent
) -> pd.DataFrame:
    """Score a command at some points; see :func:`dpmc_papers.studies._league.run`."""
    return _league.run(setup, dataset, replicates, lambda point: _command(point.params), progress)


def check(point: StudyPoint) -> None:
    """Refuse a point that a run would refuse."""
    if point.method != METHOD:
        raise DpmcError(f"`method` must be {METHOD}, got {point.method!r}")
    _league.check(point)
    _command(point.params)


def reads(params: Mapping[str, Any]) -> list[str]:
    """What determines a result beside settings and code: the files that a command names.

    It also counts whether there is such a program: installing it makes its rows anew. Of the
    examples of the checkout that does not count, whose published rows are right wherever they are.
    """
    one = _command(params)
    found = [
        hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (Path(one.folder) / part for part in one.command)
        if path.is_file()
    ]
    if params.get("folder") != EXAMPLES and shutil.which(one.command[0]) is None:
        found.append("not there")
    return found


def _command(params: Mapping[str, Any]) -> Foreign:
    """Command of a point; its folder is that of the checkout if there is none here."""
    one = Foreign(**_tables.having(params, Foreign))
    folder = Path(one.folder)
    return one if folder.is_dir() else replace(one, folder=source_digest.ROOT.parent / folder)
