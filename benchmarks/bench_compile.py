"""Time what a first fit compiles, as processor time: parts linked, and each compiled for itself.

``uv run python benchmarks/bench_compile.py``. Each fit is the first one of a process whose folder
of compiled code is empty, less the same fit once more. The second column compiles every function
for itself before it is linked, as Numba does; the ratio of both hardly depends on the machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

ROWS = "import numpy as np; rng = np.random.default_rng(1); x = rng.standard_normal((2000, 3)); "
FITS = {
    "automatic, logistic": ROWS + "y = (rng.random(2000) < 0.5).astype(float); "
    "fit = lambda: dpmc.regression(x, y, likelihood='logistic', epsilon=1.0, delta=1e-6, seed=1)",
    "DP-HMC, banana": "task = dpmc.task('banana-2-v1'); "
    "fit = lambda: dpmc.fit('dp_hmc', task.model, task.rows, epsilon=4.0, delta=1e-6, seed=1, "
    "step_size=0.006, num_leapfrog_steps=5, ratio_clip_bound=0.1, gradient_clip_bound=0.05, "
    "ratio_noise_multiplier=30.0, gradient_noise_multiplier=170.0)",
    "DP-SGLD, banana": "task = dpmc.task('banana-2-v1'); "
    "fit = lambda: dpmc.fit('dp_sgld', task.model, task.rows, epsilon=1.0, delta=1e-6, seed=1, "
    "batch_size=1000, gradient_clip_bound=0.2, step_size=1.0, noise_scale=2.0)",
    "MCMC-normalX": ROWS + "y = x @ np.ones(3) + rng.standard_normal(2000); "
    "fit = lambda: dpmc.linear_regression(x, y, method='mcmc_normal_x', epsilon=1.0, delta=1e-6, "
    "x_bound=4.0, y_bound=8.0, seed=1, num_draws=200)",
}
FOR_ITSELF = "from dpmc.numerics import jit; jit._part = lambda whole: whole; "
TIMED = (
    "import time; start = time.process_time(); fit(); first = time.process_time() - start; "
    "start = time.process_time(); fit(); print(first - (time.process_time() - start))"
)


def seconds(text: str, before: str = "") -> float:
    """Return the processor time of compiling in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        code = f"{before}import dpmc; {text}; {TIMED}"
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-W", "ignore", "-c", code]
        out = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
    return float(out.stdout.split()[-1])


def main() -> None:
    """Print a line for each fit."""
    print(f"{'first fit':22} {'linked, s':>10} {'for itself, s':>14} {'ratio':>6}")
    for name, text in FITS.items():
        linked, apart = seconds(text), seconds(text, FOR_ITSELF)
        print(f"{name:22} {linked:10.1f} {apart:14.1f} {linked / apart:6.2f}", flush=True)


if __name__ == "__main__":
    main()
