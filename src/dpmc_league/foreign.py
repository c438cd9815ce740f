"""Methods in any language: a command reads a folder with a task, and writes draws and a ledger.

The folder holds ``task.json``, and the rows as ``rows.npy`` and ``rows.csv`` (no header). The
command is given its path as last argument, and writes ``draws.npy`` or ``draws.csv`` (no header, a
row for each draw) and ``ledger.json``: ``{"releases": [["gaussian(3.5)", 20]], "outside": []}``. An
event names the standard deviation of the noise over the sensitivity under substitution of one row.
Whoever draws from the seed that ``task.json`` offers gets the same draws again, and lists
``"a known seed"`` under ``outside``.

A command that takes ``many`` is given the paths of several folders, and makes a run in each: the
attack of the gate has hundreds of them, and a language may take long to start.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from dpmc import checks
from dpmc.types import Array, DpmcError
from dpmc.yaml_files import Settings, read_typed
from dpmc_league.submission import Submission, Terms
from dpmc_league.task import Task

TIME_LIMIT = 60.0
# Of what a command says when it fails, so much of its last line.
SAID = 120
# Seeds are smaller: every language takes those.
MOST_SEED = 2**31 - 1


Name = Annotated[
    str,
    Meta(pattern="^[a-z0-9_]+$", description="lower-case letters, digits and underscores"),
]


@dataclass(frozen=True)
class Foreign:
    """A method that is a command.

    Parameters
    ----------
    command : sequence of str
        The folder of a task is added to it.
    time_limit : float
        Seconds after which it is stopped, with all that it has started.
    folder : Path or str
        Where it runs.
    many : bool
        Whether it takes several folders at a time, within one time limit.
    """

    command: Sequence[str]
    time_limit: float = TIME_LIMIT
    folder: Path | str = Path()
    many: bool = False

    def __post_init__(self) -> None:
        checks.positive("time_limit", self.time_limit)
        checks.one_of("many", self.many, (False, True))
        if not self.command or not all(isinstance(part, str) for part in self.command):
            raise DpmcError(f"`command` must be a list of texts, got {self.command!r}")

    def run(self, task: Task, terms: Terms) -> Submission:
        """Run the command and read what it has written."""
        (handed,) = self.run_many([task], [terms])
        if isinstance(handed, DpmcError):
            raise handed
        return handed

    def identity(self) -> str:
        """Command, and the digests of the files that it names."""
        named = (Path(self.folder) / part for part in self.command)
        files = [hashlib.sha256(path.read_bytes()).hexdigest() for path in named if path.is_file()]
        return repr((tuple(self.command), files, self.time_limit, self.many))

    def run_many(
        self, tasks: Sequence[Task], terms: Sequence[Terms]
    ) -> list[Submission | DpmcError]:
        """Run the command once on several tasks; return what each has, or why it has nothing."""
        with tempfile.TemporaryDirectory(prefix="dpmc-league-") as name:
            places = [Path(name) / str(k) for k in range(len(tasks))]
            for place, task, one in zip(places, tasks, terms, strict=True):
                place.mkdir()
                write_task(place, task, one)
            try:
                self._call(places, Path(name) / "said.txt")
            except DpmcError as error:
                return [error] * len(places)
            return [_read(place) for place in places]

    def _call(self, places: Sequence[Path], said: Path) -> None:
        with said.open("wb") as log:
            try:
                process = subprocess.Popen(
                    [*self.command, *map(str, places)],
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            except OSError as error:
                raise DpmcError(f"`command` must start, got {error.strerror}") from None
            try:
                code = process.wait(self.time_limit)
            except subprocess.TimeoutExpired:
                raise DpmcError(f"`command` must end within {self.time_limit:g} s") from None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if code:
            lines = said.read_text(errors="replace").strip().splitlines() or [""]
            raise DpmcError(f"`command` must end with code 0, got {code}: {lines[-1][:SAID]}")


# What a configuration may say of such a method.
Params = Foreign


def _read(place: Path) -> Submission | DpmcError:
    """What a command has left in a folder, or what is wrong with it."""
    try:
        records, outside = read_ledger(place)
        return Submission(read_draws(place), records, outside)
    except DpmcError as error:
        return error


def write_task(place: Path, task: Task, terms: Terms) -> None:
    """Write what a foreign method is told, and the rows, into a folder."""
    told = {
        "name": task.name,
        "title": task.title,
        "model": task.model.name,
        "dim": task.dim,
        "names": list(task.names),
        "num_rows": task.num_rows,
        "num_columns": task.rows.shape[1],
        "bounds": dict(task.bounds),
        "start": [float(value) for value in task.start],
        "neighbours": "replace",
        "epsilon": terms.epsilon,
        "delta": terms.delta,
        "mu": terms.mu,
        "num_draws": terms.num_draws,
        "seed": None if terms.seed is None else terms.seed % MOST_SEED,
    }
    (place / "task.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
    np.save(place / "rows.npy", task.rows)
    np.savetxt(place / "rows.csv", task.rows, delimiter=",", fmt="%.10g")


def read_draws(place: Path) -> Array:
    """What a foreign method has written for draws."""
    binary, text = place / "draws.npy", place / "draws.csv"
    try:
        if binary.is_file():
            draws: Array = np.load(binary, allow_pickle=False)
        elif text.is_file():
            draws = np.loadtxt(text, delimiter=",", ndmin=2)
        else:
            raise DpmcError("`command` must write draws.npy or draws.csv")
        return np.asarray(draws, dtype=np.float64)
    except (OSError, ValueError) as error:
        if isinstance(error, DpmcError):
            raise
        raise DpmcError("draws must be a file of numbers, got one that is not") from None


def read_ledger(place: Path) -> tuple[Any, tuple[str, ...]]:
    """Releases that a foreign method has written, None without, and what is outside."""
    path = place / "ledger.json"
    if not path.is_file():
        return None, ()
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        releases, outside = told["releases"], told.get("outside", [])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DpmcError("`ledger` must be JSON with a list of releases") from None
    if not isinstance(releases, list) or not isinstance(outside, list):
        raise DpmcError("`ledger` must be JSON with a list of releases")
    return releases, tuple(map(str, outside))


class ForeignMethod(Settings, frozen=True):
    """A command that takes part in the league, on some of its tasks or on all."""

    command: Annotated[
        list[Annotated[str, Meta(min_length=1, description="a text")]],
        Meta(min_length=1, description="a list of texts"),
    ]
    time_limit: Annotated[float, Meta(gt=0, description="a number > 0")] | None = None
    many: bool | None = None
    tasks: (
        Annotated[
            list[Name],
            Meta(
                min_length=1,
                description="a list of different names",
                extra_json_schema={"uniqueItems": True},
            ),
        ]
        | None
    ) = None

    def given(self, folder: Path) -> dict[str, Any]:
        """What `Foreign` is told, without what is its default."""
        others = {"time_limit": self.time_limit, "many": self.many}
        told = {name: value for name, value in others.items() if value is not None}
        return {"command": self.command, **told, "folder": str(folder)}


class ForeignFile(Settings, frozen=True):
    """A YAML file of commands, which run in its folder."""

    methods: Annotated[dict[Name, ForeignMethod], Meta(min_length=1)]


def read(path: Path) -> dict[str, ForeignMethod]:
    """Methods of a YAML file, by name."""
    return read_typed(path, ForeignFile).methods


def commands(path: Path) -> dict[str, Foreign]:
    """Methods of a YAML file as the league plays them, by name."""
    return {name: Foreign(**one.given(path.parent)) for name, one in read(path).items()}
