"""Scores of mixtures, and the exact posterior that they are taken against."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmc.ep.mixture import scores as mixture_scores
from dpmc.ep.mixture.exact import label_posterior, printed_truth
from dpmc.ep.mixture.model import MixtureModel
from dpmc.ep.mixture.scores import divergence, published_scores, scores
from dpmc.rng import stream
from dpmc_papers.data import mixture_rows
from tests.support.printed_mixture import NUTS_MEANS, NUTS_UPPER_TRIANGLES


def gaussians(name: str, num: int = 3, dim: int = 2):
    rng = stream(31, "scores", name)
    roots = rng.standard_normal((num, dim, dim + 2))
    return rng.standard_normal((num, dim)), roots @ np.swapaxes(roots, 1, 2)


# --- pairing


def test_the_public_code_lets_true_components_choose_in_turn():
    truth, means = np.array([[0.0], [10.0]]), np.array([[6.0], [-20.0]])
    assert mixture_scores.greedy_pairs(truth, means) == [0, 1]
    assert mixture_scores.best_pairs(truth, means) == [1, 0]


def test_scores_do_not_depend_on_the_order_of_the_components():
    truth, fitted = gaussians("truth", 4), gaussians("fit", 4)
    turned = fitted[0][[2, 0, 3, 1]], fitted[1][[2, 0, 3, 1]]
    for rule in (scores, published_scores):
        one, two = rule(truth, fitted), rule(truth, turned)
        assert one.keys() == two.keys()
        assert all(two[key] == pytest.approx(one[key], rel=1e-12) for key in one)


# --- scores


def test_divergence_is_that_of_two_normals():
    one, two = (np.array([[0.0]]), np.array([[[1.0]]])), (np.array([[1.0]]), np.array([[[4.0]]]))
    assert divergence(*one, *two)[0] == pytest.approx(math.log(2) + 2 / 8 - 0.5, rel=1e-14)
    assert divergence(*two, *one)[0] == pytest.approx(-math.log(2) + 5 / 2 - 0.5, rel=1e-14)
    found = scores(one, two)
    assert found["kl_from_truth"] == divergence(*one, *two)[0]
    assert found["kl_to_truth"] == divergence(*two, *one)[0]


def test_divergence_of_correlated_normals_is_the_mean_log_ratio_of_their_densities():
    """Error rate 1e-6: 4.9 standard errors of 200,000 draws."""
    (means, covariances), (others, spreads) = gaussians("one", 1), gaussians("two", 1)
    draws = (
        means[0]
        + stream(31, "draws").standard_normal((200_000, 2)) @ np.linalg.cholesky(covariances[0]).T
    )

    def log_density(mean, covariance):
        errors = draws - mean
        squares = np.einsum("ni,ik,nk->n", errors, np.linalg.inv(covariance), errors)
        return -(squares + np.linalg.slogdet(covariance)[1]) / 2

    ratios = log_density(means[0], covariances[0]) - log_density(others[0], spreads[0])
    found = divergence(means, covariances, others, spreads)[0]
    assert abs(ratios.mean() - found) < 4.9 * ratios.std() / math.sqrt(len(ratios))


def test_published_scores_are_squares_and_no_divergence():
    truth = np.zeros((2, 2)), np.tile(np.eye(2), (2, 1, 1))
    fitted = np.array([[3.0, 4.0], [0.0, 0.0]]), np.tile(4 * np.eye(2), (2, 1, 1))
    found = published_scores(truth, fitted)
    assert found["mean_square"] == 12.5
    assert found["covariance_square"] == 18.0
    assert found["f"] == 15.25
    assert found["kl_signed"] == pytest.approx((12.5 - 2 * math.log(4)) / 2)
    wide = published_scores(truth, (truth[0], 4 * truth[1]))
    assert wide["kl_signed"] == pytest.approx(-math.log(4))
    assert wide["kl_proxy"] == -wide["kl_signed"]
    proper = scores(truth, fitted)
    assert proper["mean_error"] == 2.5
    assert proper["covariance_error"] == pytest.approx(math.sqrt(18))


# --- the exact posterior given the labels


def test_the_posterior_given_the_labels_is_the_maximum_of_its_density():
    """Its gradient vanishes at the mean, its curvature is the precision."""
    rng = stream(32, "label posterior")
    root = rng.standard_normal((2, 3, 5))
    model = MixtureModel(
        np.array([0.3, 0.7]), 0.8, rng.standard_normal((2, 3)), root @ np.swapaxes(root, 1, 2)
    )
    rows, labels = rng.standard_normal((40, 3)), rng.integers(0, 2, 40)
    found = label_posterior(rows, labels, model)

    def gradient(means):
        prior = np.einsum("jik,jk->ji", model.prior_precision, model.prior_means - means)
        return prior + [(rows[labels == j] - means[j]).sum(axis=0) / 0.64 for j in (0, 1)]

    np.testing.assert_allclose(gradient(found.means), 0, atol=1e-11)
    change = rng.standard_normal((2, 3))
    np.testing.assert_allclose(
        gradient(found.means + change),
        -np.linalg.solve(found.covariances, change[..., None])[..., 0],
        rtol=1e-10,
    )


def test_the_printed_draws_are_of_a_posterior_with_the_prior_inverted():
    """rms .0012 is the Monte Carlo error of 1,000 draws; .0217 is 0.7 posterior sd."""
    data = mixture_rows.Params(source="authors")
    made = mixture_rows.parts(mixture_rows.generate(data, stream(0, "unused")))
    model = MixtureModel.isotropic(0.5, mixture_rows.prior_means(), 0.1)
    printed = printed_truth(NUTS_MEANS, NUTS_UPPER_TRIANGLES)
    # What the public code draws from: it passes the prior covariance as the prior precision.
    other = MixtureModel.isotropic(0.5, mixture_rows.prior_means(), 10.0)
    inverted = label_posterior(made.rows, made.labels, other)
    exact = label_posterior(made.rows, made.labels, model)

    def rms(truth):
        return math.sqrt(np.mean((printed.means - truth.means) ** 2))

    assert rms(inverted) == pytest.approx(0.00121, abs=1e-5)
    assert rms(exact) == pytest.approx(0.02167, abs=1e-5)
    assert scores(exact, exact)["sd"] == pytest.approx(0.0317, abs=1e-4)
