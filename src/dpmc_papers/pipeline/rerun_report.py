"""Reports of published runs that were made again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from dpmc.privacy.empirical import clopper_pearson
from dpmc_papers.pipeline import provenance, stale
from dpmc_papers.pipeline.rerun import FAILS, Compared, Outcome


def report(found: Sequence[Compared], confidence: float | None = 0.95) -> list[str]:
    """Return in lines how many runs came out as published, and which did not.

    Parameters
    ----------
    found : sequence of Compared
    confidence : float or None
        Of the bound on the share of all runs that differ; None if not all were as likely.
    """
    by = {name: [one for one in found if one.outcome == name] for name in get_args(Outcome)}
    apart = max((one.difference for one in by["same"]), default=0.0)
    lines = [f"{len(by['same'])} the same, to a relative difference of {apart:.1e} at most"]
    words: dict[Outcome, str] = {
        "rounding": "decided by rounding, nothing is known of them",
        "history": "depend on what ran before them",
        "different": "different",
    }
    for outcome, told in words.items():
        if outcome == "history" and not by[outcome]:
            continue
        lines.append(f"{len(by[outcome])} {told}")
        lines += [f"  {one.run.told}: {_columns(one)}" for one in by[outcome]]
    number, differ = len(found) - len(by["rounding"]), sum(len(by[name]) for name in FAILS)
    if number and confidence is not None:
        most = 100 * most_that_differ(number, differ, confidence)
        lines.append(
            f"of all runs that rounding does not decide at most {most:.1f} % differ, "
            f"at {100 * confidence:.0f} % confidence"
        )
    return lines


def machines(path: Path) -> str:
    """Return in words what results were made on, and what this machine is.

    Parameters
    ----------
    path : Path
        File that says how the results were made.
    """
    there, here = stale.read(path), provenance.machine()
    made = there.get("target", "an unknown kind of processor")
    versions = there.get("packages", {})
    packages = [
        f"{name} {versions[name]} there, {version} here"
        for name, version in here["packages"].items()
        if name in versions and versions[name] != version
    ]
    return "; ".join([f"made on {made}, at {there['commit']}; this is {here['target']}", *packages])


def most_that_differ(number: int, found: int, confidence: float) -> float:
    """Return an upper confidence bound on the share of runs that differ.

    Parameters
    ----------
    number, found : int
        Runs in the sample, and those of them that differ.
    confidence : float
        Between 0 and 1. The sample is without replacement, so that the bound holds with more.
    """
    return 1 - clopper_pearson(number - found, number, 1 - confidence)


def _columns(one: Compared) -> str:
    """Return the columns of a run that differ, a few of them, and by how much."""
    shown, more = one.columns[:3], len(one.columns) - 3
    others = f" and {more} more" if more > 0 else ""
    return f"{', '.join(shown)}{others}, by {one.difference:.1e} at most"
