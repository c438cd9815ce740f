"""Invented runs with the quartiles that the thesis prints, and verdicts on them."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from scipy.stats import norm

from dpmc_papers.pipeline.results import Context
from dpmc_papers.verdicts import claim_file, printed_series
from dpmc_papers.verdicts import judge as judge_claims

ROOT = Path(__file__).parents[2]
FILE = ROOT / "config/published/raisa2021thesis.yaml"
BATCHES = ("minibatch_penalty", "minibatch_penalty_ocu_gwmh", "dp_barker")
CLIPPED = (0.3, 0.15, 0.07, 0.03, 0.005, 0.004, 0.002, 0.0)  # by clip bound
RUNS = 20


def cells_of(block):
    """Return the entries of the printed numbers of a series, without those of its rows."""
    return [entry for entry in printed_series.expand(block) if "where" in entry["rule"]]


def two_piece(printed, size=RUNS):
    """Return `size` values, ascending, whose quartiles are about the printed ones."""
    low, middle, high = printed
    z = norm.ppf((np.arange(size) + 0.5) / size) / norm.ppf(0.75)
    return np.maximum(middle + z * np.where(z > 0, high - middle, middle - low), 0)


def boxes(file, rng):
    """Invent runs whose boxes are the printed ones, in a random order of replicates."""
    cells: dict[tuple[str, str, str, float], dict[str, np.ndarray]] = {}
    for block in printed_series.judged(file):
        for entry in cells_of(block) if block["columns"] == ["problem", "algorithm"] else ():
            where, metric = entry["rule"]["where"], entry["rule"]["metric"]
            key = (where["experiment"], where["problem"], where["algorithm"], where["epsilon"])
            values = rng.permutation(two_piece(entry["rule"]["printed"]))
            cells.setdefault(key, {})[metric] = values
    for (experiment, problem, algorithm, epsilon), metrics in cells.items():
        variants = ("as_published", "corrected") if algorithm in BATCHES else ("as_published",)
        for variant in variants:
            named = {"experiment": experiment, "problem": problem, "algorithm": algorithm}
            runs = {"variant": variant, "epsilon": epsilon, "replicate": range(RUNS)}
            kept = {"num_iterations": 1000, "num_draws": 500, "guarantee_epsilon": epsilon}
            yield pd.DataFrame({**named, **runs, **kept, **metrics})


def clipped(file, rng):
    (block,) = (b for b in file["series"] if b["id"] == "T-fig6.2-bound")
    for problem, row in block["cells"].items():
        for bound, middle, share in zip(block["axis"]["clip_bound"], row, CLIPPED, strict=True):
            for method in ("rwmh", "hmc"):
                for variant, name in (
                    ("as_published", problem),
                    ("corrected", problem.removesuffix("_at_truth")),
                ):
                    named = {"experiment": "clipping", "problem": name, "algorithm": method}
                    runs = {"variant": variant, "clip_bound": bound, "replicate": range(RUNS)}
                    values = two_piece((0.8 * middle, middle, 1.2 * middle))
                    kept = {"ratio_clip_fraction": share, "mmd": rng.permutation(values)}
                    kept |= {"num_iterations": 500, "num_draws": 250, "rhat": 1.01}
                    kept |= {"acceptance_rate": 0.9 if method == "hmc" else 0.4}
                    yield pd.DataFrame({**named, **runs, **kept})


def curves(file):
    blocks = [block for block in printed_series.judged(file) if block["rule"]["kind"] == "curve"]
    rules = [entry["rule"] for block in blocks for entry in cells_of(block)]
    table = pd.DataFrame([{**r["where"], "num_iterations": r["printed"]} for r in rules])
    valid = table[table["accountant"] == "poisson_pair"].assign(accountant="subsampled")
    whole = table[table["accountant"] == "rdp_truncated"].assign(accountant="rdp_integer")
    return pd.concat([table, valid, whole], ignore_index=True)


@functools.cache
def claimed():
    return claim_file.load(FILE)


@functools.cache
def context():
    """Return the runs, curves and configuration on which the printed numbers are true."""
    rng = np.random.default_rng(0)
    config = yaml.safe_load((ROOT / "config/papers/raisa2021thesis.yaml").read_text())
    rows = pd.concat([*boxes(claimed(), rng), *clipped(claimed(), rng)], ignore_index=True)
    rows["label"] = rows["method"] = rows["algorithm"]
    rows["status"] = "complete"
    return Context(config, rows, curves={"figure6_1": curves(claimed())})


def judge(given, entries=(), blocks=(), metrics=None, curves=None, **changes):
    """Return the verdicts of a few entries and series."""
    file = {
        "paper": "raisa2021thesis",
        "error_rate": 0.05,
        "printed_variants": ["as_published"],
        "resamples": 200,
        "seed": 1,
    }
    named = [
        {"id": str(k), "where": "here", "output": "none", "published": "x", **e}
        for k, e in enumerate(entries)
    ]
    values = {**file, "needs": {}, "entries": named, "series": list(blocks), **changes}
    rows = given.metrics if metrics is None else metrics
    changed = Context(given.config, rows, curves=given.curves if curves is None else curves)
    return judge_claims.verdicts(values, rows, pd.DataFrame(), changed)


def one(given, entry, **options):
    return judge(given, [entry], **options).iloc[0]


def runs(values, **named):
    return pd.DataFrame(
        {"experiment": "e", "variant": "as_published", "status": "complete", **named, "mmd": values}
    ).assign(replicate=lambda table: np.arange(len(table)))
