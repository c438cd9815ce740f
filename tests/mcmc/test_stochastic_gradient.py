from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpmc.mcmc.methods import dp_sgld, dp_sgnht
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams, stream
from dpmc.rows.batches import Batches, Draws, draw_distinct
from dpmc.types import DpmcError
from tests.support.posteriors import banana_model, gaussian_model, rows


def draw_batches(n: int, b: int, count: int) -> np.ndarray:
    rng, draws = stream(3, "batches", n, b), Draws(n, b)
    mask, candidates, batch = draws.scratch()
    batches = np.empty((count, b), dtype=np.int64)
    for i in range(count):
        words = rng.integers(0, 2**64, size=draws.words_per_batch, dtype=np.uint64)
        assert draw_distinct(words, draws.bits, n, mask, candidates, batch)
        batches[i] = batch
    return batches


def inclusion_p_value(batches: np.ndarray, n: int) -> float:
    """Chi-square test that every pair of rows is in a batch equally often."""
    count, b = batches.shape
    member = np.zeros((count, n))
    np.put_along_axis(member, batches, 1, axis=1)
    pairs = (member.T @ member)[np.triu_indices(n, 1)]
    expected = count * b * (b - 1) / (n * (n - 1))
    p = b * (b - 1) / (n * (n - 1))
    # Normal approximation of the sum of squares over pairs, with the variance of one
    # count; the counts are weakly dependent, which the limit below allows for.
    z = (pairs - expected) / np.sqrt(count * p * (1 - p))
    return float(2 * stats.norm.sf(abs((z**2).mean() - 1) * np.sqrt(len(z) / 2) / 3))


@pytest.mark.parametrize(("n", "b"), [(10, 3), (64, 20), (65, 64), (7, 7), (1000, 1)])
def test_batches_hold_distinct_rows(n, b):
    batches = draw_batches(n, b, 200)
    assert all(len(set(batch)) == b for batch in batches.tolist())
    assert batches.min() >= 0
    assert batches.max() < n


def test_every_pair_of_rows_is_drawn_equally_often():
    """Error rate below 1e-6 by the limit; a draw that favours low rows fails."""
    n, b = 20, 6
    fair = draw_batches(n, b, 40_000)
    assert inclusion_p_value(fair, n) > 1e-6
    rng = stream(4, "biased")
    weights = np.linspace(1.1, 0.9, n)
    keys = rng.exponential(size=(40_000, n)) / weights
    assert inclusion_p_value(np.argsort(keys, axis=1)[:, :b], n) < 1e-6


@pytest.mark.parametrize(("n", "bits"), [(4096, 16), (4097, 21), (131_072, 21), (131_073, 32)])
def test_draws_take_few_bits_and_reject_few(n, bits):
    assert Draws(n, 10).bits == bits
    assert (2**bits % n) / 2**bits <= 1 / 16


def test_running_out_of_words_is_told_and_leaves_the_mask_clean():
    draws = Draws(100, 50)
    mask, candidates, batch = draws.scratch()
    before = mask.copy()
    words = np.zeros(draws.words_per_batch, dtype=np.uint64) + np.uint64(2**63)
    assert not draw_distinct(words, draws.bits, 100, mask, candidates, batch)
    np.testing.assert_array_equal(mask, before)


def plain_batches(batches: Batches, streams: Streams, num_iterations: int) -> np.ndarray:
    """Return the batches that the compiled loop draws, in one block, from the same stream."""
    draws = Draws(batches.num_rows, batches.batch_size)
    size = (num_iterations, draws.words_per_batch)
    words = streams.chain.integers(0, 2**64, size=size, dtype=np.uint64)
    mask, candidates, batch = draws.scratch()
    drawn = []
    for row in words:
        assert draw_distinct(row, draws.bits, batches.num_rows, mask, candidates, batch)
        drawn.append(batch.astype(np.int64))
    return np.array(drawn)


