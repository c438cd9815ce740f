"""``dpmc``, or ``python -m dpmc``: fits of own rows, audits, and commands of the reproduction."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from dpmc.checks import require_extra
from dpmc.types import DpmcError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 1 after one line on standard error."""
    try:
        require_extra("msgspec", "the command")
        asked = _parser().parse_args(arguments)
        print(asked.run(asked))
    except DpmcError as error:
        print(f"dpmc: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    from dpmc.experiments import commands as reproduction

    parser = argparse.ArgumentParser(prog="dpmc", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser("fit", help="fit a posterior to the rows of a file, and write it")
    command.add_argument("settings", metavar="FILE.yaml", help="what docs/command.md describes")
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


def _plan(asked: argparse.Namespace) -> Any:
    if asked.settings is None:
        return asked.reproduction(asked)
    from dpmc import command

    return command.plan_file(asked.settings)


if __name__ == "__main__":
    sys.exit(main())
