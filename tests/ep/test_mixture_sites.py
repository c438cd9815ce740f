"""Sites of EP on a mixture of one component, where the posterior is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmc.ep.mixture.engine import fit
from dpmc.rng import stream
from tests.ep.test_mixture import a_model, some_rows
from tests.support.ep_settings import mixture_settings


@pytest.mark.parametrize("step", [0.5, 1.0])
def test_damped_sites_reach_the_posterior_and_stay_there(step):
    """Each site moves by `step` of the way: after k passes 1 - (1 - step)^k of it is there."""
    model, rows = a_model(1, 2), some_rows(10)
    exact = 10 / 0.49 * np.eye(2)
    for passes in (1, 2, 40):
        found = fit(
            rows, model, mixture_settings("ep", passes, step, order="cyclic"), stream(0, "")
        )
        gained = found.precision[0] - model.prior_precision[0]
        share = 1 - math.pow(1 - step, passes)
        np.testing.assert_allclose(gained, share * exact, rtol=1e-9, atol=1e-9)