def clipped_sum(posterior_gradient, bound):
    norms = np.linalg.norm(posterior_gradient, axis=1)
    return (np.minimum(1, bound / norms)[:, None] * posterior_gradient).sum(0)


@pytest.mark.parametrize("method", ["dp_sgld", "dp_sgnht"])
def test_compiled_loop_is_the_algorithm_written_plainly(method):
    """The same batches and noise give the same states to rounding."""
    dataset, model, k = rows("plain", 90, 2), gaussian_model(), 100
    precision = np.linalg.inv(0.5 * np.eye(2) + 0.5)
    if method == "dp_sgld":
        params = dp_sgld.Params(20, 1.5, 0.5, 2.0, max_stored=k)
        module = dp_sgld
    else:
        params = dp_sgnht.Params(20, 1.5, 5.0, 3.0, max_stored=k)
        module = dp_sgnht
    run = module.sampler(Posterior(model, dataset), params)(
        np.array([[0.4, -0.2]]), k, [Streams.of(1, method)], Ledger()
    )
    batches, streams = module.batches(params, 90), Streams.of(1, method)
    e, theta = batches.step, np.array([0.4, -0.2])
    p, xi = (streams.chain.standard_normal(2), 3.0) if method == "dp_sgnht" else (None, None)
    noise = Ledger().noise_block(
        k, 2, batches.clip, batches.noise_multiplier, streams.noise, 20, 90
    )
    assert noise.std() == pytest.approx(np.sqrt(batches.noise_scale * e), rel=0.3)
    for i, batch in enumerate(plain_batches(batches, streams, k)):
        gradient = clipped_sum((dataset.x[batch] - theta) @ precision, 1.5)
        force = (0.3 - theta) / 4.0 + 90 / 20 * gradient
        if p is None:
            theta = theta + e * force + noise[i]
        else:
            theta, xi, p = (
                theta + e * p,
                xi + e * (p @ p / 2 - 1),
                p - xi * e * p + e * force + noise[i],
            )
        np.testing.assert_allclose(run.draws[i, 0], theta, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("k", [1, 127, 128, 129, 1000, 1001])
def test_thinning_keeps_the_last_state_and_all_counts(k):
    dataset, model = rows("thin", 60, 3), banana_model()
    full = dp_sgld.sampler(Posterior(model, dataset), dp_sgld.Params(10, 0.5, 0.2, 2.0, 10_000))
    thin = dp_sgld.sampler(Posterior(model, dataset), dp_sgld.Params(10, 0.5, 0.2, 2.0, 100))
    start = np.zeros((2, 3))
    a = full(start, k, [Streams.of(5, c) for c in range(2)], Ledger())
    b = thin(start, k, [Streams.of(5, c) for c in range(2)], Ledger())
    step = -(-k // 100)
    np.testing.assert_array_equal(a.draws[::-1][::step][::-1], b.draws)
    assert a.totals["gradient_clipped"].tolist() == b.totals["gradient_clipped"].tolist()
    assert b.info["gradient_clipped"].sum() == b.totals["gradient_clipped"].sum()


def test_a_chain_that_diverges_stops_and_says_so():
    dataset, model = rows("diverge", 60, 3), banana_model()
    sampler = dp_sgld.sampler(Posterior(model, dataset), dp_sgld.Params(10, 50.0, 500.0, 2.0, 50))
    run = sampler(np.zeros((2, 3)), 500, [Streams.of(5, c) for c in range(2)], Ledger())
    assert "left the finite numbers" in run.status
    assert run.draws is None or np.isfinite(run.draws).all()


def test_a_tempered_posterior_is_refused():
    posterior = Posterior(gaussian_model(tempering=0.5), rows("tempered", 60, 2))
    with pytest.raises(DpmcError, match=r"`tempering` must be 1 .* got 0\.5"):
        dp_sgld.sampler(posterior, dp_sgld.Params(10, 1.0, 1.0))
