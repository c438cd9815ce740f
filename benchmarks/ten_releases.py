"""Ten releases: the posterior of `dpmc.from_release` beside quadrature that shares no code with it.

    uv run python benchmarks/ten_releases.py

Six values are from OpenDP (`opendp_releases.json`, which `opendp_releases.py` wrote). Quadrature
knows the law of the sum, or adds it up on a grid; likelihoods are on a grid of parameters.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

import dpmc
from dpmc import mechanisms, priors
from dpmc.types import Array

OPENDP = json.loads(Path(__file__).with_name("opendp_releases.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Case:
    """A problem, as arguments of `from_release`, and its log-posterior on a grid.

    `axes` are those of the grid, and `log_posterior` takes a point of it: one number each.
    """

    name: str
    model: Any
    releases: Any
    axes: tuple[Array, ...]
    log_posterior: Callable[..., float]
    options: dict[str, Any] = field(default_factory=dict)

    def quadrature(self) -> Array:
        """Means and standard deviations, shape (2, d)."""
        points = np.stack([one.ravel() for one in np.meshgrid(*self.axes, indexing="ij")], axis=1)
        with np.errstate(divide="ignore"):
            heights = np.array([self.log_posterior(*point) for point in points.tolist()])
        weights = np.exp(heights - heights.max())
        weights /= weights.sum()
        mean = weights @ points
        return np.stack([mean, np.sqrt(weights @ (points - mean) ** 2)])

    def compare(self, seed: int = 1, **options: Any) -> dict[str, Any]:
        """Largest error of a mean, in standard deviations, and of a width, as a share of it."""
        began = time.perf_counter()
        options = self.options | {"progress": False, "seed": seed, "num_draws": 400} | options
        fit = dpmc.from_release(self.model, self.releases, **options)
        seconds = time.perf_counter() - began
        mean, sd = self.quadrature()
        draws = fit.kept().reshape(-1, fit.kept().shape[2])[:, : len(mean)]
        return {
            "release": self.name,
            "method": fit.plan.method,
            "mean": float(np.abs((draws.mean(axis=0) - mean) / sd).max()),
            "width": float(np.abs(draws.std(axis=0) / sd - 1).max()),
            "seconds": seconds,
        }


def log_geometric(x: Array, scale: float) -> Array:
    return -np.abs(x) / scale + math.log(math.tanh(0.5 / scale))


def log_laplace(x: Array, scale: float) -> Array:
    return -np.abs(x) / scale - math.log(2 * scale)


def log_discrete_gaussian(x: Array, scale: float) -> Array:
    grid = np.arange(-400, 401)
    norm = special.logsumexp(-0.5 * (grid / scale) ** 2)
    return np.asarray(-0.5 * (x / scale) ** 2 - norm)


def log_mean(log_values: Array, weights: Array) -> float:
    """Logarithm of a sum of densities by weights."""
    return float(special.logsumexp(log_values, b=np.maximum(weights, 0.0)))


def power(mass: Array, number: int, size: int) -> Array:
    """Law of a sum of independent steps on a lattice that begins at 0."""
    return np.fft.irfft(np.fft.rfft(mass, size) ** number, size)


def genotypes() -> Case:
    def shares(q, f):
        mixed = 2 * q * (1 - q) * (1 - f)
        return q * q + f * q * (1 - q), mixed, (1 - q) ** 2 + f * q * (1 - q)

    def log_likelihood(p, row):
        parts = shares(p.q, p.f)
        return sum((row[0] == k) * math.log(part) for k, part in enumerate(parts))

    n, told = 60, np.array(OPENDP["genotypes"], dtype=float)
    first, second = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    inside = first + second <= n
    tables = np.stack([first[inside], second[inside], n - first[inside] - second[inside]], axis=1)
    fixed = special.gammaln(n + 1) - special.gammaln(tables + 1).sum(axis=1)
    fixed = fixed + log_geometric(told - tables, 1.5).sum(axis=1)

    def log_posterior(q, f):
        return float(special.logsumexp(fixed + special.xlogy(tables, shares(q, f)).sum(axis=1)))

    middle = (np.arange(120) + 0.5) / 120
    return Case(
        "genotypes, geometric (OpenDP)",
        dpmc.model(
            log_likelihood, {"q": priors.beta(1, 1), "f": priors.uniform(0, 1)}, num_columns=1
        ),
        dpmc.Release(told, lambda x: tuple(x == k for k in range(3)), mechanisms.geometric(1.5)),
        (middle, middle),
        log_posterior,
        {"n": n, "values": [0, 1, 2]},
    )


def incomes() -> Case:
    def log_likelihood(p, row):
        return -math.log(p.mean) - row[0] / p.mean

    def log_posterior(mean):
        step, size = 0.01, 2**15
        edges = np.concatenate([[0.0], (np.arange(500) + 0.5) * step])
        mass = np.diff(-np.exp(-edges / mean))
        mass = np.append(mass, np.exp(-edges[-1] / mean))
        total = power(mass, 40, size)
        noise = log_laplace(OPENDP["incomes"] - step * np.arange(size), 5.0)
        return log_mean(noise, total) + 3 * math.log(mean) - mean

    return Case(
        "clamped incomes, Laplace (OpenDP)",
        dpmc.model(log_likelihood, {"mean": priors.gamma(4, 1)}, num_columns=1),
        dpmc.Release(OPENDP["incomes"], lambda x: np.clip(x, 0, 5), mechanisms.laplace(5.0)),
        (np.linspace(0.3, 12, 300),),
        log_posterior,
        {"n": 40, "sample": lambda p, u: -p.mean * np.log(u)},
    )


def visits() -> Case:
    def log_likelihood(p, row):
        return row[0] * math.log(p.rate) - p.rate - math.lgamma(row[0] + 1)

    numbers = np.arange(1, 120)
    told = log_geometric(OPENDP["patients"] - numbers, 2.0)

    def log_posterior(rate):
        mass = stats.poisson.pmf(np.arange(7), rate)
        mass[6] = stats.poisson.sf(5, rate)
        noise = log_discrete_gaussian(OPENDP["visits"] - np.arange(1024), 8.0)
        parts = [log_mean(noise, power(mass, n, 1024)) for n in numbers]
        return float(special.logsumexp(told + parts)) + math.log(rate) - rate

    return Case(
        "visits and patients, discrete Gaussian, geometric (OpenDP)",
        dpmc.model(log_likelihood, {"rate": priors.gamma(2, 1)}, num_columns=1),
        dpmc.Release(
            OPENDP["visits"], lambda x: np.minimum(x, 6), mechanisms.discrete_gaussian(8.0)
        ),
        (np.linspace(0.2, 4, 80),),
        log_posterior,
        {
            "n": dpmc.Release(OPENDP["patients"], None, mechanisms.geometric(2.0)),
            "values": range(40),
        },
    )


def answers() -> Case:
    def log_likelihood(p, row):
        return row[0] * math.log(p.share) + (1 - row[0]) * math.log1p(-p.share)

    def log_posterior(share):
        yes = 0.75 * share + 0.25 * (1 - share)
        return float(stats.binom.logpmf(OPENDP["answers"], 300, yes)) + 2 * math.log1p(-share)

    return Case(
        "yes or no, randomised response (OpenDP)",
        dpmc.model(log_likelihood, {"share": priors.beta(1, 3)}, num_columns=1),
        dpmc.Release(OPENDP["answers"], lambda x: x, mechanisms.randomised_response(0.75)),
        ((np.arange(4000) + 0.5) / 4000,),
        log_posterior,
        {"n": 300, "values": [0, 1]},
    )


def scores() -> Case:
    def log_likelihood(p, row):
        return -0.5 * ((row[0] - p.mean) / 1.5) ** 2

    def log_posterior(mean):
        step, size = 0.02, 2**17
        edges = np.concatenate([[-np.inf], -3 + (np.arange(300) + 0.5) * step, [np.inf]])
        mass = np.diff(special.ndtr((edges - mean) / 1.5))
        total = power(mass, 400, size)
        sums = -3 * 400 + step * np.arange(size)
        noise = -0.5 * ((OPENDP["scores"] - sums) / 12.0) ** 2
        return log_mean(noise, total) - 0.5 * (mean / 5) ** 2

    return Case(
        "clamped scores, Gaussian (OpenDP)",
        dpmc.model(log_likelihood, {"mean": priors.normal(0, 5)}, num_columns=1),
        dpmc.Release(OPENDP["scores"], lambda x: np.clip(x, -3, 3), mechanisms.gaussian(12.0)),
        (np.linspace(0.3, 1.6, 200),),
        log_posterior,
        {"n": 400, "sample": lambda p, u: p.mean + 1.5 * special.ndtri(u)},
    )


def families() -> Case:
    def log_likelihood(p, row):
        total = sum(math.exp(-p.a * k - p.b * k * k) for k in range(6))
        return -p.a * row[0] - p.b * row[0] * row[0] - math.log(total)

    told, counts = OPENDP["families"], np.arange(130)
    noise = []
    for one in told:  # a count of 0 was 0 or less
        upper = -counts / 2.0 - math.log1p(math.exp(-0.5))
        upper = np.where(counts == 0, -math.log1p(math.exp(-0.5)), upper)
        noise.append(np.exp(upper if one == 0 else log_geometric(one - counts, 2.0)))
    number = np.exp(log_geometric(OPENDP["households"] - counts, 2.0))
    number[0] = 0.0

    def log_posterior(a, b):
        k = np.arange(6)
        shares = special.softmax(-a * k - b * k * k)
        product = np.ones(1)
        for share, density in zip(shares, noise, strict=True):
            terms = np.exp(special.xlogy(counts, share) - special.gammaln(counts + 1)) * density
            product = np.convolve(product, terms)[: len(counts)]
        sums = special.gammaln(counts + 1) + np.log(product) + np.log(number)
        return float(special.logsumexp(sums)) - 0.5 * a * a - 0.5 * (b / 0.3) ** 2

    return Case(
        "sizes of families, geometric, clamped at 0 (OpenDP)",
        dpmc.model(
            log_likelihood, {"a": priors.normal(0, 1), "b": priors.normal(0, 0.3)}, num_columns=1
        ),
        dpmc.Release(
            told,
            lambda x: tuple(x == k for k in range(6)),
            mechanisms.geometric(2.0, clamp=(0, math.inf)),
        ),
        (np.linspace(-2.5, 3.5, 61), np.linspace(-0.9, 1.1, 61)),
        log_posterior,
        {
            "n": dpmc.Release(OPENDP["households"], None, mechanisms.geometric(2.0)),
            "values": range(6),
        },
    )


def regression() -> Case:
    def log_likelihood(p, row):
        x, y = row
        return -0.5 * x * x - math.log(p.sd) - 0.5 * ((y - p.slope * x) / p.sd) ** 2

    n, noise, told = 300, 15.0, np.array([289.0, 176.0, 421.0])
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    errors = np.stack([one.ravel() for one in np.meshgrid(nodes, nodes, nodes)], axis=1)
    log_weights = np.log(
        np.prod(np.stack([one.ravel() for one in np.meshgrid(*[weights] * 3)]), axis=0)
    )
    xx, xy, yy = (told - noise * errors).T
    determinant = xx * yy - xy**2
    proper = (determinant > 0) & (xx > 0)
    fixed = log_weights[proper] + 0.5 * (n - 3) * np.log(determinant[proper])
    xx, xy, yy = xx[proper], xy[proper], yy[proper]

    def log_posterior(slope, sd):  # X'X of (x, y) has a Wishart law
        squares = xx + (yy - 2 * slope * xy + slope**2 * xx) / sd**2
        value = special.logsumexp(fixed - 0.5 * squares) - n * math.log(sd)
        return float(value) - 0.5 * (slope / 2) ** 2 - 0.5 * (sd / 2) ** 2

    return Case(
        "X'X and X'y of a regression, Gaussian",
        dpmc.model(
            log_likelihood,
            {"slope": priors.normal(0, 2), "sd": priors.half_normal(2)},
            num_columns=2,
        ),
        dpmc.Release(told, lambda x, y: (x * x, x * y, y * y), mechanisms.gaussian(noise)),
        (np.linspace(0.2, 1.0, 61), np.linspace(0.7, 1.4, 61)),
        log_posterior,
        {
            "n": n,
            "sample": lambda p, u, v: (
                special.ndtri(u),
                p.slope * special.ndtri(u) + p.sd * special.ndtri(v),
            ),
        },
    )


def rounded_mean() -> Case:
    def log_likelihood(p, row):
        return -0.5 * ((row[0] - p.mean) / 2) ** 2

    def log_posterior(mean):  # 0.0 was anything up to 0.05
        sd = math.sqrt(4 / 30 + 0.5**2)
        return float(special.log_ndtr((0.05 - mean) / sd)) - 0.5 * ((mean - 1) / 2) ** 2

    return Case(
        "a mean, Gaussian, rounded and clamped",
        dpmc.model(log_likelihood, {"mean": priors.normal(1, 2)}, num_columns=1),
        dpmc.Release(0.0, lambda x: x / 30, mechanisms.gaussian(0.5, clamp=(0, 10), rounded=0.1)),
        (np.linspace(-9, 6, 2000),),
        log_posterior,
        {"n": 30, "sample": lambda p, u: p.mean + 2 * special.ndtri(u)},
    )


def mean_and_sd() -> Case:
    def log_likelihood(p, row):
        return -math.log(p.sd) - 0.5 * ((row[0] - p.mean) / p.sd) ** 2

    n, first, second = 25, 24.0, 60.0
    sums = np.linspace(-30, 80, 331)[:, None]
    rests = ((np.arange(400) + 0.5) / 400 * 20)[None] ** 2  # sums of squares around the mean
    slope = np.sqrt(rests)  # of the squares, up to a constant
    noise = log_laplace(first - sums, 3.0) + log_laplace(second - rests - sums**2 / n, 10.0)
    noise = noise + 0.5 * (n - 3) * np.log(rests) + np.log(slope)

    def log_posterior(mean, sd):
        inside = noise - 0.5 * (sums - n * mean) ** 2 / (n * sd**2) - 0.5 * rests / sd**2
        value = float(special.logsumexp(inside)) - n * math.log(sd)
        return value - 0.5 * (mean / 2) ** 2 - 0.5 * (sd / 2) ** 2

    return Case(
        "mean and deviation of 25 records, Laplace",
        dpmc.model(
            log_likelihood,
            {"mean": priors.normal(0, 2), "sd": priors.half_normal(2)},
            num_columns=1,
        ),
        dpmc.Release([first, second], lambda x: (x, x * x), mechanisms.laplace([3.0, 10.0])),
        (np.linspace(-1, 3, 61), (np.arange(80) + 0.5) / 80 * 4),
        log_posterior,
        {"n": n, "sample": lambda p, u: p.mean + p.sd * special.ndtri(u)},
    )


def large_counts() -> Case:
    def log_likelihood(p, row):
        return row[0] * math.log(p.rate) - p.rate - math.lgamma(row[0] + 1)

    n, told = 20_000, 26_210
    sums = np.arange(told - 2000, told + 2000)
    noise = log_geometric(told - sums, 60.0)

    def log_posterior(rate):
        found = special.logsumexp(noise + stats.poisson.logpmf(sums, n * rate))
        return float(found) + math.log(rate) - rate

    return Case(
        "events of 20,000 records, geometric",
        dpmc.model(log_likelihood, {"rate": priors.gamma(2, 1)}, num_columns=1),
        dpmc.Release(told, lambda x: x, mechanisms.geometric(60.0)),
        (np.linspace(1.24, 1.38, 200),),
        log_posterior,
        {"n": n, "values": range(30)},
    )


CASES: Sequence[Callable[[], Case]] = (
    genotypes,
    incomes,
    visits,
    answers,
    scores,
    families,
    regression,
    rounded_mean,
    mean_and_sd,
    large_counts,
)


def main() -> None:
    chosen = sys.argv[1:]
    print(f"{'release':60}{'method':14}{'mean (sd)':>10}{'width':>8}{'seconds':>9}")
    for build in CASES:
        if chosen and build.__name__ not in chosen:
            continue
        one = build().compare()
        print(
            f"{one['release']:60}{one['method']:14}{one['mean']:10.3f}{one['width']:8.1%}"
            f"{one['seconds']:9.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
