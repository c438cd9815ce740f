"""Ten million rows in files: written and read in parts, never all of them in memory.

uv run python docs/examples/big_files.py [rows]
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import dpmc
from dpmc.models import linear

PART = 500_000
NAMES = ["constant", "km", "rush", "log_sigma"]


def write(folder, number, rng):
    """Write parts of trips: distance in km, hour of the day, and minutes."""
    for k, start in enumerate(range(0, number, PART)):
        size = min(PART, number - start)
        trips = pd.DataFrame({"km": rng.gamma(2, 4, size), "rush": rng.random(size) < 0.2})
        trips["minutes"] = 5 + 2 * trips.km + 6 * trips.rush + rng.normal(0, 4, size)
        trips.astype("float32").to_parquet(folder / f"part-{k:03}.parquet")


def main(path="docs/images/big_files.png", number=10_000_000):
    """Fit minutes of trips to the folder, and draw what so many rows tell under epsilon 0.1."""
    model = linear.build(linear.Params(2))
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), number, np.random.default_rng(7))
        start = time.perf_counter()
        fit = dpmc.fit(model, name, epsilon=0.1, delta=1e-9, names=NAMES)
        print(f"{number:,} rows in {time.perf_counter() - start:.0f} s", fit.summary(), sep="\n")
    fit.plot().savefig(path, dpi=110)
    return fit


if __name__ == "__main__":
    main(number=int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
