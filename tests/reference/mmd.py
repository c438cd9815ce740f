"""MMD by brute force."""

from __future__ import annotations

import numpy as np


def brute_force(x, y, width):
    def kernel(a, b):
        return np.exp(-np.sum((a[:, None] - b[None]) ** 2, axis=2) / (2 * width**2))

    def off_diagonal(a):
        gram = kernel(a, a)
        return (gram.sum() - np.trace(gram)) / (len(a) * (len(a) - 1))

    return off_diagonal(x) + off_diagonal(y) - 2 * kernel(x, y).mean()
