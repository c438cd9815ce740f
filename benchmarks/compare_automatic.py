"""Compare `dpmc.fit` without settings with the methods of two documents, on their problems.

``uv run python benchmarks/compare_automatic.py`` fits each problem of the Gaussian, banana and
circle posteriors at several budgets, and prints a Markdown table of the maximum mean discrepancy
(MMD) from exact draws: medians of fits, beside the best median that a method of the published runs
has whose (epsilon, delta) holds, and the median of exact draws against exact draws. The methods of
the documents were tuned without privacy; the automatic one has no settings. An asterisk marks
budgets at which it says that they do not carry the posterior.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import dpmc
from dpmc.diagnostics.mmd import Reference, discrepancies
from dpmc.rng import stream
from dpmc.types import Array
from dpmc_papers.config import problems, reader
from dpmc_papers.config.setups import ProblemSetup

ROOT = Path(__file__).parents[1]
EXPERIMENTS = {"raisa2021thesis": "text", "raisa2021dphmc": "comparison"}


def published(key: str) -> pd.DataFrame:
    """Return the median MMD of each problem, method and epsilon whose guarantee holds."""
    runs = pd.read_parquet(ROOT / "results" / "published" / key / "runs.parquet")
    runs = runs[runs["experiment"] == EXPERIMENTS[key]]
    runs = runs[runs["guarantee_epsilon"] <= runs["epsilon"] * (1 + 1e-6)]
    groups = runs.groupby(["problem", "label", "epsilon"], as_index=False)
    return groups["mmd"].median()


def distance(draws: Array, reference: Reference) -> float:
    """Return the MMD of draws, as the metrics of chains have it."""
    rng = stream(0, "kernel width")
    return discrepancies(draws, np.ones(len(draws)), reference, rng)["mmd"]


def compare(key: str, repeats: int) -> Iterator[str]:
    """Yield the lines of one document."""
    source = {"scale": "paper", "papers": [key], "results_dir": "results"}
    paper = reader.load_config(source, ROOT).papers[key]
    others = published(key)
    for name in sorted(set(others["problem"])):
        problem = ProblemSetup.of(name, paper.problems[name])
        dataset = problems.make_data(problem, paper.seed)
        model = problems.make_model(problem)
        reference, exact = problems.make_reference(
            problem, dataset, paper.seed, paper.reference.num_draws, 1
        )
        prepared = Reference.of(reference)
        floor = distance(exact, prepared)
        of_problem = others[others["problem"] == name]
        for epsilon in sorted(set(of_problem["epsilon"])):
            found, remarks = [], 0
            for seed in range(repeats):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", dpmc.PosteriorWarning)
                    fit = dpmc.fit(
                        model, dataset, epsilon=epsilon, delta=problem.delta, seed=seed,
                        num_chains=1, num_draws=len(reference),
                    )  # fmt: skip
                found.append(distance(fit.draws[0], prepared))
                remarks += bool(fit.remarks)
            best = of_problem[of_problem["epsilon"] == epsilon].nsmallest(1, "mmd").iloc[0]
            low, middle, high = np.quantile(found, [0.25, 0.5, 0.75])
            told = "\\*" if remarks > repeats / 2 else ""
            yield (
                f"| {name} | {epsilon:g} | {middle:.3f}{told} ({low:.3f} to {high:.3f}) "
                f"| {best['mmd']:.3f} | {best['label']} | {floor:.3f} |"
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("papers", nargs="*", default=[], help="keys of documents; both by default")
    parser.add_argument("--repeats", type=int, default=10)
    given = parser.parse_args()
    print(
        "| problem | epsilon | automatic: median (quartiles) | best method | which | exact draws |"
    )
    print("|" + " --- |" * 6)
    for key in given.papers or EXPERIMENTS:
        for line in compare(key, given.repeats):
            print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
