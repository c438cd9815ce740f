"""Without a seed no public way in draws continuous noise, and what has some says so."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest

import dpmc
from dpmc import random_bits, registry, rng, statsel
from dpmc.ep.mixture.model import MixtureModel
from dpmc.linreg import release as linreg_release
from dpmc.linreg.methods import adassp
from dpmc.linreg.sufficient_statistics import node_statistics
from dpmc.models import gaussian_mean
from dpmc.privacy import compiled_noise, single_releases
from dpmc.types import LOW_BITS, SEED
from tests.support.methods import PRIVATE, TUNED, example

pytestmark = pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")

X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
Y = X @ [1.0, -0.5]
MODEL = gaussian_mean.build(gaussian_mean.Params(2, [[1, 0], [0, 1]], prior_variance=10.0))
BUDGET = {"epsilon": 8.0, "delta": 1e-3}
MEANS = MixtureModel.isotropic(1.0, [[-1.0, 0.0], [1.0, 0.0]], precision=0.1)
POPULATION = statsel.population("normal_variance", bound=10.0)
RECORDS = POPULATION.draw(2.0, np.random.default_rng(1), 50)
QUIET = {"progress": False}


def of_nodes(sharing):
    return dpmc.federation(np.split(X, 2), sharing=sharing)


def select(mechanism, statistic="abs_1", **more):
    return dpmc.select_statistic(
        RECORDS, POPULATION, [statsel.statistic(statistic)], statsel.mechanism(mechanism),
        **BUDGET, theta=2.0, prior=(0.1, 20.0), num_draws=20, num_chains=1, **QUIET, **more,
    )  # fmt: skip


def regression(x, y=None, **more):
    bounds = {"x_bound": 1.5, "y_bound": 2.0}
    return dpmc.linear_regression(x, y, **BUDGET, **bounds, num_draws=20, **QUIET, **more)


def nodes_of_rows(sharing, **more):
    parts = np.split(np.column_stack([X, Y]), 2)
    return regression(dpmc.federation(parts, sharing=sharing), **more)


def chain(name):
    def run(**more):
        params = {} if name in TUNED else example(name)
        given = dict(num_chains=1, max_iterations=3, **BUDGET, **QUIET, **params)
        return dpmc.fit(MODEL, X, method=name, **given, **more)

    return run


# Ways in that take private rows and a seed, by the public name that they are a case of.
WAYS = {
    "fit": lambda **more: dpmc.fit(MODEL, X, **BUDGET, num_draws=20, **QUIET, **more),
    "fit of nodes": lambda **more: dpmc.fit(
        MODEL, of_nodes("secure"), **BUDGET, num_draws=20, **QUIET, **more
    ),
    "fit of local nodes": lambda **more: dpmc.fit(
        MODEL, of_nodes("local"), **BUDGET, num_draws=20, **QUIET, **more
    ),
    **{f"fit by {name}": chain(name) for name in PRIVATE},
    "compare": lambda **more: dpmc.compare(MODEL, X, ["auto"], **BUDGET, **QUIET, **more).fits[
        "auto"
    ],
    "regression": lambda **more: dpmc.regression(X, Y, **BUDGET, num_draws=20, **QUIET, **more),
    "linear_regression": lambda **more: regression(X, Y, **more),
    "linear_regression of parts": lambda **more: regression(X, Y, num_nodes=2, **more),
    "linear_regression of nodes": lambda **more: nodes_of_rows("secure", **more),
    "linear_regression of local nodes": lambda **more: nodes_of_rows("local", **more),
    "select_statistic": lambda **more: select("laplace", **more),
    "select_statistic, gaussian": lambda **more: select("gaussian", **more),
    "mixture": lambda **more: dpmc.mixture(
        X, MEANS, **BUDGET, num_passes=2, num_draws=20, **QUIET, **more
    ),
    "mixture by permutations": lambda **more: dpmc.mixture(
        X, MEANS, **BUDGET, num_passes=2, order="permutation", num_draws=20, **QUIET, **more
    ),
}
# Its compiled loop draws noise itself: its guarantee says so.
CONTINUOUS = {
    "network": lambda **more: dpmc.network(
        X, Y, **BUDGET, x_range=(-1, 1), y_range=(-2, 2), hidden=2, num_passes=2, num_draws=20,
        **QUIET, **more,
    )
}  # fmt: skip


def test_all_ways_in_that_take_a_seed_are_here():
    takes = {
        name
        for name in dpmc.__all__
        if inspect.isfunction(function := getattr(dpmc, name))
        and {"epsilon", "delta"} <= {*inspect.signature(function).parameters}
        and name != "plan"  # takes no rows
    }
    takes -= {"score"}  # of draws that are there
    named = {way.split(",")[0].split(" ")[0] for way in (*WAYS, *CONTINUOUS)}
    assert takes == named
    assert {*registry.names("method")} == {*PRIVATE, "hmc", "rwmh"}  # the last have no noise


@pytest.fixture
def watched(monkeypatch):
    """Return a list of what was drawn in floating point from a cryptographic generator."""
    drawn = []
    home = single_releases.__file__.rpartition("/")[0]

    class Watched(np.random.Generator):
        """Notes who draws noise that is not on a grid."""

        def standard_normal(self, *arguments, **more):
            note("standard_normal", sys._getframe(1).f_code.co_filename)
            return super().standard_normal(*arguments, **more)

        def laplace(self, *arguments, **more):
            note("laplace", sys._getframe(1).f_code.co_filename)
            return super().laplace(*arguments, **more)

    def note(kind, file):
        if file.startswith(home):
            drawn.append(kind)

    made = random_bits.cryptographic

    def cryptographic():
        return Watched(made().bit_generator)

    for module in (rng, single_releases):
        monkeypatch.setattr(module, "cryptographic", cryptographic)
    source = compiled_noise.source
    monkeypatch.setattr(
        compiled_noise, "source", lambda rng: (drawn.append("compiled"), source(rng))[1]
    )
    return drawn


@pytest.mark.parametrize("way", WAYS)
def test_no_way_in_draws_continuous_noise_without_a_seed(way, watched):
    fitted = WAYS[way]()
    assert watched == []
    assert fitted.guarantee.noise == "discrete"
    assert LOW_BITS not in fitted.guarantee.outside
    assert "discrete" in str(fitted.summary())


@pytest.mark.parametrize("way", ["fit", "fit by dp_penalty", "linear_regression", "mixture"])
def test_continuous_noise_is_named_and_noticed(way, watched):
    """The broken variant of the test above: noise that is asked for, and that it would find."""
    fitted = WAYS[way](noise="continuous")
    assert watched
    assert LOW_BITS in fitted.guarantee.outside
    assert "continuous" in str(fitted.summary())


@pytest.mark.parametrize("way", ["fit", "fit of nodes", "linear_regression", "mixture"])
def test_with_a_seed_noise_is_continuous_and_both_are_named(way):
    fitted = WAYS[way](seed=3)
    assert fitted.guarantee.noise == "continuous"
    assert {SEED, LOW_BITS} <= {*fitted.guarantee.outside}
    discrete = WAYS[way](seed=3, noise="discrete")
    assert LOW_BITS not in discrete.guarantee.outside
    assert SEED in discrete.guarantee.outside


@pytest.mark.parametrize("way", CONTINUOUS)
def test_what_has_continuous_noise_alone_says_so(way, watched):
    fitted = CONTINUOUS[way]()
    assert watched
    assert fitted.guarantee.noise == "continuous"
    assert LOW_BITS in fitted.guarantee.outside


def test_releases_without_a_generator_have_discrete_noise():
    sums = node_statistics((X, Y), num_nodes=2, num_rows=len(X), bounds=(1.5, 2.0))
    args = sums, 1.5, 2.0, 1.0, 1e-6
    given = np.random.default_rng(0)
    for function in (linreg_release.release, adassp.release):
        assert function(*args).noise == "discrete"
        assert function(*args, given).noise == "continuous"
    parts = POPULATION, statsel.statistic("abs_1"), statsel.mechanism("laplace"), RECORDS, 1.0
    assert statsel.release(*parts).noise == "discrete"
    assert statsel.release(*parts, given).noise == "continuous"


@pytest.mark.parametrize("way", ["fit", "fit by dp_penalty", "mixture", "linear_regression"])
def test_two_runs_without_a_seed_differ(way):
    first, second = WAYS[way](), WAYS[way]()
    assert not np.array_equal(first.draws, second.draws)
