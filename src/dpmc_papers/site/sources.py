"""Sources of pages: the settings of a document and the files of its results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from dpmc import yaml_files
from dpmc.types import DpmcError
from dpmc_papers.outputs import _guarantees
from dpmc_papers.outputs._facts import Facts
from dpmc_papers.pipeline import provenance
from dpmc_papers.pipeline.files import endings
from dpmc_papers.verdicts import verdict
from dpmc_papers.verdicts.verdict import Verdict

# Files of every document besides its figures and tables.
SHARED_FILES = ("verdict.csv", "guarantees.csv", "provenance.json")


@dataclass(frozen=True)
class Source:
    """The results of one document.

    Parameters
    ----------
    config : mapping
        The settings of the document that determine its results, at their scale.
    folder : Path
        Where the results are.
    scale : str
        Name of the scale.
    text : str
        What ``docs/<key>.md`` says about the results of the published grid; empty if there is none.
    printed : mapping of str to (str, float)
        Printed settings: the place of each in the configuration, and the number in print.
    left_out : tuple of str
        Figures and tables of the configuration that these results do not have.
    """

    config: Mapping[str, Any]
    folder: Path
    scale: str
    text: str = ""
    printed: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @classmethod
    def of_document(
        cls, config: Mapping[str, Any], folder: Path, scale: str, checkout: Path
    ) -> Source:
        """Results with what a checkout says about them: the text on them, and what print says."""
        path = checkout / "docs" / f"{config['paper']}.md"
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        claims = yaml_files.read_yaml(checkout / "config" / "published" / f"{config['paper']}.yaml")
        return cls(config, folder, scale, text, claims.get("settings", {}))

    def of_what_is_there(self) -> Source:
        """Same source without figures and tables that were not made yet."""
        outputs = {
            name: spec
            for name, spec in self.config["outputs"].items()
            if all((self.folder / file).is_file() for file in self.files(name))
        }
        left_out = tuple(name for name in self.config["outputs"] if name not in outputs)
        return replace(self, config={**self.config, "outputs": outputs}, left_out=left_out)

    @property
    def key(self) -> str:
        """Key of the document."""
        return str(self.config["paper"])

    @property
    def finding(self) -> str:
        """First paragraph of the text on the results, in Markdown without links."""
        paragraphs = [part for part in self.text.split("\n\n") if not part.startswith("#")]
        return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", paragraphs[0]) if paragraphs else ""

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """All verdicts on the document."""
        return verdict.read(self.folder / "verdict.csv")

    @cached_property
    def facts(self) -> Facts:
        """Facts that captions may use."""
        return Facts(self.config, _guarantees.read(self.folder / "guarantees.csv"))

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """How the results were made."""
        return provenance.read(self.folder / "provenance.json")

    def outputs(self, kind: str) -> list[str]:
        """Names of all figures or of all tables."""
        return [name for name, spec in self.config["outputs"].items() if spec["kind"] == kind]

    def files(self, name: str) -> list[str]:
        """Names of the files of a figure or table."""
        kind = self.config["outputs"][name]["kind"]
        return [f"{name}.{ending}" for ending in endings(name, kind)]

    def tables_of(self, name: str) -> list[str]:
        """CSV files of the tables that are made of the same runs as a figure."""
        runs = set(self.config["outputs"][name].get("metrics", ()))
        return [
            f"{other}.csv"
            for other in self.outputs("table")
            if runs & set(self.config["outputs"][other].get("metrics", ()))
        ]

    def all_files(self) -> list[str]:
        """Names of all files that pages link to."""
        made = [file for name in self.config["outputs"] for file in self.files(name)]
        for name in (wanted := [*made, *SHARED_FILES]):
            if not (self.folder / name).is_file():
                raise DpmcError(f"{self.folder / name} is missing: the run must be finished first")
        return wanted

    def table(self, name: str) -> pd.DataFrame:
        """Values of a table."""
        path = self.folder / f"{name}.csv"
        try:
            return pd.read_csv(path)
        except (OSError, ValueError) as error:
            raise DpmcError(f"{path}: {str(error).splitlines()[0]}") from None


def cited(config: Mapping[str, Any]) -> str:
    """Authors and year of a document in short."""
    names = [name.split()[-1] for name in re.split(r", | and ", str(config["authors"]))]
    short = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return f"{short} {config['year']}"
