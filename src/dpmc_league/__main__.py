"""``python -m dpmc_league``: tasks with known posteriors, and a league of methods on them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dpmc import checks
from dpmc.__main__ import run
from dpmc.types import check_epsilon
from dpmc_league import foreign
from dpmc_league.submission import rivals
from dpmc_league.table import Row, play, summary, write
from dpmc_league.task import described, known, tasks

# Tasks of a league that names none: minutes.
SMALL = "banana-2-v1", "gaussian-2-v1", "gaussian-10-v1", "logistic-3-v1", "poisson-3-v1"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 1 after one line on standard error."""
    parser = argparse.ArgumentParser(prog="python -m dpmc_league", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser("tasks", help="list the tasks")
    command.set_defaults(run=_tasks)
    command = commands.add_parser("run", help="run private methods on tasks, and score them")
    command.add_argument("--tasks", nargs="+", metavar="NAME", help="a few if absent")
    command.add_argument("--methods", nargs="+", metavar="NAME", help="all if absent")
    command.add_argument("--foreign", metavar="FILE.yaml", help="commands that take part")
    command.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 4.0])
    command.add_argument("--repeats", type=int, default=2)
    command.add_argument("--passes", type=int, default=400, help="over the rows, of a chain")
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--output", default="league.csv", help="the CSV file to write")
    command.set_defaults(run=_run)
    return run(parser, arguments)


def _tasks(asked: argparse.Namespace) -> str:
    return "\n".join(f"{name:22} {described(name)}" for name in tasks())


def _run(asked: argparse.Namespace) -> str:
    """Play the league, write it as CSV after each task, and return the standings."""
    for epsilon in asked.epsilon:
        check_epsilon(epsilon)
    checks.at_least("repeats", asked.repeats, 1)
    checks.at_least("max_passes", asked.passes, 1)
    others = {} if asked.foreign is None else foreign.commands(Path(asked.foreign))
    chosen = rivals() if asked.methods is None else asked.methods
    played = [known(name) for name in asked.tasks or SMALL]
    path = Path(asked.output)
    path.parent.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for name in played:  # what is done is written: a league that is stopped has its first tasks
        rows += play(
            [name],
            chosen,
            asked.epsilon,
            foreign=others,
            repeats=asked.repeats,
            max_passes=asked.passes,
            seed=asked.seed,
        )
        write(path, rows)
    return f"{summary(rows)}\n\nWritten to {path}."


if __name__ == "__main__":
    sys.exit(main())
