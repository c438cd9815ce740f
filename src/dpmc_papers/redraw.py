"""Figures drawn again from published runs, for which no chain runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from dpmc import registry
from dpmc.types import DpmcError
from dpmc_papers.config.reader import Config
from dpmc_papers.config.settings import Output, Paper
from dpmc_papers.outputs import _tables
from dpmc_papers.pipeline import files, results
from dpmc_papers.plots import drawn, save
from dpmc_papers.verdicts import claim_file


def figures(folder: Path, config: Config, claims: Path, names: Sequence[str] = ()) -> Iterator[str]:
    """Draw figures of a folder again from its runs, and tell of each what came out.

    `names` are those to draw, all if there are none. A figure that shows chains, samples or rows is
    left as it is, because published runs have none.

    Raises
    ------
    DpmcError
        If a name is no figure of the document.
    """
    paper = config.papers[folder.name]
    shown = {name: output for name, output in paper.outputs.items() if output.kind == "figure"}
    unknown = sorted(set(names) - set(shown))
    if unknown:
        known = ", ".join(shown)
        raise DpmcError(f"figures of {folder.name} must be among {known}, got {unknown[0]}")
    runs = results.read_runs(folder / results.RUNS)
    module = registry.load("output", folder.name)
    published = claim_file.load(claims / f"{folder.name}.yaml")
    for name in names or shown:
        told = _missing(shown[name])
        if not told:
            try:
                figure = draw(module, runs, paper, name, published)
            except KeyError as error:  # columns of long texts are not in published runs
                told = f"needs {error}"
        if told:
            yield f"{folder.name}: {name} stays as it is, because it {told}"
            continue
        for ending in files.endings(name, "figure"):
            with files.replacing(folder / f"{name}.{ending}") as partial:
                if ending.endswith("csv"):
                    _tables.write(drawn.table(figure), partial)
                else:
                    save(figure, partial)
        yield f"{folder.name}: {name} drawn"


def draw(
    module: Any, runs: results.Context, paper: Paper, name: str, published: Mapping[str, Any]
) -> Figure:
    """One figure of a document whose outputs `module` has, from its published runs."""
    output = paper.outputs[name]
    rows = runs.metrics[runs.metrics["experiment"].isin(output.metrics)]
    context = replace(
        runs,
        config=paper.part(name).determining(),
        metrics=rows.dropna(axis=1, how="all").reset_index(drop=True),
        published=published,
    )
    made: Figure = getattr(module, output.function)(context)
    return made


def _missing(output: Output) -> str:
    """What published runs do not have of what a figure reads, in words."""
    reads = {"shows chains": output.chains, "shows exact samples": output.reference}
    reads["shows rows"] = output.data
    return next((words for words, given in reads.items() if given), "")
