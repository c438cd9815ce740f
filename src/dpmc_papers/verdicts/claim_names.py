"""Names in a file of claims, checked against the configuration of the published grids.

What a scale leaves out is not judged there; a name that the published grids do not have either is a
mistake, and is refused before anything runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dpmc import registry
from dpmc.registry import listed, refusal
from dpmc.types import DpmcError
from dpmc_papers.config import grids
from dpmc_papers.config.reader import Config
from dpmc_papers.config.settings import Paper
from dpmc_papers.pipeline import accounting_curves, chain_metrics
from dpmc_papers.pipeline.results import BASELINE
from dpmc_papers.verdicts import claim_file, printed_series
from dpmc_papers.verdicts.evidence import AS_PUBLISHED
from dpmc_papers.verdicts.rules import configured

# Keys of rules whose values are columns, or lists of them.
COLUMN_KEYS = ("metric", "by")
# Keys of rules whose mappings select runs, or lists of such mappings.
FILTER_KEYS = ("where", "numerators", "denominators", "groups", "tiers")


def check(config: Config) -> None:
    """Check the claims of all papers of a configuration at the published grids."""
    for key, paper in config.papers.items():
        path = config.root / "config" / "published" / f"{key}.yaml"
        _check_paper(paper, path)


def _check_paper(paper: Paper, path: Path) -> None:
    claims = claim_file.load(path, paper.outputs)
    known, settings = _names(paper), paper.plain()
    columns = set(_columns(paper))
    given = [part for key, part in _pairs(settings) if key in ("epsilon", "epsilons")]
    listed_ones = [part if isinstance(part, list) else [part] for part in given]
    epsilons = sorted({x for part in listed_ones for x in part if isinstance(x, int | float)})
    known["experiment"] |= set(claims.get("without_runs", ()))
    if claims["paper"] != paper.paper:
        raise DpmcError(f"{path}: {refusal('paper', paper.paper, claims['paper'])}")
    for name, wanted in claims["needs"].items():
        allowed = [*known["experiment"], *known["problem"]]
        if name not in allowed:
            raise DpmcError(f"{path}: {refusal(f'needs.{name}', _one_of(allowed), None, allowed)}")
        for place, number in wanted.items():
            if not _has(settings, place):
                raise DpmcError(f"{path}: needs of {name!r}: {_no_setting(place)}")
            if configured(place, settings) != number:
                there = f"{configured(place, settings)} of the published grid"
                raise DpmcError(f"{path}: needs of {name!r}: {refusal(place, there, number)}")
    for name, (place, _) in claims.get("settings", {}).items():
        if not _has(settings, place):
            raise DpmcError(f"{path}: setting {name!r}: {_no_setting(place)}")
    for variant in claims["printed_variants"]:
        # Curves of accountants are of print too, where nothing runs.
        variants = sorted({AS_PUBLISHED, *known["variant"]} - {""})
        if variant not in variants:
            asked = _one_of(variants)
            raise DpmcError(f"{path}: {refusal('printed_variants', asked, variant, variants)}")
    series = [block for block in claims.get("series", ()) if not block.get("setting")]
    cells = [cell for block in series for cell in printed_series.expand(block)]
    for entry in [*claims["entries"], *cells]:
        for fault in _faults(entry, known, columns, epsilons):
            raise DpmcError(f"{path}: entry {entry['id']!r}: {fault}")


def _faults(
    entry: Mapping[str, Any],
    known: Mapping[str, Iterable[str]],
    columns: set[str],
    epsilons: Collection[float],
) -> Iterator[str]:
    for variant in entry.get("variants", ()):
        if variant not in known["variant"]:
            yield refusal("variants", _one_of(known["variant"]), variant, known["variant"])
    rule = entry["rule"]
    for key, value in _pairs(rule):
        values = value if isinstance(value, list) else [value]
        texts = [one for one in values if isinstance(one, str)]
        for number in values if key == "epsilon" else ():
            if isinstance(number, int | float) and number not in epsilons:
                yield refusal(key, f"one of the grid ({listed(map(str, epsilons))})", number)
        for text in texts if key in known else ():
            if text not in known[key]:
                yield refusal(key, _one_of(known[key]), text, known[key])
        for text in texts if key in COLUMN_KEYS else ():
            if text not in columns:
                yield refusal(key, f"a column of the runs ({listed(columns)})", text, columns)
        # What measures no metric of runs selects something else.
        for column in _filtered(values) if key in FILTER_KEYS and "metric" in rule else ():
            if column not in columns:
                wanted = f"a column of the runs ({listed(columns)})"
                yield refusal(f"{key}.{column}", wanted, None, columns)


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    """Each key and value at any depth; a rule of a row holds those of its cells."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield str(key), part
            yield from _pairs(part)
    elif isinstance(value, list):
        for part in value:
            yield from _pairs(part)


def _filtered(values: Iterable[Any]) -> Iterator[str]:
    """Columns that filters, or lists of them, ask about."""
    for value in values:
        if isinstance(value, Mapping):
            yield from map(str, value)
        elif isinstance(value, list):
            yield from _filtered(value)


def _names(paper: Paper) -> dict[str, set[str]]:
    """The names that a rule may give, by its key."""
    chains: list[tuple[str, Any]] = [
        (label, method)
        for experiment in paper.experiments.values()
        for methods in experiment.methods.values()
        for label, method in methods.items()
    ]
    studied: list[tuple[str, Any]] = [
        pair for study in paper.studies.values() for pair in study.methods.items()
    ]
    curves: list[tuple[str, Any]] = [
        pair for entry in paper.accounting.values() for pair in entry.settings.items()
    ]
    labels = {label for label, _ in (*chains, *studied, *curves)} | {"reference"}
    return {
        "experiment": {*paper.experiments, *paper.studies, BASELINE},
        "problem": set(paper.problems),
        "label": labels,
        "algorithm": {grids.algorithm(label) for label in labels},
        "method": {entry.method for _, entry in (*chains, *studied, *curves)} | {"reference"},
        # Exact samples have none.
        "variant": {entry.variant for _, entry in (*chains, *studied)} | {""},
        "curve": set(paper.accounting),
    }


def _columns(paper: Paper) -> Iterator[str]:
    """Columns of all runs of a paper, and of its curves."""
    yield from chain_metrics.COLUMNS
    yield from accounting_curves.COLUMNS
    for study in paper.studies.values():
        yield from registry.load("study", study.study).COLUMNS


def _has(settings: Any, path: str) -> bool:
    """Whether the settings have a number at a path of keys and indices."""
    value = settings
    for key in path.split("."):
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return False
    return isinstance(value, int | float)


def _no_setting(path: str) -> str:
    return f"a path must lead to a number of the settings, got {path!r}"


def _one_of(names: Iterable[str]) -> str:
    return f"one of {listed(names)}"
