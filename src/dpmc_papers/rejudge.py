"""Verdicts made again from published runs, and what they would notice."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dpmc.types import DpmcError
from dpmc_papers.outputs import _tables
from dpmc_papers.pipeline import files, results
from dpmc_papers.verdicts import claim_file, judge, power
from dpmc_papers.verdicts.verdict import VERDICTS as KINDS

VERDICTS, POWER = "verdict.csv", "power.csv"


def verdicts(folder: Path, claims: Path, *, write: bool = False, notices: bool = False) -> str:
    """Judge the runs of a folder again, and tell in words what came out.

    Told are how many verdicts of each kind there are, and which differ from those in the folder,
    which `write` replaces, and what they would notice with `notices`. `claims` is the folder of the
    files of claims, each named by the key of its document.
    """
    context = results.read_runs(folder / results.RUNS)
    published = claim_file.load(claims / f"{context.config['paper']}.yaml")
    made = judge.verdicts(published, context.metrics, context.baselines, context)
    counts = made["verdict"].value_counts()
    lines = [f"{context.config['paper']}: {len(made):,} verdicts from {folder / results.RUNS}"]
    lines += [f"  {counts[name]:6,} {name}" for name in KINDS if name in counts]
    lines += _differences(made, folder / VERDICTS)
    if write or notices:
        noticed = power.table(published, context)
        if write:
            for name, table in ((VERDICTS, made), (POWER, noticed)):
                with files.replacing(folder / name) as partial:
                    _tables.write(table, partial)
            lines.append(f"  written to {folder / VERDICTS}, and {POWER} beside it")
        if notices:
            lines.append(_power_in_words(noticed))
    return "\n".join(lines)


def _differences(made: pd.DataFrame, path: Path) -> list[str]:
    """Line per verdict that is another one in a file."""
    if not path.exists():
        return []
    try:
        there = pd.read_csv(path).set_index(["id", "variant"])["verdict"]
    except (ValueError, KeyError) as error:
        raise DpmcError(f"{path}: {str(error).splitlines()[0]}") from None
    here = made.set_index(["id", "variant"])["verdict"]
    both = pd.concat({"there": there, "here": here}, axis=1)
    other = both[both["there"] != both["here"]]
    if other.empty:
        return [f"  the same as in {path}"]
    lines = [f"  {len(other):,} differ from those in {path}:"]
    lines += [
        f"    {row['id']} ({row['variant']}): {row['there']} there, {row['here']} here"
        for row in other.reset_index().fillna("none").to_dict("records")
    ]
    return lines


def _power_in_words(table: pd.DataFrame) -> str:
    shown = table.copy()
    for name in shown.columns[4:]:
        shown[name] = [f"{100 * value:.0f} %" for value in shown[name]]
    return shown.to_string(index=False)
