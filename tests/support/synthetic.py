"""Invented runs for tests of figures, tables, verdicts and pages."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dpmc.fits import Fit
from dpmc.types import Guarantee
from dpmc_papers.config import grids
from dpmc_papers.pipeline import chain_metrics
from dpmc_papers.pipeline.results import Context

EPSILONS = (2, 4, 6, 8, 10, 12, 15)
PROBLEMS = {"paper_banana_2d": "Banana", "paper_gauss_10d": "Gaussian"}
BOUNDS = {
    "paper_banana_2d": (0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.5, 1, 10),
    "paper_gauss_10d": (0.1, 0.2, 1, 5, 10, 15, 20, 50, 100),
}
LEVEL = {
    "paper_banana_2d": {"dp_penalty": 0.2, "dp_hmc": 0.19, "dp_sgld": 0.35, "dp_sgnht": 0.4},
    "paper_gauss_10d": {"dp_penalty": 0.35, "dp_hmc": 0.2, "dp_sgld": 0.09, "dp_sgnht": 0.21},
}
VARIANTS = {
    "dp_penalty": ("as_published",),
    "dp_hmc": ("as_published",),
    "dp_sgld": ("as_published", "valid_count", "langevin", "corrected"),
    "dp_sgnht": ("as_published", "corrected"),
}
CONFIG = {
    "paper": "raisa2021dphmc",
    "title": "Differentially Private Hamiltonian Monte Carlo",
    "authors": "O. Räisä, A. Koskela, A. Honkela",
    "year": 2021,
    "problems": {name: {"label": label} for name, label in PROBLEMS.items()},
}


def row(rng, **values):
    level = values.pop("level")
    mmd = level * math.exp(0.08 * rng.normal())
    base = dict.fromkeys(chain_metrics.COLUMNS)
    base |= {
        "num_chains": 4, "num_iterations": 1000, "num_draws": 2000, "dim": 2, "delta": 1e-6,
        "mmd": mmd, "mmd_u": mmd**2, "mmd_fixed": 1.1 * mmd, "mmd_white": 1.3 * mmd,
        "mean_error": 0.8 * mmd, "mean_norm": 2 * mmd, "tail_fraction": 0.05,
        "variance_ratio": 1 + rng.normal() * 0.1,
        "acceptance_rate": 0.4, "divergences": 0, "rhat": 1 + 0.01 * rng.random(),
        "ess_bulk": 300.0, "iac": 4.0, "iac_components": "4 3",
        "guarantee_delta": 1e-6, "status": "complete",
        "noise_multipliers": "53.7587", "outside": "tuning; start points; clip fractions",
        "guarantee_accountant": "gaussian", "accountant": "gaussian",
    }  # fmt: skip
    return base | {"algorithm": grids.algorithm(str(values["label"]))} | values


def comparison(rng, replicates=10, epsilons=EPSILONS):
    for problem, levels in LEVEL.items():
        for method, level in levels.items():
            for variant in VARIANTS[method]:
                label = method if len(VARIANTS[method]) == 1 else f"{method}-{variant}"
                valid = variant in ("valid_count", "corrected") or len(VARIANTS[method]) == 1
                private = {"accountant": "subsampled" if valid else "poisson_pair"}
                if len(VARIANTS[method]) == 1:
                    private["accountant"] = "gaussian"
                for epsilon in epsilons:
                    decay = 0.35 + 1.3 * math.exp(-epsilon / 5)
                    for replicate in range(replicates):
                        yield row(
                            rng, level=level * decay, experiment="comparison", problem=problem,
                            label=label, method=method, variant=variant, point=f"eps={epsilon}",
                            epsilon=epsilon, replicate=replicate,
                            guarantee_epsilon=epsilon * (1 if valid else 0.5), **private,
                            ratio_clip_fraction=0.1 if "sg" not in method else None,
                            gradient_clip_fraction=0.15 if method != "dp_penalty" else None,
                            clip_bound={"dp_penalty": 0.15, "dp_hmc": 0.1}.get(method),
                        )  # fmt: skip


def clipping(rng, replicates=10):
    for problem, bounds in BOUNDS.items():
        for method in ("rwmh", "hmc"):
            for k, bound in enumerate(bounds):
                clipped = [0.97, 0.9, 0.7, 0.12, 0.05, 0.02, 0.004, 0.001, 0.0][k]
                level = 0.03 + 0.5 * clipped**3
                for replicate in range(replicates):
                    yield row(
                        rng, level=level, experiment="clipping", problem=problem, label=method,
                        method=method, variant="as_published", point=f"clip_bound={bound:g}",
                        clip_bound=bound, replicate=replicate, guarantee_epsilon=math.inf,
                        guarantee_delta=0.0, guarantee_accountant="", noise_multipliers="",
                        accountant="", delta=None,
                        ratio_clip_fraction=float(np.clip(clipped + 0.01 * rng.normal(), 0, 1)),
                        gradient_clip_fraction=0.001 if method == "hmc" else None,
                    )  # fmt: skip


def dimension(rng, replicates=10):
    for dim, rate in ((5, 0.55), (10, 0.4), (20, 0.15)):
        for method in ("dp_penalty", "dp_hmc"):
            for replicate in range(replicates):
                yield row(
                    rng, level=0.3, experiment="dimension", problem=f"gauss_{dim}d", label=method,
                    method=method, variant="as_published", point="eps=15", epsilon=15, dim=dim,
                    replicate=replicate, guarantee_epsilon=15.0,
                    acceptance_rate=rate + 0.01 * rng.normal(),
                )  # fmt: skip


def baselines(rng):
    for problem in PROBLEMS:
        for replicate in range(10):
            yield row(
                rng, level=0.02, experiment="baseline", problem=problem, label="reference",
                replicate=replicate,
            )  # fmt: skip


def banana(rng, size, scale=1.0, shift=0.0):
    first = shift + 0.14 * scale * rng.normal(size=size)
    return np.column_stack([first, 3 + 0.16 * rng.normal(size=size) - 20 * first**2])


def table(rows):
    made = pd.DataFrame(list(rows), columns=list(chain_metrics.COLUMNS))
    for name, kind in chain_metrics.COLUMNS.items():
        made[name] = made[name].fillna("").astype(str) if kind == "str" else made[name]
        if kind == "float64":
            made[name] = made[name].astype(float)
    return made


def context(
    seed=0, replicates=10, epsilons=EPSILONS, parts=("comparison", "clipping", "dimension")
):
    rng = np.random.default_rng(seed)
    makers = {
        "comparison": lambda: comparison(rng, replicates, epsilons),
        "clipping": lambda: clipping(rng, replicates),
        "dimension": lambda: dimension(rng, replicates),
    }
    rows = table(entry for part in parts for entry in makers[part]())
    fits = {}
    for method, scale in (
        ("dp_penalty", 1.15),
        ("dp_hmc", 1.0),
        ("dp_sgld", 0.6),
        ("dp_sgnht", 0.5),
    ):
        label = method if len(VARIANTS[method]) == 1 else f"{method}-as_published"
        runs = []
        for replicate in range(replicates):
            shift = 0.03 * rng.normal()
            draws = np.stack([banana(rng, 300, scale, shift) for _ in range(4)])
            guarantee = Guarantee(15.0, 1e-6, accountant="gaussian")
            runs.append((replicate, Fit(draws, {}, {}, "complete", (), guarantee)))
        fits["paper_banana_2d", label] = runs
    references = {"paper_banana_2d": banana(rng, 1000)[None]}
    return Context(CONFIG, rows, table(baselines(rng)), fits, references, {})
