"""Folders of shards for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def write(folder: Path, x: np.ndarray, cuts: Sequence[int], kind: str, group: int = 7000) -> Path:
    """Write rows as shards that end before the rows `cuts`, and return the folder."""
    folder.mkdir(parents=True)
    for k, part in enumerate(np.split(x, cuts)):
        path = folder / f"part-{k:03}"
        if kind == "npy":
            np.save(path, part)
        else:
            table = pa.table({f"c{j}": part[:, j] for j in range(x.shape[1])})
            pq.write_table(table, path.with_suffix(".parquet"), row_group_size=group)
    return folder
