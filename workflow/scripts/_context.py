"""Read what an output is made from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from dpmc_papers.pipeline import store
from dpmc_papers.pipeline.results import Context


def read_context(files: Any) -> Context:
    """Return what the files of an output hold: settings, metrics, samples, rows and chains."""
    config = json.loads(Path(files.request).read_text(encoding="utf-8"))
    fits: dict[tuple[str, str], list[Any]] = {}
    for path in files.get("chains", ()):
        *_, problem, label, _, _ = Path(path).parts
        fits.setdefault((problem, label), []).extend(store.read_fits(path)[1])
    metrics, baselines = files.get("metrics", ()), files.get("baselines", ())
    return Context(
        config=config,
        metrics=store.read_tables(metrics) if metrics else pd.DataFrame({"experiment": []}),
        baselines=store.read_tables(baselines) if baselines else pd.DataFrame(),
        fits=fits,
        references=_by_name(files.get("references", ()), store.read_array),
        datasets=_by_name(files.get("datasets", ()), store.read_dataset),
        curves=_by_name(files.get("curves", ()), lambda path: store.read_tables([path])),
    )


def _by_name(paths: Iterable[str], read: Callable[[str], Any]) -> dict[str, Any]:
    """Read files whose names end with a digest; the name before it is the key."""
    return {Path(path).stem.rpartition("-")[0]: read(path) for path in paths}
