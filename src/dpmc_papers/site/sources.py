"""Sources of a page: the settings of a document and the files of its results."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from dpmc.numerics.source_digest import short_digest
from dpmc.types import DpmcError
from dpmc_papers.outputs import _guarantees
from dpmc_papers.outputs._facts import Facts
from dpmc_papers.pipeline.files import LAYOUT_ENDINGS, is_numbered
from dpmc_papers.verdicts import verdict
from dpmc_papers.verdicts.verdict import Verdict

FIGURE_FILES = ("svg", "png", "pdf")
POWER = "power.csv"
# Files of every document besides its figures and tables.
SHARED_FILES = ("verdict.csv", "guarantees.csv", "provenance.json")
PIXELS_PER_POINT = 96 / 72


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
    left_out : tuple of str
        Figures and tables of the configuration of today that these results do not have.
    text : str
        What `docs/<key>.md` says about the results of the published grid; empty if there is none.
    """

    config: Mapping[str, Any]
    folder: Path
    scale: str
    left_out: tuple[str, ...] = ()
    text: str = ""

    @classmethod
    def of_document(cls, config: Mapping[str, Any], folder: Path, scale: str, docs: Path) -> Source:
        """Return the source of results, with the text on them in the folder `docs` if any."""
        path = docs / f"{config['paper']}.md"
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        return cls(config, folder, scale, text=text)

    @classmethod
    def of_earlier(cls, config: Mapping[str, Any], folder: Path, scale: str, docs: Path) -> Source:
        """Return the source of results that may have been made before the latest figures."""
        whole = cls.of_document(config, folder, scale, docs)
        outputs = {
            name: spec
            for name, spec in config["outputs"].items()
            if all((folder / file).is_file() for file in whole.files(name))
        }
        left_out = tuple(name for name in config["outputs"] if name not in outputs)
        return cls({**config, "outputs": outputs}, folder, scale, left_out, whole.text)

    @property
    def key(self) -> str:
        """Return the key of the document."""
        return str(self.config["paper"])

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Return all verdicts on the document."""
        return verdict.read(self.folder / "verdict.csv")

    @cached_property
    def power(self) -> pd.DataFrame | None:
        """Return what the verdicts notice when print is made wrong, as shares in per cent."""
        path = self.folder / POWER
        if not path.exists():
            return None
        table = pd.read_csv(path)
        for name in table.columns[3:]:
            table[name] = [f"{100 * share:.0f} %" for share in table[name]]
        return table

    @cached_property
    def facts(self) -> Facts:
        """Return the facts that captions may use."""
        return Facts(self.config, _guarantees.read(self.folder / "guarantees.csv", self.config))

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Return how the results were made.

        Raises
        ------
        DpmcError
            If the file cannot be read.
        """
        path = self.folder / "provenance.json"
        try:
            record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DpmcError(f"{path}: {str(error).splitlines()[0]}") from None
        return record

    @property
    def settings_changed(self) -> bool:
        """Return whether the results were made with other settings than those shown."""
        return bool(self.left_out) or self.provenance["settings"] != short_digest(self.config)

    def outputs(self, kind: str) -> list[str]:
        """Return the names of all figures or of all tables."""
        return [name for name, spec in self.config["outputs"].items() if spec["kind"] == kind]

    def files(self, name: str) -> list[str]:
        """Return the names of the files of a figure or table."""
        if self.config["outputs"][name]["kind"] == "table":
            return [f"{name}.csv"]
        return [f"{name}.{ending}" for ending in FIGURE_FILES]

    def layout_files(self, name: str) -> list[str]:
        """Return the files of a table in the layout of the document; earlier results have none."""
        files = [f"{name}.{ending}" for ending in LAYOUT_ENDINGS if is_numbered(name)]
        return files if all((self.folder / file).is_file() for file in files) else []

    def data_of(self, name: str) -> list[str]:
        """Return the CSV files behind a figure: what is drawn, and tables of the same runs."""
        drawn = [f"{name}.data.csv"] if (self.folder / f"{name}.data.csv").is_file() else []
        runs = set(self.config["outputs"][name].get("metrics", ()))
        shared = (
            other
            for other in self.outputs("table")
            if runs & set(self.config["outputs"][other].get("metrics", ()))
        )
        return [*drawn, *(f"{other}.csv" for other in shared)]

    def all_files(self) -> list[str]:
        """Return the names of all files that a page links to.

        Raises
        ------
        DpmcError
            If one of them is missing.
        """
        made = [name for output in self.config["outputs"] for name in self.files(output)]
        drawn = [name for f in self.outputs("figure") for name in self.data_of(f)]
        laid_out = [name for t in self.outputs("table") for name in self.layout_files(t)]
        wanted = list(dict.fromkeys([*made, *laid_out, *drawn, *SHARED_FILES]))
        for name in wanted:
            if not (self.folder / name).is_file():
                raise DpmcError(f"{self.folder / name} is missing: the run must be finished first")
        return wanted

    def table(self, name: str) -> pd.DataFrame:
        """Return a table.

        Raises
        ------
        DpmcError
            If its file cannot be read.
        """
        path = self.folder / f"{name}.csv"
        try:
            return pd.read_csv(path)
        except (OSError, ValueError) as error:
            raise DpmcError(f"{path}: {str(error).splitlines()[0]}") from None

    def size(self, name: str) -> tuple[int, int]:
        """Return the width and height of a figure, in pixels.

        Raises
        ------
        DpmcError
            If its file does not say.
        """
        path = self.folder / f"{name}.svg"
        head = path.read_text(encoding="utf-8")[:4000]
        match = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', head)
        if match is None:
            raise DpmcError(f"{path}: `viewBox` must be present in a figure, got none")
        width, height = (round(PIXELS_PER_POINT * float(text)) for text in match.groups())
        return width, height


def cited(config: Mapping[str, Any]) -> str:
    """Return the authors and the year of a document in short."""
    names = [name.split()[-1] for name in re.split(r", | and ", str(config["authors"]))]
    short = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return f"{short} {config['year']}"
