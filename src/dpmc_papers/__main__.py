"""``python -m dpmc_papers``: what a run would take, verdicts and runs made again, what is stale."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpmc import yaml_files
from dpmc.__main__ import run
from dpmc.checks import require_extra
from dpmc.types import DpmcError
from dpmc_papers.config import reader
from dpmc_papers.pipeline import affordable, costs, plan, provenance, stale
from dpmc_papers.pipeline.workload import Workload

if TYPE_CHECKING:
    from dpmc_papers.pipeline.rerun import Compared

PROVENANCE = "provenance.json"
PUBLISHED_SCALE = "paper"
# Of a document, made again: of 60 runs one in twenty that differed would show with 95 %.
RUNS = 60


def _config(root: Path, **given: object) -> reader.Config:
    """Return the configuration of a checkout, with what the command line gives."""
    source = yaml_files.read_yaml(root / "config" / "config.yaml")
    return reader.load_config(source | {k: v for k, v in given.items() if v}, root)


def _plan(asked: argparse.Namespace) -> str:
    root = Path(asked.root)
    config = _config(root, scale=asked.scale, papers=asked.papers, results_dir=asked.results_dir)
    works = [Workload(config, paper) for paper in config.papers]
    known = costs.load(root / "config" / "costs.yaml")
    with affordable.kept(affordable.default_path(), affordable.shipped(root)):
        return plan.text(works, known, asked.cores, budgets=not asked.no_budgets)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 1 after one line on standard error."""
    parser = argparse.ArgumentParser(prog="python -m dpmc_papers", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser(
        "plan",
        help="print what each budget buys, the jobs, their time and memory; run nothing",
    )
    command.add_argument("--scale", help="a file of config/scales, as config.yaml has it if absent")
    command.add_argument("--papers", nargs="+", metavar="KEY", help="files of config/papers")
    command.add_argument("--results-dir", help="where results that are done lie")
    command.add_argument("--cores", type=_count, default=os.cpu_count() or 1)
    command.add_argument("--no-budgets", action="store_true", help="leave the accountants out")
    command.add_argument("--root", default=".", help="folder that holds config/ and workflow/")
    command.set_defaults(run=_plan)
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
        "--write",
        action="store_true",
        help="replace verdict.csv and power.csv in the folders, and say so in provenance.json",
    )
    command.add_argument("--root", default=".", help="folder that holds config/ and workflow/")
    command.set_defaults(run=_verdicts)
    command = commands.add_parser(
        "stale", help="say which published outputs the code of today would make anew"
    )
    command.add_argument("--folder", default="results/published", help="where the results lie")
    command.add_argument("--scale", default=PUBLISHED_SCALE, help="that of the results")
    command.add_argument("--root", default=".", help="folder that holds config/ and workflow/")
    command.set_defaults(run=_stale)
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
    return run(parser, arguments)


def _stale(asked: argparse.Namespace) -> str:
    root = Path(asked.root)
    config = _config(root, scale=asked.scale, papers=list(reader.papers(root)))
    lines = []
    for paper in config.papers:
        provenance = Path(asked.folder) / paper / PROVENANCE
        if not provenance.parent.is_dir():
            lines.append(f"{paper}: no results in {provenance.parent}")
            continue
        try:
            found = stale.outputs(Workload(config, paper), provenance)
        except DpmcError as error:
            lines.append(f"{paper}: {error}")
            continue
        lines.append(f"{paper}: {f'{len(found)} outputs are stale' if found else 'nothing stale'}")
        lines += [f"  {name}: {what}" for name, what in found.items()]
    return "\n".join(lines)


def _rerun(asked: argparse.Namespace) -> str:
    require_extra("threadpoolctl", "python -m dpmc_papers rerun")
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
    from dpmc_papers.pipeline import published_runs, rerun, rerun_report, runs_file

    there = published_runs.Published(runs_file.read(folder / runs_file.NAME).metrics)
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
    lines = rerun_report.report(found, None if number is None else 0.95)
    machines = rerun_report.machines(folder / PROVENANCE)
    print("\n  ".join([title, *lines, *others, machines]), flush=True)
    return found


def _verdicts(asked: argparse.Namespace) -> str:
    from dpmc_papers import rejudge  # a plan needs nothing of it

    root, claims = Path(asked.root), Path(asked.claims)
    own = claims.resolve() == (root / "config" / "published").resolve()
    found, commit = [], provenance.commit(root)
    for folder in map(Path, asked.folders):
        found.append(rejudge.verdicts(folder, claims, write=asked.write, notices=asked.power))
        if asked.write and (folder / PROVENANCE).exists():
            said = _recorded(folder, root, commit) if own else "still stale: of other claims"
            found[-1] += f"\n  {said}"
    return "\n\n".join(found)


def _recorded(folder: Path, root: Path, commit: str | None) -> str:
    """Record in the provenance of results that their verdicts were made again."""
    above = folder.resolve().parent.name
    scale = above if (root / "config" / "scales" / f"{above}.yaml").is_file() else PUBLISHED_SCALE
    paper = folder.resolve().name
    work = Workload(_config(root, scale=scale, papers=[paper]), paper)
    return stale.record_verdicts(work, folder / PROVENANCE, commit)


def _count(value: str) -> int:
    number = int(value)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {value}")
    return number


if __name__ == "__main__":
    sys.exit(main())
