"""The YAML configuration: read, merged with a scale and checked before any work starts.

What is read is checked against the schemas of :mod:`dpmc_papers.config.settings`, whose frozen
types it becomes; names and parameters are checked by
:mod:`dpmc_papers.config.crosschecks`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from dpmc.registry import listed, refusal
from dpmc.types import DpmcError
from dpmc.yaml_files import checked, read_typed, read_yaml, typed
from dpmc_papers.config import settings
from dpmc_papers.config.crosschecks import check_paper
from dpmc_papers.config.settings import Paper, RunSettings, Scale


@dataclass(frozen=True)
class Config:
    """What a run computes: everything that the YAML files say, merged and checked.

    Parameters
    ----------
    scale : str
        Name of the scale.
    results_dir : str
        Folder of all results.
    seeds_per_job : int
        The most replicates that one job of chains computes.
    papers : mapping of str to Paper
        The settings of each paper, by its key.
    root : Path
        Folder that holds ``config/`` and ``workflow/``.
    """

    scale: str
    results_dir: str
    seeds_per_job: int
    papers: Mapping[str, Paper]
    root: Path = Path()


def load_config(
    source: Mapping[str, Any] | Path, root: Path | None = None, *, check: bool = True
) -> Config:
    """Read a configuration, the scale and the papers that it names.

    Parameters
    ----------
    source : mapping or Path
        The contents of ``config/config.yaml``, or its path.
    root : Path, optional
        Folder that holds ``config/``; the current one by default.
    check : bool
        False for a job, whose run has checked it.

    Returns
    -------
    Config
        Checked against the closed schemas and the code.
    """
    root = root or Path()
    where = str(source) if isinstance(source, Path) else "config"
    values = dict(read_yaml(source) if isinstance(source, Path) else source)
    if isinstance(values.get("papers"), str):
        values["papers"] = [key.strip() for key in values["papers"].split(",")]
    run = checked(values, RunSettings, where) if check else typed(values, RunSettings)
    if any(path.exists() and not path.is_dir() for path in _above(Path(run.results_dir))):
        wanted = "a folder, or the place of a new one"
        raise DpmcError(f"{where}: {refusal('results_dir', wanted, run.results_dir)}")
    scale_path = _known(root / "config" / "scales", "scale", run.scale)
    scale = read_typed(scale_path, Scale) if check else typed(read_yaml(scale_path), Scale)
    known = _stems(root / "config" / "papers")
    for key in scale.papers:
        if key not in known:
            wanted = f"the key of a document ({listed(known)})"
            raise DpmcError(f"{scale_path}: {refusal(f'papers.{key}', wanted, None, known)}")
    papers = {}
    for key in run.papers:
        path = _known(root / "config" / "papers", "papers", key)
        where = f"{path} (scale {run.scale})"
        merged = merge(read_yaml(path), scale.papers.get(key, {}), where)
        values = settings.whole(merged)
        if check:
            paper = checked(values, Paper, where)
            check_paper(paper, key, where)
        else:
            paper = typed(values, Paper)
        papers[key] = msgspec.structs.replace(paper, shared={})
    return Config(
        scale=run.scale,
        results_dir=str(Path(run.results_dir)),
        seeds_per_job=scale.seeds_per_job,
        papers=papers,
        root=root,
    )


def _above(folder: Path) -> list[Path]:
    return [folder, *folder.parents]


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return `base` changed by `overlay`, key by key at every depth.

    Lists and numbers are replaced; null removes a key. Both arguments stay as they are.
    """
    merged = copy.deepcopy(dict(base))
    for key, value in overlay.items():
        if value is None:
            if key not in merged:
                wanted = f"one of {listed(merged)}, to be removed by null"
                raise DpmcError(f"{where}: {refusal('key', wanted, key, merged)}")
            del merged[key]
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value, f"{where}: {key}")
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def scales(root: Path | None = None) -> tuple[str, ...]:
    """Sorted names of the scales under `root`."""
    return _stems((root or Path()) / "config" / "scales")


def papers(root: Path | None = None) -> tuple[str, ...]:
    """Sorted keys of the papers under `root`."""
    return _stems((root or Path()) / "config" / "papers")


def _stems(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in folder.glob("*.yaml")))


def _known(folder: Path, kind: str, name: str) -> Path:
    known = _stems(folder)
    if name not in known:
        raise DpmcError(refusal(kind, f"one of {listed(known)}", name, known))
    return folder / f"{name}.yaml"
