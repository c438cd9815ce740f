from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpmc.numerics.covariances import resolve
from dpmc.rng import stream
from dpmc_papers.data import _threefry, banana_rows, circle_rows, gaussian_rows


def test_threefry_has_the_known_answers_of_its_authors():
    """Vectors of the Random123 distribution for Threefry-2x32 with 20 rounds."""
    for key, counter, answer in (
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ):
        words = [np.array([value], dtype=np.uint32) for value in counter]
        hashed = _threefry.hash_pairs(np.array(key, dtype=np.uint32), *words)
        assert tuple(int(word[0]) for word in hashed) == answer


def test_rows_are_those_that_jax_draws():
    """Computed once with JAX 0.10.2 in double precision, jax_threefry_partitionable off."""
    params = banana_rows.Params(100_000, [0, 3], [2000, 2500], 20, threefry_seed=43247)
    x = banana_rows.generate(params, stream(0, "unused")).x
    np.testing.assert_allclose(x.mean(0), [0.13331960427785805, 2.933865218970264], rtol=1e-12)
    np.testing.assert_allclose(x[:3, 0], [7.43826143, -4.24902911, 12.4612155], rtol=1e-8)
    covariance = [[1.0, 0.2], [0.2, 1.0]]
    gaussian = gaussian_rows.Params(1000, [0, 3], covariance, threefry_seed=4627290)
    x = gaussian_rows.generate(gaussian, stream(0, "unused")).x
    np.testing.assert_allclose(x[1], [-0.26435003, 3.44168036], rtol=1e-7)
    circle = circle_rows.Params(100_000, 3, 1, threefry_seed=742983)
    x = circle_rows.generate(circle, stream(0, "unused")).x
    assert np.mean(x**2) == pytest.approx(9.976271877237355, rel=1e-13)


def test_rows_of_single_precision_are_those_that_jax_draws():
    """Computed once with JAX 0.4.30 without x64: other rows than in double precision."""
    params = banana_rows.Params(200_000, [0] * 30, [1] * 30, 0, 0, 0, 43247, 32)
    x = banana_rows.generate(params, stream(0, "unused")).x
    drawn = [
        [0.1663246005773, -0.7488701939582, 0.4525853693485],
        [-0.0950111448764, -0.3180140554904, 0.9774094820022],
    ]
    np.testing.assert_allclose(x[:2, :3], drawn, rtol=2e-6)
    assert x[:, 2:].mean() == pytest.approx(0.00025183578659987535, abs=1e-8)
    key = _threefry.split(_threefry.seed_key(43247), 3)[0]
    odd = [0.8207257986068, 0.9162288308143, 0.6094517111778]
    np.testing.assert_allclose(_threefry.normal(key, (7, 1), 32)[:3, 0], odd, rtol=2e-6)


@pytest.mark.parametrize(("seed", "width"), [(None, 64), (12, 64), (12, 32)])
def test_rows_have_the_law_that_they_claim(seed, width):
    """Error rate 1e-6 for each of five samples: standardised, they are normal."""
    params = banana_rows.Params(20_000, [0.5, 1, 2], [4, 9, 1], 2.0, 0.3, -0.1, seed, width)
    dataset = banana_rows.generate(params, stream(1, "law"))
    mean = np.array([0.5, 1 + 2.0 * 0.6**2 + 0.3, 2])
    for column in ((dataset.x - mean) / np.sqrt([4, 9, 1])).T:
        assert stats.kstest(column, "norm").pvalue > 1e-6
    gaussian = gaussian_rows.Params(20_000, [1, 2, 3], {"seed": 5}, seed)
    x = gaussian_rows.generate(gaussian, stream(2, "law")).x
    precision = np.linalg.inv(resolve({"seed": 5}, 3))
    distance = np.einsum("ij,jk,ik->i", x - [1, 2, 3], precision, x - [1, 2, 3])
    assert stats.kstest(distance, stats.chi2(3).cdf).pvalue > 1e-6
    x = circle_rows.generate(circle_rows.Params(20_000, 3, 0.5, seed), stream(3, "law")).x
    assert x.shape == (20_000, 1)
    assert stats.kstest(x[:, 0], "norm", args=(3, 0.5)).pvalue > 1e-6
