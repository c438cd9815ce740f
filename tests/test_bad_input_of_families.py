"""Every way to call the families wrongly, and what is said of it.

As :mod:`tests.test_bad_input` for the chains: one line, or accepted because it means one thing.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import dpmc
from dpmc import statsel
from dpmc.ep.mixture import dp_sep
from dpmc.ep.mixture.model import MixtureModel
from dpmc.linreg.methods import mcmc_normal_x
from dpmc.linreg.release import release as release_regression
from dpmc.linreg.sufficient_statistics import node_statistics
from dpmc.linreg.types import Prior
from dpmc.types import Budget
from tests.support.bad_input import OK, judge, labelled

NORMAL = statsel.population("normal_variance", bound=10.0)
ABSOLUTE, SQUARE = statsel.statistic("abs_1"), statsel.statistic("abs_2")
LAPLACE, GAUSSIAN = statsel.mechanism("laplace"), statsel.mechanism("gaussian")
RECORDS = NORMAL.draw(2.0, np.random.default_rng(1), 100)
X, Y = np.random.default_rng(1).normal(size=(60, 2)), np.random.default_rng(2).normal(size=60)
BOUNDS = {"x_bound": 3.0, "y_bound": 3.0}
ROWS = np.random.default_rng(3).normal(size=(100, 2))
MIXTURE = MixtureModel.isotropic(1.0, [[0.0, 0.0], [3.0, 3.0]], precision=0.1)
RNG = np.random.default_rng(5)


def ranked(
    population=NORMAL, candidates=(ABSOLUTE,), mechanism=LAPLACE, epsilon=5.0, n=100, **more
):
    return statsel.rank(population, candidates, mechanism, epsilon, n, **{"theta": 2.0, **more})


def released(x=RECORDS, epsilon=1.0, statistic=ABSOLUTE, mechanism=LAPLACE, rng=None, **more):
    return statsel.release(NORMAL, statistic, mechanism, x, epsilon, rng, **more)


def sampled(given=None, **more):
    settings = {"prior": (0.0, 100.0), "num_iterations": 2000, "seed": 1}
    return statsel.sample(given or released(), **{**settings, **more})


def sums(x=X, y=Y, num_rows=60, bounds=(3.0, 3.0), chunks=Ellipsis):
    return node_statistics((x, y) if chunks is Ellipsis else chunks, 1, num_rows, bounds)


def noisy(epsilon=1.0, delta=1e-5, rng=None, bounds=(3.0, 3.0)):
    return release_regression(sums(), *bounds, epsilon, delta, rng)


def prior(**changes):
    given = {
        "mean": np.zeros(2),
        "covariance": 10 * np.eye(2),
        "shape": 2.0,
        "rate": 1.0,
        "scale": np.eye(2),
        "dof": 4.0,
    }
    return Prior(**given | changes)


def mixture(rows=ROWS, model=MIXTURE, budget=Ellipsis, **params):
    budget = Budget(5, 1e-5, "gaussian") if budget is Ellipsis else budget
    return dp_sep.fit(rows, model, dp_sep.Params(**{"num_passes": 2, **params}), budget, RNG)


def regressed(x=X, y=Y, epsilon=1.0, delta=1e-5, **more):
    settings = {**BOUNDS, "num_draws": 20, "seed": 1, "method": "mcmc_fixed_s"}
    return dpmc.linear_regression(x, y, epsilon=epsilon, delta=delta, **{**settings, **more})


EPSILON = "`epsilon` must be positive and finite, got "
STATISTIC = "`statistic` must be one of abs_<power>, "

STATISTICS = {
    "population typo": (
        lambda: statsel.population("normal_varianc", bound=1.0),
        "(did you mean normal_variance?)",
    ),
    "population without a bound": (
        lambda: statsel.population("normal_variance"),
        "`bound` must be given to normal_variance",
    ),
    "bound -1": (
        lambda: statsel.population("normal_variance", bound=-1),
        "`bound` must be positive and finite, got -1",
    ),
    "bound float64": (lambda: statsel.population("normal_variance", bound=np.float64(10)), OK),
    "statistic typo": (lambda: statsel.statistic("mean"), STATISTIC),
    "statistic without a power": (lambda: statsel.statistic("abs_x"), STATISTIC),
    "statistic nan": (lambda: statsel.statistic("abs_nan"), "`power` must be positive and finite"),
    "mechanism typo": (lambda: statsel.mechanism("laplac"), "(did you mean laplace?)"),
    "rank epsilon 0": (lambda: ranked(epsilon=0), EPSILON + "0"),
    "rank n 0": (lambda: ranked(n=0), "`n` must be an integer of at least 1, got 0"),
    "rank n int64": (lambda: ranked(n=np.int64(100)), OK),
    "rank theta -1": (lambda: ranked(theta=-1.0), "`theta` must be in (0, inf)"),
    "rank candidates as text": (
        lambda: ranked(candidates=["abs_1"]),
        "`candidates` must be statistics of dpmc.statsel.statistic, got 'abs_1'",
    ),
    "rank one candidate": (
        lambda: ranked(candidates=ABSOLUTE),
        "`candidates` must be statistics of dpmc.statsel.statistic, got Statistic",
    ),
    "rank mechanism as text": (
        lambda: ranked(mechanism="laplace"),
        "`mechanism` must be one of dpmc.statsel.mechanism, got 'laplace'",
    ),
    "rank without candidates": (lambda: ranked(candidates=[]), "`candidates` must be one or more"),
    # One record and an epsilon of 100 are a question too; the table states both.
    "rank epsilon and n swapped": (lambda: ranked(epsilon=100, n=5), OK),
    "rank epsilons reversed": (lambda: ranked(epsilons=(10.0, 1.0)), "`epsilons` must be two"),
    "release nan": (lambda: released(x=[1.0, math.nan]), "`x` must be finite numbers"),
    "release in two dimensions": (lambda: released(x=np.zeros((5, 2))), "got shape (5, 2)"),
    "release of none": (lambda: released(x=[]), "got shape (0,)"),
    "release of text": (lambda: released(x=["a", "b"]), "`x` must be real numbers"),
    "release masked": (
        lambda: released(x=np.ma.masked_array(RECORDS)),
        "`x` must be an ordinary array",
    ),
    "release of a series": (lambda: released(x=pd.Series(RECORDS)), OK),
    "release beyond the support": (lambda: released(x=RECORDS * 100), OK),
    "release epsilon text": (lambda: released(epsilon="1"), EPSILON + "'1'"),
    "release without a generator": (lambda: released(rng=None), OK),
    "release with a seed for a generator": (
        lambda: released(rng=1),
        "`rng` must be a numpy.random.Generator or None, got 1",
    ),
    # Noise of one standard deviation per epsilon has the delta that the guarantee states.
    "release Gaussian without delta": (lambda: released(mechanism=GAUSSIAN), OK),
    "release of what the mechanism does not fit": (
        lambda: released(
            statistic=statsel.statistic("median"), mechanism=statsel.mechanism("per_record_laplace")
        ),
        "`mechanism` must release a single number for median",
    ),
    "release of a statistic as text": (
        lambda: released(statistic="abs_1"),
        "`statistic` must be one of dpmc.statsel.statistic, got 'abs_1'",
    ),
    "sample prior None": (lambda: sampled(prior=None), "`prior` must be two numbers"),
    "sample prior nan": (lambda: sampled(prior=(0.0, math.nan)), "`prior` must have low < high"),
    "sample prior reversed": (lambda: sampled(prior=(100.0, 0.0)), "`prior` must have low < high"),
    "sample": (lambda: sampled(), OK),
    "sample no release": (lambda: sampled(1.5), "`released` must be a Release"),
    "sample method typo": (lambda: sampled(method="nuts"), "must be one of "),
    "sample parameter typo": (lambda: sampled(iterations=5), "`iterations` must be a parameter"),
}

REGRESSIONS = {
    "bound -1": (lambda: sums(bounds=(-1, 1.0)), "`x bound` must be positive"),
    "another number of rows": (lambda: sums(num_rows=70), "rows"),
    "y in two dimensions": (lambda: sums(y=Y[:, None]), "shape"),
    "lists": (lambda: sums(chunks=[X.tolist(), Y.tolist()]), "`chunks` must be "),
    "a data frame": (lambda: sums(chunks=pd.DataFrame(X)), "`chunks` must be "),
    "data frames": (lambda: sums(pd.DataFrame(X), pd.Series(Y)), OK),
    "nan": (lambda: sums(np.where(X[6, 1] == X, np.nan, X)), "must be finite numbers"),
    "x and y swapped": (lambda: sums(Y, X), "shape"),
    "wider bounds at the release": (lambda: noisy(bounds=(0.1, 0.1)), "bound"),
    "epsilon text": (lambda: noisy(epsilon="4"), EPSILON + "'4'"),
    "without a generator": (lambda: noisy(), OK),
    "prior of another shape": (lambda: prior(covariance=np.eye(3)), "`covariance` of a prior"),
    "prior mean in a list": (
        lambda: mcmc_normal_x.fit(
            noisy(), prior(mean=[0.0, 0.0]), mcmc_normal_x.Params(20, 10), RNG
        ),
        OK,
    ),
    "prior mean text": (lambda: prior(mean=["a", "b"]), "`mean` of a prior"),
    "a number for a release": (
        lambda: mcmc_normal_x.fit(1.0, prior(), mcmc_normal_x.Params(20, 10), RNG),
        "`noisy` must be a release of dpmc.linreg, got float",
    ),
    "front door": (lambda: regressed(), OK),
    "front door, y too short": (lambda: regressed(y=Y[:5]), "`y` must have one response"),
    "front door, 1e308": (lambda: regressed(x=np.full((60, 2), 1e308)), OK),
}


def mixture_model(**changes):
    given = {"weights": [0.5, 0.5], "sigma_x": 1.0, "prior_means": [[0.0], [1.0]]}
    return MixtureModel(**{**given, "prior_precision": [[[1.0]], [[1.0]]], **changes})


MIXTURES = {
    "weights of another sum": (
        lambda: mixture_model(weights=[0.5, 0.6]),
        "`weights` must sum to",
    ),
    "a negative weight": (lambda: mixture_model(weights=[1.5, -0.5]), "must be 2 numbers > 0"),
    "means of nothing": (
        lambda: mixture_model(prior_means=[[0.0], [math.nan]]),
        "`prior_means` m",
    ),
    "a precision that is none": (
        lambda: mixture_model(prior_precision=[[[1.0]], [[0.0]]]),
        "`prior_precision` must be positive definite",
    ),
    "sigma 0": (lambda: MixtureModel.isotropic(0.0, [[0.0, 0.0]], precision=0.1), "sigma"),
    "budget None": (lambda: mixture(budget=None), "`budget` must be an epsilon and a delta"),
    "budget a pair": (lambda: mixture(budget=(1.0, 1e-5)), "`budget` must be a dpmc.types.Budget"),
    "one dimension": (lambda: mixture(rows=ROWS[:, 0]), "`rows` must"),
    "text": (lambda: mixture(rows=ROWS.astype(str)), "real numbers"),
    "complex": (lambda: mixture(rows=ROWS.astype(complex)), "real numbers"),
    "no passes": (lambda: mixture(num_passes=0), "`num_passes` must be an integer"),
    "1e308": (lambda: mixture(rows=np.full((100, 2), 1e308)), OK),
}

GROUP = np.arange(60) % 3


def grouped(x=X, y=Y, group=GROUP, levels=(0, 1, 2), **more):
    settings = {"epsilon": 1, "delta": 1e-6, "seed": 1, "num_draws": 20, "progress": False}
    return dpmc.regression(x, y, **{**settings, "group": group, "levels": levels, **more})


def weighted(weights, **more):
    return grouped(group=None, levels=None, weights=weights, **more)


INTERCEPTS = {
    "groups": (lambda: grouped(), OK),
    "texts": (lambda: grouped(group=["a", "b"] * 30, levels=("a", "b")), OK),
    "of any type": (lambda: grouped(group=[None, [1], 0] * 20, invalid_rows="zero"), OK),
    "no levels": (lambda: grouped(levels=None), "`group` and `levels` must both be given"),
    "no groups": (lambda: grouped(group=None), "`group` and `levels` must both be given"),
    "levels a text": (lambda: grouped(levels="abc"), "`levels` must be a list of texts or numbers"),
    "levels a number": (lambda: grouped(levels=3), "`levels` must be a list of texts or numbers"),
    "levels twice": (lambda: grouped(levels=[0, 1, "1"]), "of which two are the same"),
    "one level": (lambda: grouped(levels=[0]), "`levels` must have at least two different"),
    "not declared": (lambda: grouped(levels=[0, 1]), "`group` must be a level that is declared"),
    "too short": (lambda: grouped(group=GROUP[:5]), "`group` must have one number for each of 60"),
    "in two dimensions": (lambda: grouped(group=GROUP[:, None]), "`group` must be one level for"),
    "another index": (
        lambda: grouped(pd.DataFrame(X), group=pd.Series(GROUP, index=GROUP[::-1] + 7)),
        "`group` must have the index of `x`",
    ),
    "robust": (lambda: grouped(covariance="robust"), OK),
    "method": (lambda: grouped(method="dp_hmc"), "`method` must be 'auto' beside `group`"),
    "start": (lambda: grouped(start=np.zeros(8)), "`start` must be None beside `group`"),
    "classes": (lambda: grouped(y=GROUP, likelihood="ordinal", classes=3), OK),
    "classes without an order": (
        lambda: grouped(y=GROUP, likelihood="multinomial", classes=3),
        "`group` must be None with likelihood 'multinomial'",
    ),
    "prior of no group": (
        lambda: grouped(prior_sd={"intercept": 1, "x1": 1, "x2": 1}),
        "got none of 'sd[group]'",
    ),
    "a formula and groups": (
        lambda: grouped(
            "y ~ x + (1 | C(g, levels=[0, 1]))", pd.DataFrame({"x": Y, "y": Y, "g": GROUP})
        ),
        "`group` and `levels` must be left out beside a formula",
    ),
    "weights": (lambda: weighted(np.ones(60)), OK),
    "weights and groups": (lambda: grouped(weights=np.ones(60), prior_sd=3.0, prior_mean=0.1), OK),
    "negative weights": (lambda: weighted(-np.ones(60)), "`weights` must be at least 0"),
    "hostile weights": (
        lambda: weighted([math.nan, math.inf, 1e308, 0, -1, 5e-324] * 10, invalid_rows="zero"),
        OK,
    ),
    "weights of text": (lambda: weighted(["a"] * 60), "data 'weights': must be real numbers"),
    "one weight": (lambda: weighted(1.0), "data 'weights': must be rows of numbers"),
    "weights, robust": (lambda: weighted(GROUP, covariance="robust"), OK),
    "prior_mean of classes": (
        lambda: weighted(None, y=GROUP, likelihood="ordinal", classes=3, prior_mean=1.0),
        "`prior_mean` must be None with likelihood 'ordinal'",
    ),
    "start of classes": (
        lambda: weighted(None, y=GROUP, likelihood="ordinal", classes=3, start=np.zeros(4)),
        "`start` must be None with likelihood 'ordinal'",
    ),
    "start of another shape": (
        lambda: weighted(None, y=GROUP + 1.0, likelihood="gamma", start=np.zeros(3)),
        "`start` must be finite, of shape (4,)",
    ),
}

CALLS = labelled(
    {
        "statistics": STATISTICS,
        "regression": REGRESSIONS,
        "mixture": MIXTURES,
        "intercepts": INTERCEPTS,
    }
)


@pytest.mark.parametrize("label", CALLS)
def test_a_call_is_refused_in_one_line_or_accepted(label):
    judge(*CALLS[label])
