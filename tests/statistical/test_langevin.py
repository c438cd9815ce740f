"""What DP-SGLD and DP-SGNHT converge to, where that is known exactly."""

from __future__ import annotations

import numpy as np
import pytest

from dpmc.mcmc.methods import dp_sgld, dp_sgnht
from dpmc.mcmc.posterior import Posterior
from dpmc.privacy.ledger import Ledger
from dpmc.rng import Streams
from tests.support.posteriors import gaussian_model, rows

pytestmark = pytest.mark.slow

N, B, K, CHAINS = 400, 40, 36_000, 10


def variance_of(module, params) -> tuple[float, float, np.ndarray]:
    """Return the variance of the stationary law, its standard error, and the rows."""
    dataset = rows("langevin", N, 1)
    sampler = module.sampler(Posterior(gaussian_model(1), dataset), params)
    streams = [Streams.of(21, module.__name__, c) for c in range(CHAINS)]
    run = sampler(np.zeros((CHAINS, 1)), K, streams, Ledger())
    kept = run.draws[len(run.draws) // 10 :, :, 0]
    centred = (kept - kept.mean()) ** 2
    per_batch = centred.reshape(60, -1, CHAINS).mean(axis=1).ravel()
    return (
        float(per_batch.mean()),
        float(per_batch.std(ddof=1) / np.sqrt(per_batch.size)),
        dataset.x,
    )


@pytest.mark.parametrize("noise_scale", [1.0, 2.0])
def test_sgld_has_the_variance_of_its_linear_recursion(noise_scale):
    """An exact autoregression: within 5 standard errors, error rate below 1e-5 by 600 batches.

    theta moves by e (-L (theta - m) + batch noise) + N(0, w e), so its variance is
    (e^2 V + w e) / (1 - (1 - e L)^2), V the variance of the scaled batch sum.
    """
    params = dp_sgld.Params(B, 1e6, 0.02, noise_scale, max_stored=K)
    variance, error, x = variance_of(dp_sgld, params)
    precision, e = N + 0.25, 0.02 / N
    batch = N**2 / B * (1 - B / N) * x.var(ddof=1)
    exact = (e**2 * batch + noise_scale * e) / (1 - (1 - e * precision) ** 2)
    assert abs(variance - exact) < 5 * error
    # The published noise halves the variance that batches alone do not explain.
    other = (e**2 * batch + (3 - noise_scale) * e) / (1 - (1 - e * precision) ** 2)
    assert abs(variance - other) > 8 * error


def test_with_small_steps_the_noise_of_the_public_code_halves_the_variance():
    """Scale 1 tends to the square of the posterior, scale 2 to the posterior itself."""
    precision, e = N + 0.25, 1e-6 / N
    limits = [w * e / (1 - (1 - e * precision) ** 2) * precision for w in (1.0, 2.0)]
    np.testing.assert_allclose(limits, [0.5, 1.0], rtol=1e-5)


def test_sgnht_absorbs_the_noise_of_batches():
    """Its thermostat brings the variance to that of the posterior, within 5 % at this step.

    Bound on the error of 5 standard errors, error rate below 1e-5, beside the bias of the
    step; without the batch noise absorbed the variance would be off by the batch term.
    """
    params = dp_sgnht.Params(B, 1e6, 2.0, 5.0, max_stored=K)
    variance, error, _ = variance_of(dp_sgnht, params)
    posterior = 1 / (N + 0.25)
    assert abs(variance / posterior - 1) < 0.05 + 5 * error / posterior
