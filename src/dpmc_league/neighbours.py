"""Pairs of small neighbouring data sets that attacks tell apart: one row is a canary, or another.

Of the Gaussian pair both canaries lie far beyond the public ball, on either side of it: a method
that clips moves by all that it may, and one that does not moves by more. Of any other task they are
two of its own rows, those with gradients farthest from one another at the mode, in coordinates
that whiten the posterior.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from dpmc.numerics.compiled import compile_once
from dpmc.types import Array, Dataset
from dpmc_league import families
from dpmc_league.references import LogDensity
from dpmc_league.task import Task

GAUSSIAN_ROWS, ROWS, POOL = 400, 200, 4000
# How far beyond the public ball the canaries of the Gaussian pair lie.
BEYOND = 100.0
NAME = "attack"


@dataclass(frozen=True, eq=False)
class Pair:
    """Two tasks whose rows differ in the first one alone.

    Parameters
    ----------
    data, neighbour : Task
    direction : ndarray of shape (d,)
        Along which the mean of the draws moves upwards from data to neighbour: the difference of
        the two gradients, which is the best linear statistic where the posterior is normal.
    """

    data: Task
    neighbour: Task
    direction: Array


@functools.cache
def gaussian() -> Pair:
    """Pair on the mean of a Gaussian in two dimensions, its statistic and shape known.

    Methods that know a sufficient statistic are attacked by what they do with it.
    """
    task = families.gaussian(f"{NAME}-gaussian-2", 2, GAUSSIAN_ROWS)
    root = np.linalg.cholesky(np.array([[1.0, 0.5], [0.5, 1.0]]))
    along = BEYOND * task.bounds["radius"] * np.array([0.6, 0.8])
    data, neighbour = (replace(task, rows=_with(task.rows, root @ (s * along))) for s in (-1, 1))
    direction: Array = np.asarray(np.linalg.solve(root.T, along), dtype=np.float64)
    return Pair(data, neighbour, direction)


def of(task: Task) -> Pair:
    """Pair on the first rows of a task; methods are told nothing but rows and model."""
    plain = replace(
        task,
        name=f"{NAME}-{task.name}",
        rows=task.rows[: min(ROWS, task.num_rows)],
        fresh=None,
        statistic=None,
        shape=None,
        sample=None,
    )
    density = LogDensity(plain.model, plain.dataset, plain.start)
    starts = plain.start if task.modes is None else task.modes[0]
    mode = density.mode(starts)
    pool = task.rows[:POOL]
    gradients = row_gradients(plain, mode, pool)
    values, vectors = np.linalg.eigh(density.precision(mode))
    white = gradients @ (vectors / np.sqrt(np.maximum(np.abs(values), 1e-12)))
    first = int(np.argmax(np.sum(white**2, axis=1)))
    second = int(np.argmax(np.sum((white - white[first]) ** 2, axis=1)))
    data, neighbour = (replace(plain, rows=_with(plain.rows, pool[k])) for k in (first, second))
    return Pair(data, neighbour, gradients[second] - gradients[first])


def row_gradients(task: Task, theta: Array, rows: Array) -> Array:
    """Gradient of the log-likelihood of each row, shape (m, d)."""
    model = task.model
    x = Dataset(task.name, rows, task.bounds).x
    features = np.asarray((model.features or np.transpose)(x), dtype=np.float64)
    c = theta if model.coefficients is None else compile_once(model.coefficients)(theta)
    gradient, point = compile_once(model.gradient), tuple(map(float, c))
    return np.array([gradient(point, tuple(row)) for row in features.T.tolist()], dtype=np.float64)


def _with(rows: Array, canary: Array) -> Array:
    changed = rows.copy()
    changed[0] = canary
    return changed
