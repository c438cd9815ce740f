"""What noise is worth that is correlated, or hidden: chains on a normal target, in batches or not.

The posterior of a parameter is N(0, 1). Its rows are in B batches that take turns, of which each
has a part S_b of the gradient, and all together none: at z a step reads S_b - z / B. A row moves
its S_b by at most c, k = (mu / c)^2 as in :mod:`dpmc_league.theory`, and each row is in one batch.

*Released.* Steps z <- z + h B (S_b - z / B + t e_i), where the noise e has covariance C and every
step is released. With P for the batch of each step and F = P' C^-1 P, which is B by B, the budget
buys t^2 = max F_bb / k. Least squares knows the mode, the sum of all S_b, with variance t^2 1'
F^-1 1: that is worth k / (max F_bb 1' F^-1 1). By Cauchy and Schwarz 1' F^-1 1 is at least B^2 / 1'
F 1, and 1' F 1 at most B^2 max F_bb: no covariance is worth more than k. All rows at once (B = 1)
are worth k for every C. Independent noise is worth k / B. Here e_i = u_i - r u_(i - 1) with
independent u, so that noise of later steps takes back what that of earlier ones has done.

*Hidden.* Each draw is the last state of a run of its own that starts anew, and nothing else is
released. It is normal: a row of batch b moves it by c a_b, a_b the sum of h B (1 - h)^(steps to
go) over the turns of its batch, and its noise has variance v. So a draw costs max a_b^2 c^2 / v of
mu^2, the budget buys k v / max a_b^2 draws, and for small h B all a_b are near 1: k draws of
variance v, in batches as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import lfilter

from dpmc import checks
from dpmc.types import Array, DpmcError

# h times B, how far a hidden run has forgotten its start, and parameters of a run.
STEP, FORGOTTEN, DIM = 0.1, 1e-3, 10


@dataclass(frozen=True)
class Params:
    """Batches and the noise.

    Parameters
    ----------
    batches : int
        B.
    correlation : float
        r, in [0, 1); 0 where noise is hidden.
    """

    batches: int = 1
    correlation: float = 0.0

    def __post_init__(self) -> None:
        checks.at_least("batches", self.batches, 1)
        if not 0 <= self.correlation < 1:
            raise DpmcError(f"`correlation` must be in [0, 1), got {self.correlation}")


class Worth(NamedTuple):
    """What a budget of k exact draws has bought.

    Parameters
    ----------
    square_error : float
        Mean square of the errors of the mode over parameters.
    share : float
        1 over its expectation, over k.
    """

    square_error: float
    share: float


@dataclass(frozen=True)
class Entry:
    """One way to add noise: ``run(params, k, rng)``."""

    name: str
    run: Callable[[Params, float, np.random.Generator], Worth]
    Params: type[Any] = Params


def parts(batches: int, rng: np.random.Generator) -> Array:
    """Parts S_b of the gradient, shape (B, DIM): rows of a normal posterior whose mode is 0."""
    found = rng.standard_normal((batches, DIM)) / math.sqrt(batches)
    centred: Array = found - found.mean(axis=0)
    return centred


def released(params: Params, k: float, rng: np.random.Generator) -> Worth:
    """Run a chain, and solve for the mode from all that it has released."""
    number, r = params.batches, params.correlation
    steps = number * max(1, round(2 * k / STEP / number))
    turn = np.arange(steps) % number
    # C^-1 = L^-T L^-1 for L with ones and -r below them, and L^-1 is a filter.
    whitened = lfilter([1.0], [1.0, -r], np.eye(number)[turn], axis=0)
    information = whitened.T @ whitened
    sd = math.sqrt(information.diagonal().max() / k)
    noise = sd * lfilter([1.0, -r], [1.0], rng.standard_normal((steps, DIM)), axis=0)
    pulls, z, known = parts(number, rng), rng.standard_normal(DIM), np.empty((steps, DIM))
    for i, b in enumerate(turn):
        gradient = pulls[b] - z / number + noise[i]
        known[i] = gradient + z / number
        z = z + STEP * gradient
    white = lfilter([1.0], [1.0, -r], known, axis=0)
    mode = np.linalg.solve(information, whitened.T @ white).sum(axis=0)
    lost = information.diagonal().max() * np.linalg.inv(information).sum()
    return Worth(float(np.mean(mode**2)), 1 / float(lost))


def hidden(params: Params, k: float, rng: np.random.Generator) -> Worth:
    """Run a chain for each draw; the mode is taken for the mean of the last states."""
    number, h = params.batches, STEP / params.batches
    steps = number * math.ceil(math.log(FORGOTTEN) / math.log1p(-h) / number)
    decay = (1 - h) ** np.arange(steps - 1, -1, -1)
    reach = STEP * decay.reshape(-1, number).sum(axis=0)  # a_b
    sd = math.sqrt(2 / STEP / number)
    variance = (STEP * sd) ** 2 * float(np.sum(decay**2))
    draws = math.floor(k * variance / reach.max() ** 2)
    pulls, z = parts(number, rng), rng.standard_normal((draws, DIM))
    for i in range(steps):
        noise = sd * rng.standard_normal((draws, DIM))
        z = z + STEP * (pulls[i % number] - z / number + noise)
    spread = variance + (1 - h) ** (2 * steps)
    error = spread / draws + float(np.sum((reach - reach.mean()) ** 2)) / number
    return Worth(float(np.mean(z.mean(axis=0) ** 2)), 1 / (k * error))


TABLE = {entry.name: entry for entry in (Entry("released", released), Entry("hidden", hidden))}
