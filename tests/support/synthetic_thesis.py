"""Invented runs of Räisä 2021 for tests of its figures, tables and captions."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dpmc.fits import Fit
from dpmc.types import Guarantee
from dpmc_papers.config.problems import make_data
from dpmc_papers.config.setups import ProblemSetup
from dpmc_papers.pipeline.results import Context
from tests.support.synthetic import row, table

COMPARISONS = (
    "figure6_3", "figure6_4", "figure6_5", "figure6_6", "figure6_7", "figure6_8",
    "figure_variants", "figure_mala",
)  # fmt: skip
EPSILONS = (1, 2, 3, 4, 5, 6)
CIRCLE_EPSILONS = (0.5, 0.75, 1)
FULL_DATA = ("dp_hmc", "dp_penalty", "dp_penalty_ocu_gwmh")
SUBSAMPLED = ("minibatch_penalty", "minibatch_penalty_ocu_gwmh", "dp_barker")
# Share of the epsilon asked for that a run really has.
GUARANTEES = {"as_published": 0.6, "corrected": 1.0, "pld": 0.3, "added": 1.0}
BOUNDS = (0.5, 1, 2, 4, 6, 8, 10, 1000)
CLIPPED = (0.55, 0.3, 0.12, 0.04, 0.02, 0.01, 0.005, 0.0)
LEAPFROG_STEPS = 48


def method_of(algorithm):
    return algorithm.removesuffix("_ocu_gwmh")


def _banana(label, dim, curvature=20, num_rows=100000, start=0.02, tempering=None):
    theta, variances = [0, 3, *[0] * (dim - 2)], [20, 2.5, *[1] * (dim - 2)]
    data = {"num_rows": num_rows, "theta": theta, "variances": variances, "curvature": curvature}
    model = {"curvature": curvature, "variances": variances, "prior_variance": 1000}
    if tempering is not None:
        model["tempering"] = tempering
    return {
        "label": label,
        "data": {"name": "banana_rows", "params": data},
        "model": {"name": "banana", "params": model},
        "start": {"rule": "around_truth", "scale": start},
        "delta": 0.1 / num_rows,
    }


def _circle(label, start):
    return {
        "label": label,
        "data": {"name": "circle_rows", "params": {"num_rows": 100000, "mean": 3, "sd": 1}},
        "model": {"name": "circle", "params": {"scale": 1.0e-5}},
        "start": start,
        "delta": 1e-6,
    }


COVARIANCE = [[1, 0.999], [0.999, 1]]
GAUSSIAN = {
    "label": "Correlated Gaussian",
    "data": {
        "name": "gaussian_rows",
        "params": {"num_rows": 200000, "mean": [0, 3], "covariance": COVARIANCE},
    },
    "model": {
        "name": "gaussian_mean",
        "params": {"dim": 2, "covariance": COVARIANCE, "prior_variance": 100},
    },
    "start": {"rule": "around_truth", "scale": 0.005},
    "delta": 5e-7,
}
MODELS = {
    "flat_banana_2d": _banana("Flat banana, d = 2", 2),
    "flat_banana_10d": _banana("Flat banana, d = 10", 10, num_rows=200000),
    "tempered_banana_2d": _banana("Tempered banana, d = 2", 2, tempering=0.01),
    "tempered_banana_10d": _banana("Tempered banana, d = 10", 10, num_rows=200000, tempering=0.005),
    "gauss_30d": _banana("Gaussian, d = 30", 30, curvature=0, num_rows=200000),
    "narrow_banana_2d": _banana("Narrow banana", 2, curvature=350, num_rows=150000),
    "corr_gauss_2d": GAUSSIAN,
    "circle": _circle("Circle", {"rule": "around", "centre": [0, 1], "scale": 0.1}),
}
CLIPPING = {
    f"clipping_banana_{dim}d{ending}": _banana(f"Banana, d = {dim}{words}", dim)
    for ending, words in (("", ""), ("_at_truth", ", starts at the truth"))
    for dim in (2, 10)
}
FROM_START = _circle("Circle from (0, 1)", {"rule": "at", "centre": [0, 1]})
TRAJECTORY = {
    "method": "dp_hmc",
    "variant": "as_published",
    "params": {"num_leapfrog_steps": LEAPFROG_STEPS, "store": "points"},
}
BARKER = {"batch_size": 1300, "noise_variance": 2, "clip_scale": 1}
ACCOUNTING = {
    "dp_penalty": {"method": "dp_penalty", "params": {"ratio_noise_multiplier": 31.6}},
    "minibatch_penalty": {
        "method": "minibatch_penalty",
        "params": {"ratio_noise_multiplier": 0.95},
    },
    "dp_hmc": {"method": "dp_hmc", "params": {"ratio_noise_multiplier": 31.6}},
    "dp_barker": {"method": "dp_barker", "params": BARKER},
}


def variants_of(algorithm):
    if algorithm == "dp_barker":
        return ("as_published", "corrected", "pld")
    if algorithm.startswith("minibatch"):
        return ("as_published", "corrected")
    return ("added",) if algorithm == "dp_mala" else ("as_published",)


def algorithms_of(problem):
    subsampled = SUBSAMPLED if problem.startswith(("flat", "tempered")) else ()
    added = ("dp_mala",) if problem.endswith(("2d", "circle")) else ()
    return FULL_DATA + subsampled + added


def label_of(algorithm, variant):
    return algorithm if variant == "as_published" else f"{algorithm}-{variant}"


def methods_of(problem):
    return {
        label_of(algorithm, variant): {
            "method": method_of(algorithm), "variant": variant, "params": {"proposal_sd": 0.01},
        }
        for algorithm in algorithms_of(problem)
        for variant in variants_of(algorithm)
    }  # fmt: skip


def comparison(rng, experiment, replicates=20, epsilons=EPSILONS):
    ending = "" if experiment == "text" else "_final"
    for problem in MODELS:
        for k, algorithm in enumerate(algorithms_of(problem)):
            for variant in variants_of(algorithm):
                label = label_of(algorithm, variant)
                for epsilon in CIRCLE_EPSILONS if problem == "circle" else epsilons:
                    level = 0.05 + (0.45 + 0.04 * k) * math.exp(-0.22 * epsilon)
                    clipped = 0.6 if algorithm == "dp_barker" else 0.03 + 0.01 * k
                    for replicate in range(replicates):
                        yield row(
                            rng, level=level, experiment=experiment, problem=problem + ending,
                            label=label, method=method_of(algorithm), variant=variant,
                            point=f"eps={epsilon}", epsilon=epsilon, replicate=replicate,
                            num_chains=1, guarantee_epsilon=epsilon * GUARANTEES[variant],
                            ratio_clip_fraction=min(1, clipped * math.exp(0.3 * rng.normal())),
                            gradient_clip_fraction=0.4 * math.exp(0.2 * rng.normal())
                            if algorithm in ("dp_hmc", "dp_mala") else None,
                        )  # fmt: skip


def clipping(rng, replicates=20, bounds=BOUNDS):
    for problem in CLIPPING:
        variant = "as_published" if problem.endswith("at_truth") else "corrected"
        for method in ("rwmh", "hmc"):
            label = label_of(method, variant)
            for bound in bounds:
                clipped = CLIPPED[BOUNDS.index(bound)]
                for replicate in range(replicates):
                    yield row(
                        rng, level=0.04 + 0.5 * clipped, experiment="clipping", problem=problem,
                        label=label, method=method, variant=variant, num_chains=1,
                        point=f"clip_bound={bound:g}", clip_bound=bound, replicate=replicate,
                        guarantee_epsilon=math.inf, guarantee_delta=0.0, guarantee_accountant="",
                        noise_multipliers="", accountant="", delta=None,
                        ratio_clip_fraction=float(np.clip(clipped + 0.01 * rng.normal(), 0, 1)),
                    )  # fmt: skip


def curves(points=12):
    """Return counts that grow like those of a Gaussian composition."""
    factors = {
        "dp_penalty": {"zcdp": 30, "gaussian": 40},
        "minibatch_penalty": {
            "rdp_truncated": 41, "rdp_integer": 40, "rdp": 50, "poisson_pair": 75,
            "subsampled": 105,
        },
        "dp_hmc": {"zcdp": 18, "gaussian": 24},
        "dp_barker": {"barker_rdp_published": 105, "barker_rdp": 3000, "barker_pld": 98000},
    }  # fmt: skip
    parts = [
        {
            "label": method, "method": method, "accountant": accountant,
            "upper_bound": accountant != "rdp_truncated", "epsilon": epsilon, "delta": 1e-6,
            "num_iterations": int(factor * epsilon**2),
        }
        for method, entries in factors.items()
        for accountant, factor in entries.items()
        for epsilon in np.linspace(0.5, 6, points)
    ]  # fmt: skip
    return pd.DataFrame(parts)


def trajectory(rng, proposals=20):
    """Return walks along the circle, every point of every proposal stored."""
    size = LEAPFROG_STEPS + 1
    angles = np.cumsum(0.05 * rng.random(proposals * size))
    radii = math.sqrt(10) + 0.1 * rng.normal(size=angles.size)
    draws = np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1)[None]
    info = {"accepted": np.repeat(np.arange(proposals) % 2 == 1, size)[None]}
    guarantee = Guarantee(1.0, 1e-6, accountant="gaussian")
    return Fit(draws, info, {}, "complete", (), guarantee)


def baselines(rng, problems):
    for problem in problems:
        for replicate in range(10):
            yield row(
                rng, level=0.02, experiment="baseline", problem=problem, label="reference",
                replicate=replicate,
            )  # fmt: skip


def config(experiments):
    finals = {
        f"{name}_final": {**entry, "start": {"rule": "around_truth", "scale": "reference"}}
        for name, entry in MODELS.items()
    }
    clipped = {
        ending: {
            method: {"method": method, "variant": variant, "params": {"proposal_sd": 0.01}}
            for method in ("rwmh", "hmc")
        }
        for ending, variant in (("", "corrected"), ("_at_truth", "as_published"))
    }
    methods = {
        "text": {name: methods_of(name) for name in MODELS},
        "final": {f"{name}_final": methods_of(name) for name in MODELS},
        "clipping": {
            name: clipped["_at_truth" if name.endswith("truth") else ""] for name in CLIPPING
        },
        "trajectory": {"circle_from_start": {"dp_hmc": TRAJECTORY}},
    }
    return {
        "paper": "raisa2021thesis",
        "title": "Differentially Private Markov Chain Monte Carlo",
        "authors": "O. Räisä",
        "year": 2021,
        "seed": 1,
        "problems": {**MODELS, **finals, **CLIPPING, "circle_from_start": FROM_START},
        "experiments": {
            name: {"num_chains": 1, "replicates": 20, "methods": methods[name]}
            for name in experiments
        },
        "accounting": {"figure6_1": {"delta": 1e-6, "num_rows": 100000, "settings": ACCOUNTING}},
        "reference": {"num_draws": 1000, "num_baselines": 10},
        "outputs": {},
    }


def datasets(settings, names):
    problems = settings["problems"]
    return {name: make_data(ProblemSetup.read(name, problems[name]), 1) for name in names}


def context(experiment="text", seed=0, replicates=20, epsilons=EPSILONS, data=()):
    """Return what a figure of one experiment is made from."""
    rng = np.random.default_rng(seed)
    settings = config([experiment])
    makers = {
        "clipping": lambda: clipping(rng, replicates),
        "trajectory": lambda: iter(()),
    }
    make = makers.get(experiment, lambda: comparison(rng, experiment, replicates, epsilons))
    fits = {}
    if experiment == "trajectory":
        fits = {("circle_from_start", "dp_hmc"): [(0, trajectory(rng))]}
    return Context(
        settings,
        table(make()),
        table(baselines(rng, settings["problems"])),
        fits,
        datasets=datasets(settings, data),
        curves={"figure6_1": curves()},
    )
