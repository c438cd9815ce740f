"""Compare the numbers of two runs: every CSV file of one folder of results with that of another.

``uv run python benchmarks/compare_results.py before/results/quick after/results/quick``. Numbers
are equal to a relative difference of 1e-9, texts exactly. Run times are no results and are left
out (``--without``). Exits with 1 if anything differs or is missing.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from pathlib import Path

import numpy as np
import pandas as pd

RELATIVE = 1e-9
RUN_TIMES = ("*figure7_2.data.csv",)


def difference(before: Path, after: Path) -> str:
    """Return in words how two tables differ, nothing if they do not."""
    if before.read_bytes() == after.read_bytes():
        return ""
    old, new = pd.read_csv(before), pd.read_csv(after)
    if list(old.columns) != list(new.columns):
        return f"columns {sorted(set(old.columns) ^ set(new.columns)) or 'in another order'}"
    if len(old) != len(new):
        return f"{len(old)} rows, now {len(new)}"
    found = []
    for name in old:
        if pd.api.types.is_numeric_dtype(old[name]) and pd.api.types.is_numeric_dtype(new[name]):
            same = np.isclose(new[name], old[name], rtol=RELATIVE, atol=0, equal_nan=True)
        else:
            words = [table[name].astype(object).fillna("").astype(str) for table in (old, new)]
            same = (words[0] == words[1]).to_numpy()
        if not same.all():
            found.append(f"{name} in {(~same).sum()} of {len(same)} rows")
    return ", ".join(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--without", nargs="*", default=list(RUN_TIMES), metavar="PATTERN")
    asked = parser.parse_args()
    names = sorted(
        name
        for name in (str(p.relative_to(asked.before)) for p in asked.before.rglob("*.csv"))
        if not any(fnmatch.fnmatch(name, pattern) for pattern in asked.without)
    )
    if not names:
        print(f"{asked.before}: no CSV files", file=sys.stderr)
        return 1
    wrong = 0
    for name in names:
        there = (asked.after / name).is_file()
        told = difference(asked.before / name, asked.after / name) if there else "missing"
        wrong += bool(told)
        if told:
            print(f"{name}: {told}")
    print(f"{len(names) - wrong} of {len(names)} tables are the same")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
