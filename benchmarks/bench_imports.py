"""Time what a job imports before it works, as processor time: the least of several processes.

``uv run python benchmarks/bench_imports.py``. The unit is the time of importing NumPy and pyarrow,
which every job that reads or writes a table does, so that a slow or busy machine changes little.
Beside the time stands which of the heavy packages a job of the kind has loaded.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

UNIT = "import numpy, pyarrow.parquet"
STORE = "from dpmc.experiments.pipeline import store"
REGISTRY = "from dpmc import registry"
KINDS = {
    "chain": f"from dpmc.experiments.pipeline import run_chains; {STORE}; {REGISTRY}; "
    "registry.load('method', 'dp_hmc'); registry.load('model', 'banana')",
    "study, regression": f"{STORE}; {REGISTRY}; registry.load('study', 'regression')",
    "study, mixture": f"{STORE}; {REGISTRY}; registry.load('study', 'mixture')",
    "study, networks": f"{STORE}; {REGISTRY}; registry.load('study', 'networks')",
    "study, selection": f"{STORE}; {REGISTRY}; registry.load('study', 'statsel_information')",
    "metrics": f"from dpmc.experiments.pipeline import chain_metrics; {STORE}",
    "figure": f"{STORE}; from dpmc.experiments.outputs import _tables; "
    f"from dpmc.experiments.plots import drawn, save; {REGISTRY}; "
    "registry.load('output', 'raisa2021dphmc')",
    "table": f"{STORE}; from dpmc.experiments.outputs import _tables; {REGISTRY}; "
    "registry.load('output', 'alparslan2023thesis')",
}
HEAVY = (
    "pandas",
    "numba",
    "scipy.special",
    "scipy.stats",
    "matplotlib",
    "seaborn",
    "arviz",
    "dp_accounting",
)


def run(text: str) -> tuple[float, str]:
    """Return the processor time of a text in a process of its own, and what it has loaded."""
    code = (
        f"import time, sys\nstart = time.process_time()\n{text}\n"
        f"print(time.process_time() - start, *[n for n in {HEAVY} if n in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, _, loaded = out.stdout.strip().partition(" ")
    return float(seconds), loaded


def main(repeats: int) -> None:
    """Print a line for each kind of job."""
    results: dict[str, list[tuple[float, str]]] = {}
    for _ in range(repeats):  # in turn, so that a busy minute hits all kinds
        for kind, text in {"unit": UNIT, **KINDS}.items():
            results.setdefault(kind, []).append(run(text))
    unit = min(results["unit"])[0]
    print(f"{'job':20} {'ms':>6} {'units':>6}  loaded")
    for kind, values in results.items():
        seconds, loaded = min(values)
        print(f"{kind:20} {seconds * 1e3:6.0f} {seconds / unit:6.2f}  {loaded}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    main(parser.parse_args().repeats)
