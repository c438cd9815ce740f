"""Methods that choose their own parameters, on the same rows: which one to take when.

    uv run python benchmarks/which_method.py --methods auto dp_penalty dp_hmc dp_mala
    uv run python benchmarks/which_method.py --methods dp_sgld dp_sgnht minibatch_penalty
    uv run python benchmarks/which_method.py --methods dp_barker --epsilons 1 4
    uv run python benchmarks/which_method.py --linear
    uv run python benchmarks/which_method.py --clipped --epsilons 1 4

Prints the tables of docs/methods.md: for each problem, budget and method the largest error of a
mean in posterior standard deviations, the width of the draws over that of the posterior, R-hat, and
seconds of processor time; each the median over repeats. The posterior is that of a long chain of
Hamiltonian Monte Carlo without privacy. Noise is not seeded: digits differ from run to run.
"""

from __future__ import annotations

import argparse
import functools
import time
import warnings
from collections.abc import Callable

import numpy as np

import dpmc
from dpmc.fits import Fit
from dpmc.models import logistic
from dpmc.rng import stream
from dpmc.types import Array, Model

DELTA = 1e-6
METHODS = ("auto", "dp_penalty", "dp_hmc", "dp_mala")
PROBLEMS = {"logistic, 3 coefficients": (3, 20_000), "logistic, 10 coefficients": (10, 20_000)}


def problem(dim: int, num_rows: int) -> tuple[Model, Array]:
    """A logistic regression and rows of it."""
    rng = stream(0, "data", "which_method", dim)
    x = rng.standard_normal((num_rows, dim))
    theta = rng.standard_normal(dim) / np.sqrt(dim)
    y = rng.random(num_rows) < 1 / (1 + np.exp(-x @ theta))
    return logistic.build(logistic.Params(dim, intercept=False)), np.column_stack([x, y])


def posterior(model: Model, rows: Array) -> tuple[Array, Array]:
    """Means and standard deviations, by a long chain."""
    spread = 1 / np.sqrt(len(rows) / 5)
    chain = dpmc.fit(
        model, rows, method="hmc", num_iterations=1500, num_chains=2, progress=False, seed=0,
        step_size=0.3 * spread, num_leapfrog_steps=6, start=np.zeros(model.dim),
    )  # fmt: skip
    kept = chain.kept()
    return kept.mean(axis=(0, 1)), kept.std(axis=(0, 1))


def measure(
    model: Model, rows: Array, method: str, epsilon: float
) -> tuple[Array, Array, float, float]:
    """Means, deviations, R-hat and processor time of one fit."""
    begun = time.process_time()
    fit = dpmc.fit(model, rows, method=method, epsilon=epsilon, delta=DELTA, progress=False)
    seconds = time.process_time() - begun
    kept = fit.kept()
    rhat = float(np.nanmax(fit.summary().values[:, -1]))
    return kept.mean(axis=(0, 1)), kept.std(axis=(0, 1)), rhat, seconds


def linear(epsilon: float, repeats: int) -> None:
    """Print the ways to fit a linear regression, errors in deviations of the exact posterior."""
    rng = stream(0, "data", "which_method", "linear")
    x = rng.uniform(-1, 1, (20_000, 3))
    y = x @ [1.0, -0.5, 0.2] + 0.5 * rng.standard_normal(len(x))
    mean = np.linalg.lstsq(x, y, rcond=None)[0]
    sd = 0.5 * np.sqrt(np.diag(np.linalg.inv(x.T @ x)))
    common = {"epsilon": epsilon, "delta": DELTA, "progress": False}
    # Wide bounds are twice the narrow ones, which hold for (nearly) all rows.
    ways = {
        "`regression`": lambda: dpmc.regression(x, y, intercept=False, **common),
        "`linear_regression`": lambda: dpmc.linear_regression(
            x, y, x_bound=np.sqrt(3), y_bound=3.0, **common
        ),
        "`linear_regression`, wide bounds": lambda: dpmc.linear_regression(
            x, y, x_bound=2 * np.sqrt(3), y_bound=6.0, **common
        ),
    }
    for name, way in ways.items():
        print(f"| {epsilon:g} | {name} | {judged(way, mean, sd, repeats)} |", flush=True)


def judged(way: Callable[[], Fit], mean: Array, sd: Array, repeats: int) -> str:
    """Error and width of fits of three coefficients, medians over repeats."""
    errors, widths = [], []
    for _ in range(repeats):
        kept = way().kept()[:, :, :3]
        errors.append(np.abs((kept.mean(axis=(0, 1)) - mean) / sd).max())
        widths.append(np.median(kept.std(axis=(0, 1)) / sd))
    return f"{np.median(errors):.2g} | {np.median(widths):.2g}"


def clipped(epsilon: float, repeats: int) -> None:
    """Print what samplers make of responses that bounds clip, columns as of `linear`."""
    rng = stream(0, "data", "which_method", "clipped")
    x = 0.5 * rng.standard_normal((2000, 3))
    y = x @ [1.0, -0.5, 0.2] + 0.5 * rng.standard_normal(len(x))
    mean = np.linalg.lstsq(x, y, rcond=None)[0]
    sd = 0.5 * np.sqrt(np.diag(np.linalg.inv(x.T @ x)))
    for bound in (3.0, 1.0, 0.5):
        share = np.mean(np.abs(y) > bound)
        for method in ("mcmc_bs", "data_augmentation"):
            way = functools.partial(
                dpmc.linear_regression, x, y, x_bound=2.0, y_bound=bound, method=method,
                epsilon=epsilon, delta=DELTA, progress=False,
            )  # fmt: skip
            found = judged(way, mean, sd, repeats)
            print(f"| {epsilon:g} | {bound:g} ({share:.0%}) | `{method}` | {found} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0, 16.0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--linear", action="store_true", help="the ways to a linear regression")
    parser.add_argument("--clipped", action="store_true", help="bounds that clip many responses")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.linear:
        print("| epsilon | way | error | width |")
        print("| --- | --- | --- | --- |")
        for epsilon in options.epsilons:
            linear(epsilon, options.repeats)
        return
    if options.clipped:
        print("| epsilon | bound (clipped) | method | error | width |")
        print("| --- | --- | --- | --- | --- |")
        for epsilon in options.epsilons:
            clipped(epsilon, options.repeats)
        return
    print("| posterior | epsilon | method | error | width | R-hat | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, (dim, num_rows) in PROBLEMS.items():
        model, rows = problem(dim, num_rows)
        mean, sd = posterior(model, rows)
        for epsilon in options.epsilons:
            for method in options.methods:
                fits = [measure(model, rows, method, epsilon) for _ in range(options.repeats)]
                errors = [np.abs((one[0] - mean) / sd).max() for one in fits]
                widths = [np.median(one[1] / sd) for one in fits]
                print(
                    f"| {name} | {epsilon:g} | `{method}` | {np.median(errors):.2g} | "
                    f"{np.median(widths):.2g} | {np.median([one[2] for one in fits]):.3g} | "
                    f"{np.median([one[3] for one in fits]):.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
