"""``dpmc``, or ``python -m dpmc``: fits of the rows of a file, plans of them, and audits."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

import dpmc
from dpmc.types import DpmcError

# Keys of the file of `dpmc fit`, in the order of its documentation.
KEYS = (
    "rows, epsilon, delta, output, names, features, response, likelihood, formula, ranges, "
    "missing, offset, exposure, trials, event, model, intercept, prior_sd, degrees_of_freedom, "
    "num_chains, num_draws, noise, neighbours, unit, invalid_rows"
)

# How lines begin that say what is wrong.
WRONG = "Note: ", "A typical fit says: "


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 1 after one line on standard error."""
    return run(_parser(), arguments)


def run(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> int:
    """Run the command that a parser finds, and print what it returns; 1 if it is refused."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names that a terminal does not know are escaped
            stream.reconfigure(errors="backslashreplace")
    try:
        asked = parser.parse_args(arguments)
        print(_coloured(asked.run(asked)))
    except DpmcError as error:
        print(f"dpmc: {error}", file=sys.stderr)
        return 1
    return 0


def _coloured(text: str) -> str:
    """Text for a terminal: what is wrong with a fit, in red."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    lines = text.split("\n")
    return "\n".join(f"\033[31m{one}\033[0m" if one.startswith(WRONG) else one for one in lines)


def _parser() -> argparse.ArgumentParser:
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
    command = commands.add_parser("plan", help="say what to expect of a fit; rows are only counted")
    command.add_argument("settings", metavar="FILE.yaml", help="of `dpmc fit`")
    command.set_defaults(run=_plan)
    command = commands.add_parser("verify", help="check a guarantee against what was released")
    command.add_argument("record", metavar="FILE", help="of `dpmc fit`, or JSON of a guarantee")
    command.add_argument("ledger", nargs="?", help="JSON of releases, where FILE has none")
    command.set_defaults(run=_verify)
    for command in (one for name, one in commands.choices.items() if name != "verify"):
        command.add_argument("--json", action="store_true", help="print JSON in place of words")
    return parser


# Compiled code is imported by the command that needs it.
def _fit(asked: argparse.Namespace) -> str:
    from dpmc import command

    return command.fit_file(asked.settings, asked.json)


def _audit(asked: argparse.Namespace) -> str:
    from dpmc import command

    return command.audit_file(
        asked.mechanism,
        asked.json,
        claim=asked.epsilon,
        delta=asked.delta,
        confidence=asked.confidence,
        num_runs=asked.runs,
        workers=asked.workers,
        seed=asked.seed,
    )


def _plan(asked: argparse.Namespace) -> str:
    from dpmc import command

    return command.plan_file(asked.settings, asked.json)


def _verify(asked: argparse.Namespace) -> str:
    from dpmc.fits.verification import verify

    return verify(asked.record, asked.ledger)


if __name__ == "__main__":
    sys.exit(main())
