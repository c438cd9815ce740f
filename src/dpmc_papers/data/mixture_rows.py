"""Rows of a mixture of Gaussians of equal weights [vinaroz2022dpsep, section 6.1].

The text draws the means mu_j ~ N(m, I). The public code draws mu_j = M_j + |S_j| z_j, each
entry of M, S and z standard normal, from two generators with fixed seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.rng import stream
from dpmc.types import Array, Dataset, DpmcError

SOURCES = ("paper", "authors")
# A mean of the public code whose entries sum to less than this would have been drawn again.
LEAST_SUM = 1e-4
# The seed of M and S is this times that of the rows.
SCALE_FACTOR = 10


@dataclass(frozen=True)
class Params:
    """Size of the data, and who says what they are.

    Parameters
    ----------
    num_rows : int
        N.
    source : {"paper", "authors"}
        ``"paper"``: mu_j ~ N(0, I), rows from the stream of the data. ``"authors"``: the rows
        of the public code, bit for bit, whatever the stream; N is 1000 there.
    num_components : int
        J.
    dim : int
        d.
    sigma_x : float
        Standard deviation of a row around its mean.
    draw : int
        Number of the draw of the means, with source ``"paper"``.
    seed : int
        Seed of the rows, with source ``"authors"``; 60 in [vinaroz2022dpsep, table 1].
    """

    num_rows: int = 1000
    source: str = "paper"
    num_components: int = 4
    dim: int = 4
    sigma_x: float = 0.5
    draw: int = 0
    seed: int = 60

    def __post_init__(self) -> None:
        checks.at_least("num_rows", self.num_rows, 1)
        checks.one_of("source", self.source, SOURCES)
        checks.at_least("num_components", self.num_components, 1)
        checks.at_least("dim", self.dim, 1)
        checks.positive("sigma_x", self.sigma_x)
        checks.at_least("draw", self.draw, 0)
        checks.at_least("seed", self.seed, 0)


class Parts(NamedTuple):
    """What a data set is made of.

    Parameters
    ----------
    rows : ndarray of shape (N, d)
    labels : ndarray of int of shape (N,)
        The component of each row, from 0; unknown to inference.
    means : ndarray of shape (J, d)
        mu_j.
    """

    rows: Array
    labels: npt.NDArray[np.int64]
    means: Array


def generate(params: Params, rng: np.random.Generator) -> Dataset:
    """Draw the rows [columns | label], x of shape (N, d + 1); ``truth`` holds the means."""
    made = _authors(params) if params.source == "authors" else _paper(params, rng)
    x = np.column_stack([made.rows, made.labels.astype(np.float64)])
    facts = {"num_components": params.num_components, "sigma_x": float(params.sigma_x)}
    return Dataset("mixture_rows", x, truth=made.means.ravel(), facts=facts)


def parts(dataset: Dataset) -> Parts:
    """Rows, labels and means of a data set of this module."""
    if dataset.name != "mixture_rows" or dataset.truth is None:
        raise DpmcError(f"`dataset` must hold rows of 'mixture_rows', got {dataset.name!r}")
    rows = np.ascontiguousarray(dataset.x[:, :-1])
    means = dataset.truth.reshape(-1, rows.shape[1])
    return Parts(rows, dataset.x[:, -1].astype(np.int64), means)


def prior_means(num_components: int = 4, dim: int = 4) -> Array:
    """Prior means of the public code, unrelated to the rows, shape (J, d)."""
    return np.random.RandomState(0).standard_normal((num_components, dim))


def _paper(params: Params, rng: np.random.Generator) -> Parts:
    shape = (params.num_components, params.dim)
    # A stream of their own: all sizes of data share the means.
    means = stream(params.draw, "mixture means", *shape).standard_normal(shape)
    labels = rng.integers(0, params.num_components, size=params.num_rows)
    noise = rng.standard_normal((params.num_rows, params.dim))
    return Parts(means[labels] + params.sigma_x * noise, labels, means)


def _authors(params: Params) -> Parts:
    num, dim = params.num_components, params.dim
    first = np.random.RandomState(SCALE_FACTOR * params.seed)
    centres = first.standard_normal((num, dim))
    scales = np.abs(first.standard_normal((num, dim)))
    second = np.random.RandomState(params.seed)
    means = centres + second.standard_normal((num, dim)) * scales
    if np.abs(means.sum(axis=1)).min() < LEAST_SUM:
        raise DpmcError(
            f"`seed` must give means whose sums are at least {LEAST_SUM}, got {params.seed}"
        )
    labels = second.choice(num, size=params.num_rows, p=np.full(num, 1 / num))
    noise = second.standard_normal((params.num_rows, dim))
    return Parts(means[labels] + noise * params.sigma_x, labels, means)
