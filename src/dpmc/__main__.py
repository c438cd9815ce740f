"""``dpmc``, or ``python -m dpmc``: fits of own rows, audits, and commands of the reproduction."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from typing import Any

import dpmc
from dpmc.types import DpmcError

# Of the file of `dpmc fit`, in the order of its documentation.
KEYS = (
    "rows, epsilon, delta, output, names, features, response, likelihood, model, intercept, "
    "prior_sd, degrees_of_freedom, num_chains, num_draws, noise, invalid_rows"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 1 after one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names that a terminal does not know are escaped
            stream.reconfigure(errors="backslashreplace")
    try:
        asked = _parser().parse_args(arguments)
        print(asked.run(asked))
    except DpmcError as error:
        print(f"dpmc: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    from dpmc.experiments import commands as reproduction

    parser = argparse.ArgumentParser(prog="dpmc", description=__doc__)
    parser.add_argument("--version", action="version", version=f"dpmc {dpmc.__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser(
        "fit",
        help="fit a posterior to the rows of a file, and write it",
        epilog=f"Keys of the file: {KEYS}. docs/command.md has an example.",
    )
    command.add_argument("settings", metavar="FILE.yaml", help="rows, model and budget")
    command.set_defaults(run=_fit)
    command = commands.add_parser("audit", help="bound the epsilon of a mechanism from its runs")
    command.add_argument(
        "mechanism", metavar="FILE.py", help="defines `mechanism`, `data` and `neighbour`"
    )
    command.add_argument("--epsilon", type=float, help="that is claimed")
    command.add_argument("--delta", type=float, help="at which it is claimed; 0 by default")
    command.add_argument("--confidence", type=float, default=0.95)
    command.add_argument("--runs", type=int, default=20_000)
    command.add_argument("--workers", type=int, default=1)
    command.add_argument("--seed", type=int)
    command.set_defaults(run=_audit)
    command = commands.add_parser("tasks", help="list the tasks of the league")
    command.set_defaults(run=_tasks)
    command = commands.add_parser(
        "league", help="run private methods on tasks with known posteriors, and score them"
    )
    command.add_argument(
        "--tasks", nargs="+", metavar="NAME", help="of `dpmc tasks`; a few if absent"
    )
    command.add_argument("--methods", nargs="+", metavar="NAME", help="all if absent")
    command.add_argument("--foreign", metavar="FILE.yaml", help="commands that take part")
    command.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 4.0])
    command.add_argument("--repeats", type=int, default=2)
    command.add_argument("--passes", type=int, default=400, help="over the rows, of a chain")
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--output", default="league.csv", help="the CSV file to write")
    command.set_defaults(run=_league)
    reproduction.add_commands(commands)
    command = commands.choices["plan"]
    command.add_argument(
        "settings", nargs="?", metavar="FILE.yaml", help="of `dpmc fit`: what to expect of that fit"
    )
    command.set_defaults(run=_plan, reproduction=command.get_default("run"))
    return parser


# Compiled code is imported by the command that needs it.
def _fit(asked: argparse.Namespace) -> str:
    from dpmc import command

    return command.fit_file(asked.settings)


def _audit(asked: argparse.Namespace) -> str:
    from dpmc import command

    return command.audit_file(
        asked.mechanism,
        claim=asked.epsilon,
        delta=asked.delta,
        confidence=asked.confidence,
        num_runs=asked.runs,
        workers=asked.workers,
        seed=asked.seed,
    )


def _tasks(asked: argparse.Namespace) -> str:
    from dpmc import command

    return command.task_list()


def _league(asked: argparse.Namespace) -> str:
    from dpmc import command

    return command.league(
        asked.tasks,
        asked.methods,
        asked.epsilon,
        foreign=asked.foreign,
        output=asked.output,
        repeats=asked.repeats,
        max_passes=asked.passes,
        seed=asked.seed,
    )


def _plan(asked: argparse.Namespace) -> Any:
    if asked.settings is None:
        return asked.reproduction(asked)
    for name in ("scale", "papers", "results_dir", "no_budgets"):
        if getattr(asked, name):
            option = name.replace("_", "-")
            raise DpmcError(f"`--{option}` must be left out beside {asked.settings}")
    from dpmc import command

    return command.plan_file(asked.settings)


if __name__ == "__main__":
    sys.exit(main())
