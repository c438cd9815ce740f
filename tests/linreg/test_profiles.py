"""Profiles: what each asks of releases, priors and methods."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import fields

import numpy as np
import pytest

from dpmc import registry
from dpmc.linreg import methods
from dpmc.linreg.methods import adassp
from dpmc.linreg.profiles import PROFILES, make_prior
from dpmc.linreg.release import release
from dpmc.linreg.sufficient_statistics import node_statistics
from dpmc.linreg.types import NodeStatistics
from dpmc.rng import stream
from dpmc.types import DpmcError

METHODS = {
    info.name: importlib.import_module(f"{methods.__name__}.{info.name}")
    for info in pkgutil.iter_modules(methods.__path__)
    if not info.name.startswith("_")
}
SHORT = {"num_iterations": 200, "burn_in": 100}
STATISTICS = NodeStatistics(
    np.array([9]), np.eye(2)[None], np.ones((1, 2)), np.ones(1), bounds=(1.0, 1.0)
)


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("statistics", ["sz", "szu", "own"])
def test_releases_take_the_settings_of_every_profile(name, statistics):
    settings = PROFILES[name].release_settings(statistics)
    function = adassp.release if statistics == "own" else release
    noisy = function(STATISTICS, 1.0, 1.0, 1.0, 1e-4, np.random.default_rng(), **settings)
    assert noisy.guarantee.neighbours == PROFILES[name].neighbours
    assert (noisy.u is not None) == (statistics == "szu")


def test_only_the_correct_and_the_printed_noise_keep_the_budget():
    rng, kept = np.random.default_rng(), {}
    for name in PROFILES:
        settings = PROFILES[name].release_settings()
        noisy = release(STATISTICS, 1.0, 1.0, 1.0, 1e-4, rng, **settings)
        kept[name] = noisy.guarantee.neighbours, noisy.guarantee.epsilon <= 1.0
    assert kept == {
        "correct": ("replace", True),
        "thesis": ("add_remove", True),
        "authors": ("add_remove", False),
        "final": ("add_remove", False),
    }


def test_a_third_of_the_target_bound_is_put_in():
    for name in PROFILES:
        values = PROFILES[name].parameters("bayes_fixed_s_fast", 0.9)
        assert values == {"noise_variance": pytest.approx(0.3)}
    assert PROFILES["authors"].parameters("mcmc_fixed_s", 66.0)["variance_start"] == 22.0
    assert PROFILES["correct"].parameters("mcmc_fixed_s", 66.0) == {}
    with pytest.raises(DpmcError, match=r"y_bound.*\b0\b"):
        PROFILES["correct"].parameters("mcmc_fixed_s", 0)


@pytest.mark.parametrize("dim", [1, 2, 14])
def test_priors_differ_in_the_width_of_the_coefficients_alone(dim):
    made = {
        name: make_prior(PROFILES[name], dim, stream(7, "tests", "prior", dim)) for name in PROFILES
    }
    variances = {"correct": 38.0, "thesis": 38.0, "authors": 0.5 / 19, "final": 38.0}
    assert set(made) == set(variances)
    for name, variance in variances.items():
        prior = made[name]
        np.testing.assert_allclose(prior.covariance, variance * np.eye(dim))
        assert (prior.shape, prior.rate, prior.dof) == (20.0, 0.5, dim + 1.0)
        np.testing.assert_array_equal(prior.mean, np.zeros(dim))
        np.testing.assert_array_equal(prior.scale, made["correct"].scale)
    v = stream(7, "tests", "prior", dim).standard_normal((dim, dim))
    np.testing.assert_allclose(made["correct"].scale, v.T @ v, rtol=1e-12, atol=1e-12)


def test_the_conjugate_precision_of_the_public_code_is_not_the_inverse_of_its_covariance():
    """Both are 0.0263: the prior of theta over sigma_y is 1444 times as wide as that of theta."""
    authors = PROFILES["authors"]
    precision = authors.parameters("posterior", 1.0)["precision"]
    assert precision == pytest.approx(authors.coefficient_variance)
    assert precision == authors.parameters("mcmc_bs", 1.0)["precision"]
    thesis = PROFILES["thesis"]
    assert precision == pytest.approx(1 / thesis.coefficient_variance)


def test_the_last_version_of_the_public_code_has_another_prior_and_nothing_else():
    authors, final = PROFILES["authors"], PROFILES["final"]
    assert (authors.coefficient_variance, final.coefficient_variance) == (0.5 / 19, 19 / 0.5)
    different = {
        field.name
        for field in fields(authors)
        if getattr(authors, field.name) != getattr(final, field.name)
    }
    assert different == {"name", "coefficient_variance"}


@pytest.mark.parametrize("method", ["mcmc_fixed_s", "bayes_fixed_s_fast", "mcmc_bs", "adassp"])
def test_which_methods_the_prior_of_the_last_version_moves(method):
    """Without the variance of theta in it, a method gives the same in both versions."""
    rng, module = np.random.default_rng(5), METHODS[method]
    x = rng.normal(size=(300, 2)) / 4
    y = x @ np.array([1.0, -0.5]) + 0.1 * rng.normal(size=300)
    exact = node_statistics((x, y), 2, 300, (1.0, 1.0))
    found = []
    for name in ("authors", "final"):
        settings = PROFILES[name].release_settings(module.STATISTICS)
        function = module.release if module.STATISTICS == "own" else release
        noisy = function(exact, 1.0, 1.0, 1.0, 1e-3, stream(7, "noise", method), **settings)
        short = {} if method in ("bayes_fixed_s_fast", "adassp") else SHORT
        params = registry.parameters(module, {**PROFILES[name].parameters(method, 1.0), **short})
        prior = make_prior(PROFILES[name], 2, stream(7, "prior", method))
        found.append(module.fit(noisy, prior, params, stream(7, "chain", method)).coefficients)
    moved = method in ("mcmc_fixed_s", "bayes_fixed_s_fast")
    assert np.isclose(*found, rtol=1e-3).all() != moved
