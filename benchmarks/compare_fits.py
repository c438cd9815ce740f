"""Compare fits with a seed, by the code of today and by that of an older commit, bit for bit.

``uv run python benchmarks/compare_fits.py 048278b``. Every private method runs on a Gaussian and on
a banana, and so do the automatic fit, three samplers of regressions and a selected statistic.
Draws, and the kinds and numbers of releases, are compared by their digests; noise shows where it
decides a move. Both commits have the packages of today. Exits with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
BUDGET = {"epsilon": 4, "delta": 1e-6, "seed": 5, "progress": False}
WALK = {"proposal_sd": 0.01, "ratio_noise_multiplier": 20.0, "ratio_clip_bound": 2.0}
GRADIENTS = {
    "step_size": 0.01,
    "ratio_noise_multiplier": 30.0,
    "gradient_noise_multiplier": 30.0,
    "gradient_clip_bound": 2.0,
    "ratio_clip_bound": 2.0,
}
BATCH = {"batch_size": 500, "gradient_clip_bound": 2.0, "step_size": 0.5}
METHODS: dict[str, list[dict[str, Any]]] = {
    "dp_penalty": [{}, WALK, {**WALK, "one_component": True, "guided": True}],
    "dp_hmc": [{}, {**GRADIENTS, "num_leapfrog_steps": 4}],
    "dp_mala": [{}, GRADIENTS],
    "minibatch_penalty": [{}, {**WALK, "batch_size": 500}],
    "dp_barker": [{}, {"proposal_sd": 0.01, "batch_size": 500}],
    "dp_sgld": [{}, BATCH],
    "dp_sgnht": [{}, {**BATCH, "friction": 0.5}],
}
LINEAR = ("mcmc_fixed_s", "mcmc_normal_x", "mcmc_bs")


def digest(fit: Any) -> str:
    """A digest of the draws of a fit, and of the kinds and numbers of its releases."""
    # Chain after chain: older commits have the axis of the chains, which are fewer, second.
    draws = np.moveaxis(fit.draws, int(np.argmin(fit.draws.shape[:2])), 0)
    told = np.ascontiguousarray(draws).tobytes() + repr(fit.ledger).encode()
    return hashlib.sha256(told).hexdigest()[:16]


def fits() -> Iterator[tuple[str, str]]:
    """Every fit by name, and its digest."""
    import dpmc
    from dpmc import statsel
    from dpmc.models import banana, gaussian_mean

    rng = np.random.default_rng(3)
    gaussian = gaussian_mean.Params(4, np.eye(4).tolist(), prior_variance=100.0)
    ridge = banana.Params(1.5, [2.0, 0.5], prior_variance=3.0, shift=0.2, centre=-0.1)
    wide, narrow = rng.normal(size=(20_000, 4)), rng.normal(size=(20_000, 2))
    problems = {
        "gaussian": (gaussian_mean.build(gaussian), wide),
        "banana": (banana.build(ridge), narrow),
    }
    chains = {**BUDGET, "num_chains": 2, "diagnostics": "exact", "max_iterations": 300}
    for problem, (model, rows) in problems.items():
        for method, settings in METHODS.items():
            for number, params in enumerate(settings):
                fit = dpmc.fit(model, rows, method=method, **chains, **params)
                yield f"{problem} {method} {number}", digest(fit)
    model, rows = problems["gaussian"]
    yield "gaussian auto", digest(dpmc.fit(model, rows, **BUDGET, num_draws=200))
    y = wide @ [1.0, 2.0, 3.0, 4.0] + rng.normal(size=len(wide))
    bounds = {"x_bound": 4.0, "y_bound": 12.0, "num_nodes": 2, "num_draws": 300}
    for method in LINEAR:
        fit = dpmc.linear_regression(wide, y, **BUDGET, **bounds, method=method)
        yield f"regression {method}", digest(fit)
    records = statsel.population("normal_variance", bound=10.0)
    x = records.draw(2.0, np.random.default_rng(1), 100)
    candidates = [statsel.statistic(name) for name in ("abs_1", "abs_2")]
    parts = x, records, candidates, statsel.mechanism("laplace")
    chain = {"theta": 2.0, "prior": (0.0, 100.0), "num_draws": 500, "seed": 1, "progress": False}
    yield "select_statistic", digest(dpmc.select_statistic(*parts, epsilon=5, **chain))


def printed(source: Path) -> dict[str, str]:
    """The digests of all fits by the code in a folder."""
    command = [sys.executable, __file__, "--print"]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{source}: {done.stderr.strip().splitlines()[-1]}")
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", help="an older one")
    parser.add_argument("--print", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.print:
        warnings.simplefilter("ignore")
        for name, value in fits():
            print(name, value, flush=True)
        return 0
    if asked.commit is None:
        parser.error("a commit must be given")
    with tempfile.TemporaryDirectory() as aside:
        folder, git = Path(aside) / "dpmc", ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(folder), asked.commit], check=True)
        try:
            before = printed(folder / "src")
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)
    now = printed(ROOT / "src")
    different = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    for name in different:
        print(f"{name}: differs")
    print(f"{len(now) - len(different)} of {len(now)} fits are the same to the last bit")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
