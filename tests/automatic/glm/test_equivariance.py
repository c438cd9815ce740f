"""The posterior is the same in any units: a law for all likelihoods, with the default prior."""

from __future__ import annotations

import numpy as np
import pytest

from tests.automatic.glm.searches import LIKELIHOODS, fitted, rows_of

NUM_ROWS = 20_000
# Differences, in deviations of both fits: noise exceeds this in less than 1 of 1,000 runs, of which
# one in 6e-5 for a component; seeds are fixed.
FAR = 4.0


def compared(first, second, back):
    """Return the largest difference of means, and the largest ratio of widths, of two fits.

    `back` is the matrix, and the shift, from components of the second to those of the first.
    """
    matrix, shift = back
    (_, mean, sd), (fit, other, _) = first, second
    draws = fit.draws.reshape(-1, len(other)) @ matrix.T + shift
    apart = np.abs(draws.mean(axis=0) - mean) / np.hypot(sd, draws.std(axis=0))
    ratio = draws.std(axis=0) / sd
    return apart.max(), max(ratio.max(), 1 / ratio.min())


def change(kind, likelihood, rows):
    """Return rows in other units, and the way back of their components."""
    scaled = likelihood in ("linear", "student_t")
    dim = 3 + scaled
    matrix, shift, other = np.eye(dim), np.zeros(dim), rows.copy()
    if kind == "response":
        other[:, -1] *= 1000.0
        matrix[:3, :3] /= 1000.0
        shift[3] = -np.log(1000.0)
    elif kind == "column":
        other[:, 0] *= 1e5
        matrix[1, 1] = 1e5
    elif kind == "year":
        other[:, 1] = 1950.0 + 20.0 * other[:, 1]
        matrix[2, 2], matrix[0, 2] = 20.0, 1950.0
    elif kind == "permuted":
        other[:, :2] = other[:, 1::-1]
        matrix[1:3, 1:3] = [[0.0, 1.0], [1.0, 0.0]]
    elif kind == "swapped":
        other[:, -1] = 1.0 - other[:, -1]
        matrix = -matrix
    return other, (matrix, shift)


CASES = [(kind, one) for one in LIKELIHOODS for kind in ("column", "year", "permuted")]
CASES += [("response", "linear"), ("response", "student_t"), ("swapped", "logistic")]


@pytest.mark.parametrize(("kind", "likelihood"), CASES)
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_units_do_not_matter(kind, likelihood, epsilon):
    rows = rows_of(likelihood, NUM_ROWS)
    other, back = change(kind, likelihood, rows)
    first = fitted(rows, likelihood, epsilon=epsilon, seed=1)
    second = fitted(other, likelihood, epsilon=epsilon, seed=2)
    apart, ratio = compared(first, second, back)
    assert apart < FAR
    assert ratio < 2.0


def test_a_prior_in_units_of_the_rows_breaks_the_law_and_is_remarked_on():
    rows = rows_of("linear", NUM_ROWS)
    other, back = change("response", "linear", rows)
    first = fitted(rows, "linear", epsilon=4.0, seed=1)
    second = fitted(other, "linear", epsilon=4.0, seed=2, prior_sd=10.0)
    apart, _ = compared(first, second, back)
    assert apart > FAR
    assert any("prior_sd" in remark for remark in second[0].remarks)
