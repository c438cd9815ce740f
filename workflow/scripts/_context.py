"""Read what an output is made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from dpmc import store
from dpmc.outputs._context import Context


def read_context(files: Any) -> Context:
    """Return what the files of an output hold: settings, metrics, samples and chains."""
    config = json.loads(Path(files.request).read_text(encoding="utf-8"))
    fits: dict[tuple[str, str], list[Any]] = {}
    for path in files.get("chains", ()):
        *_, problem, label, _, _ = Path(path).parts
        fits.setdefault((problem, label), []).extend(store.read_fits(path)[1])
    references = {}
    for path in files.get("references", ()):
        references[Path(path).stem.rpartition("-")[0]] = store.read_array(path)
    return Context(
        config=config,
        metrics=store.read_tables(files.metrics),
        baselines=store.read_tables(files.baselines) if files.baselines else pd.DataFrame(),
        fits=fits,
        references=references,
    )
