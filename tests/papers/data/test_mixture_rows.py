from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpmc.rng import stream
from dpmc_papers.data import mixture_rows
from dpmc_papers.data.mixture_rows import Params


def authors():
    return mixture_rows.parts(mixture_rows.generate(Params(source="authors"), stream(0, "unused")))


def test_the_rows_of_the_public_code_are_reproduced_whatever_the_stream():
    made = authors()
    assert made.rows.shape == (1000, 4)
    np.testing.assert_allclose(made.rows[0], [-1.12149, 0.47148, -1.13468, 0.40029], atol=5e-6)
    assert np.bincount(made.labels).tolist() == [261, 256, 260, 223]
    distances = np.linalg.norm(made.means[:, None] - made.means, axis=2)[np.triu_indices(4, 1)]
    assert distances.min() == pytest.approx(2.24, abs=0.005)
    assert distances.max() == pytest.approx(6.25, abs=0.005)
    other = mixture_rows.generate(Params(source="authors"), stream(1, "unused"))
    np.testing.assert_array_equal(made.rows, other.x[:, :4])


def test_prior_means_of_the_public_code_are_reproduced():
    means = mixture_rows.prior_means()
    assert means.shape == (4, 4)
    assert means[0, 0] == 1.764052345967664
    assert means[3, 3] == 0.33367432737426683


def test_another_seed_of_the_public_code_has_other_means_and_rows():
    one, two = (
        mixture_rows.parts(mixture_rows.generate(Params(source="authors", seed=k), stream(0, "x")))
        for k in (60, 6)
    )
    assert not np.isclose(one.means, two.means).any()
    assert not np.isclose(one.rows, two.rows).any()


@pytest.mark.parametrize("source", ["paper", "authors"])
def test_rows_have_the_law_that_they_claim(source):
    """Error rate 1e-6 for each of two samples: residuals normal, labels uniform."""
    params = Params(20_000, source, num_components=3, dim=2, sigma_x=0.3)
    made = mixture_rows.parts(mixture_rows.generate(params, stream(1, "mixture", source)))
    residuals = (made.rows - made.means[made.labels]) / 0.3
    assert stats.kstest(residuals.ravel(), "norm").pvalue > 1e-6
    assert stats.chisquare(np.bincount(made.labels, minlength=3)).pvalue > 1e-6


def test_means_of_the_text_are_standard_normal_and_do_not_depend_on_the_rows():
    """Error rate 1e-6."""
    drawn = [
        mixture_rows.parts(mixture_rows.generate(Params(1, draw=k), stream(2, "rows", k))).means
        for k in range(300)
    ]
    assert stats.kstest(np.ravel(drawn), "norm").pvalue > 1e-6
    again = mixture_rows.generate(Params(7, sigma_x=2.0, draw=5), stream(3, "rows"))
    np.testing.assert_array_equal(mixture_rows.parts(again).means, drawn[5])


def test_labels_and_means_are_recovered_from_the_data_set():
    dataset = mixture_rows.generate(Params(50, num_components=2, dim=3), stream(4, "rows"))
    made = mixture_rows.parts(dataset)
    assert dataset.x.shape == (50, 4)
    assert made.rows.shape == (50, 3)
    assert made.means.shape == (2, 3)
    assert made.labels.dtype == np.int64
    assert set(made.labels.tolist()) == {0, 1}
    np.testing.assert_array_equal(dataset.truth, made.means.ravel())
    assert dict(dataset.facts) == {"num_components": 2.0, "sigma_x": 0.5}
