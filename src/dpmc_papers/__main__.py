"""``python -m dpmc_papers``: verdicts, figures and runs made again, and results nobody asks for."""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpmc import yaml_files
from dpmc.__main__ import run
from dpmc.types import DpmcError
from dpmc_papers.config import reader
from dpmc_papers.pipeline import stale
from dpmc_papers.pipeline.workload import Workload

if TYPE_CHECKING:
    from dpmc_papers.pipeline.rerun import Compared

PUBLISHED_SCALE = "paper"
# Of a document, made again: of 60 runs one in twenty that differed would show with 95 %.
RUNS = 60


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 1 after one line on standard error."""
    parser = argparse.ArgumentParser(prog="python -m dpmc_papers", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser(
        "verdicts", help="judge published runs again; run nothing, write nothing unless asked to"
    )
    command.add_argument(
        "folders", nargs="+", metavar="FOLDER", help="results of a document that hold runs.parquet"
    )
    command.add_argument(
        "--claims", default="config/published", metavar="FOLDER", help="what documents claim"
    )
    command.add_argument(
        "--power", action="store_true", help="say what verdicts notice when print is made wrong"
    )
    command.add_argument(
        "--write", action="store_true", help="replace verdict.csv and power.csv in the folders"
    )
    command.set_defaults(run=_verdicts)
    command = commands.add_parser(
        "redraw", help="draw figures again from published runs, in place of those in the folder"
    )
    command.add_argument("folder", metavar="FOLDER", help="results of a document")
    command.add_argument("figures", nargs="*", metavar="FIGURE", help="all of them if absent")
    command.add_argument("--scale", default=PUBLISHED_SCALE, help="that of the results")
    command.add_argument("--root", default=".", help="folder that holds config/ and workflow/")
    command.set_defaults(run=_redraw)
    command = commands.add_parser(
        "rerun", help="make published runs again, drawn at random, and compare their numbers"
    )
    command.add_argument("papers", nargs="*", metavar="KEY", help="all documents if absent")
    number = command.add_mutually_exclusive_group()
    number.add_argument("--runs", type=_count, default=RUNS, help="of each document")
    number.add_argument(
        "--each", action="store_true", help="one run of every method of every experiment"
    )
    command.add_argument("--seed", type=int, help="of the draw; another one every time if absent")
    command.add_argument("--folder", default="results/published", help="where the results lie")
    command.add_argument("--scale", default=PUBLISHED_SCALE, help="that of the results")
    command.add_argument("--root", default=".", help="folder that holds config/ and workflow/")
    command.set_defaults(run=_rerun)
    command = commands.add_parser(
        "clean", help="remove results that the configuration does not ask for, and what they made"
    )
    command.add_argument("--scale", help="a file of config/scales, as config.yaml has it if absent")
    command.add_argument("--results-dir", help="where the results lie, as config.yaml has it")
    command.add_argument("--papers", nargs="+", metavar="KEY", help="as config.yaml has them")
    command.add_argument("--root", default=".", help="folder that holds config/ and workflow/")
    command.set_defaults(run=_clean)
    return run(parser, arguments)


def _config(root: Path, **given: object) -> reader.Config:
    """The configuration of a checkout, with what the command line gives."""
    source = yaml_files.read_yaml(root / "config" / "config.yaml")
    return reader.load_config(source | {k: v for k, v in given.items() if v}, root)


def _clean(asked: argparse.Namespace) -> str:
    root = Path(asked.root)
    config = _config(root, scale=asked.scale, papers=asked.papers, results_dir=asked.results_dir)
    works = [Workload(config, paper) for paper in config.papers]
    removed = stale.to_remove(works, stale.found(works))
    for path in removed:
        Path(path).unlink()
    return "\n".join([*(f"removed {path}" for path in removed), f"{len(removed)} files removed"])


def _redraw(asked: argparse.Namespace) -> str:
    from dpmc_papers import redraw

    folder, root = Path(asked.folder), Path(asked.root)
    config = _config(root, scale=asked.scale, papers=[folder.name])
    claims = root / "config" / "published"
    return "\n".join(redraw.figures(folder, config, claims, asked.figures))


def _rerun(asked: argparse.Namespace) -> str:
    from dpmc_papers.pipeline import rerun

    root = Path(asked.root)
    config = _config(root, scale=asked.scale, papers=asked.papers or list(reader.papers(root)))
    seed = secrets.randbits(32) if asked.seed is None else asked.seed
    number = None if asked.each else asked.runs
    outcomes = []
    for paper in config.papers:
        found = _made_again(Workload(config, paper), Path(asked.folder) / paper, number, seed)
        outcomes += [one.outcome for one in found]
    differ = sum(outcome in rerun.FAILS for outcome in outcomes)
    if differ:
        raise DpmcError(f"{differ} of {len(outcomes)} runs do not come out as published")
    return f"None of {len(outcomes)} runs differs from what is published."


def _made_again(work: Workload, folder: Path, number: int | None, seed: int) -> list[Compared]:
    """Make runs of a document again, one of each method if there is no number, and print how."""
    from dpmc import progress_bar
    from dpmc_papers.pipeline import published_runs, rerun, results

    there = published_runs.Published(results.read_runs(folder / results.RUNS).metrics)
    here, others = published_runs.population(work, there)
    if number is None:
        chosen = published_runs.one_of_each(here, seed)
    else:
        chosen = published_runs.sample(here, number, seed)
    found: list[Compared] = []
    with progress_bar.shown(True, "run") as tell:
        for one in rerun.compared(work, chosen, there):
            found.append(one)
            tell(len(found), len(chosen), folder.name)
    title = f"{folder.name}: {len(found)} of {len(here):,} published runs made again (seed {seed})"
    lines = rerun.report(found, None if number is None else 0.95)
    machines = rerun.machines(folder / stale.PROVENANCE)
    print("\n  ".join([title, *lines, *others, machines]), flush=True)
    return found


def _verdicts(asked: argparse.Namespace) -> str:
    from dpmc_papers import rejudge  # the other commands need nothing of it

    claims = Path(asked.claims)
    return "\n\n".join(
        rejudge.verdicts(Path(folder), claims, write=asked.write, notices=asked.power)
        for folder in asked.folders
    )


def _count(value: str) -> int:
    number = int(value)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {value}")
    return number


if __name__ == "__main__":
    sys.exit(main())
