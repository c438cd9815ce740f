"""Invented runs at every point of the published grids, and rows that a reader cannot tell apart."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd

from dpmc import registry
from dpmc_papers.config.grids import algorithm
from dpmc_papers.config.reader import load_config
from dpmc_papers.outputs._facts import Facts
from dpmc_papers.outputs._guarantees import summary
from dpmc_papers.pipeline import chain_metrics, run_studies
from dpmc_papers.pipeline.results import Context
from dpmc_papers.pipeline.workload import Workload
from dpmc_papers.studies import _tables
from dpmc_papers.verdicts import claim_file

ROOT = Path(__file__).parents[2]
RUNS = 2
# What tells rows apart besides texts; other numbers are measured.
NUMBERS = {
    "epsilon", "theta", "clip_bound", "dim", "num_nodes", "num_particles", "num_outer",
    "num_inner", "prior_high", "place", "point", "noise_sd",
    "constant", "width", "num_rows", "num_steps",
}  # fmt: skip
# Texts that say something of a row, and not which it is.
REMARKS = {
    "status", "outside", "accountant", "guarantee_accountant", "guarantee_neighbours",
    "noise_multipliers", "privacy", "row_variances",
}  # fmt: skip


@functools.cache
def work(paper: str) -> Workload:
    """Return the jobs of a document at the published grids."""
    config = load_config({"papers": [paper], "scale": "paper", "results_dir": "results"}, ROOT)
    return Workload(config, paper)


@functools.cache
def claims(paper: str) -> dict:
    """Return the printed numbers of a document."""
    return claim_file.load(ROOT / "config" / "published" / f"{paper}.yaml")


@functools.cache
def metrics(paper: str, experiments: tuple[str, ...]) -> pd.DataFrame:
    """Return invented runs of some experiments of a document."""
    jobs, rng = work(paper), np.random.default_rng(0)
    studies = [name for name in jobs.paper.studies if name in experiments]
    files = [path for name in studies for path in jobs.studies(name)]
    tables = [_studies(jobs.files[path].settings, rng) for path in files if "/seeds=0-" in path]
    chains = [point for point in jobs.points if point.experiment in experiments]
    if chains:
        tables.append(_chains(chains, rng))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"experiment": []})


def context(paper: str, output: str) -> Context:
    """Return what an output of a document is made from, with invented numbers."""
    read = work(paper).paper.outputs[output].metrics
    config = work(paper).paper.part(output).determining()
    return Context(config, metrics(paper, tuple(read)), published=claims(paper))


def _studies(settings, rng) -> pd.DataFrame:
    rows, columns = [], {}
    for part in run_studies.parts(settings):
        columns = registry.load("study", part.setup.study).COLUMNS
        for point in part.setup.each():
            for replicate in range(RUNS):
                place = _tables.place(point, replicate)
                known = {key: value for key, value in point.point.items() if key in columns}
                rows.append({**_numbers(columns, rng), **place, **known})
    return _tables.typed(rows, columns)


def _chains(jobs, rng) -> pd.DataFrame:
    rows = []
    for job in jobs:
        setup = job.setup
        place = {
            "experiment": job.experiment, "problem": job.problem, "label": job.label,
            "algorithm": algorithm(job.label), "method": setup.method, "variant": setup.variant,
            "point": job.point, "epsilon": setup.budget.epsilon if setup.budget else math.nan,
            "clip_bound": setup.params.get("ratio_clip_bound", math.nan),
        }  # fmt: skip
        for replicate in range(RUNS):
            numbers = _numbers(chain_metrics.COLUMNS, rng)
            rows.append({**numbers, **place, "replicate": replicate})
    return _tables.typed(rows, chain_metrics.COLUMNS)


def _numbers(columns, rng) -> dict:
    values = {name: rng.uniform(0.1, 1) for name, kind in columns.items() if kind == "float64"}
    values |= {name: 4 for name, kind in columns.items() if kind == "int64"}
    return {**values, "delta": 1e-6, "guarantee_epsilon": 2.0, "status": "complete"}


def twins(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that share what tells rows apart with another one."""
    texts = {name for name in table if not pd.api.types.is_numeric_dtype(table[name])}
    labels = sorted((texts | (NUMBERS & set(table))) - REMARKS)
    assert labels, list(table)
    return table[table.duplicated(labels, keep=False)]


def as_shown(paper: str, output: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return a table as the page of its document names things."""
    made = context(paper, output)
    guarantees = _guarantees(made, work(paper).paper.outputs[output].metrics)
    return Facts(made.config, guarantees).named(table)


_known: dict[str, pd.DataFrame] = {}


def _guarantees(made: Context, experiments) -> pd.DataFrame:
    """Return the guarantees of invented runs: seconds for many outputs of the same experiments."""
    if not len(made.metrics):
        return pd.DataFrame()
    settings = {key: value for key, value in made.config.items() if key != "outputs"}
    key = json.dumps([list(experiments), settings], sort_keys=True, default=repr)
    if key not in _known:
        _known[key] = summary(made.metrics, made.config)
    return _known[key]
