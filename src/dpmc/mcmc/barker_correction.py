"""The correction distribution of the Barker acceptance test with Gaussian noise.

The test accepts when lambda + V_log > 0 with V_log ~ Logistic(0, 1), and then satisfies
detailed balance because ln F(l) / F(-l) = l for the logistic distribution function F
[Barker 1965; raisa2021thesis, section 3.2]. Noise N(0, C) on lambda is to take the place of
a part of V_log, and V_corr that of the rest [Seita et al. 2017; Heikkila et al. 2019].

No V_corr makes N(0, C) + V_corr logistic: its characteristic function would have to be
pi t / sinh(pi t) exp(C t^2 / 2), which grows without bound for every C > 0, and C < pi^2 / 3
is necessary only. What can be had is the best approximation, found here by a linear
program over atoms that lie symmetrically about zero.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dpmc.privacy.events import LOGISTIC_VARIANCE
from dpmc.types import Array, DpmcError

# Distance of neighbouring atoms, and the largest: beyond it the logistic distribution has 4e-9.
ATOM_STEP = 0.1
LARGEST_ATOM = 20.0
# Grid on which the program looks at the distribution.
GRID_STEP = 0.05
GRID_END = 24.0
# Log-ratios of a larger size are accepted, or rejected, with a probability above 0.9996.
LARGEST_RATIO = 8.0
NEGLIGIBLE_WEIGHT = 1e-12
# Tolerance of the solver: finer than the errors that are left at small noise variances.
TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Correction:
    """A distribution V symmetric about zero, such that N(0, C) + V is nearly logistic.

    Parameters
    ----------
    noise_variance : float
        The variance C.
    atoms : ndarray of shape (m,)
        Where |V| has mass, ascending and >= 0.
    weights : ndarray of shape (m,)
        Probabilities of the atoms, each shared by its two signs.
    """

    noise_variance: float
    atoms: Array
    weights: Array
    _signed: list[float] = field(init=False, repr=False)
    _cumulative: list[float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        signed = np.concatenate([-self.atoms[::-1], self.atoms])
        half = np.concatenate([self.weights[::-1], self.weights]) / 2
        # Lists: for so few atoms a search among Python numbers is the fastest.
        object.__setattr__(self, "_signed", signed.tolist())
        object.__setattr__(self, "_cumulative", np.cumsum(half)[:-1].tolist())

    def draw(self, rng: np.random.Generator) -> float:
        """Draw V once."""
        return self._signed[bisect(self._cumulative, rng.random())]

    def tail(self, x: npt.ArrayLike) -> Array:
        """Probability that N(0, C) + V exceeds `x`, in the shape of `x`."""
        return _tails(np.asarray(x, np.float64), self.atoms, self.noise_variance) @ self.weights


@functools.cache
def correction(noise_variance: float) -> Correction:
    """Best correction for noise of a variance, computed once.

    With F the distribution function of N(0, C) + V, the largest |ln F(l) / F(-l) - l| for |l| <= 8
    is smallest: detailed balance holds up to exactly this error in the odds.

    Parameters
    ----------
    noise_variance : float
        Variance C of the noise that lambda has, in (0, pi^2 / 3).

    Returns
    -------
    Correction

    Notes
    -----
    The program has the distance of F from the logistic distribution function over the logistic
    density, which is that error to first order. The smallest distance itself is no substitute: at
    C = 2 it is 5.9e-4, larger than the whole tail beyond 8, and the odds there are off by a factor
    e. Weighted, the odds are within 0.0064 and F within 1.4e-3; the published mixture of a hundred
    Gaussians [Heikkila et al. 2019] is at 0.0122 and 2.4e-3.
    """
    check_noise_variance(noise_variance)
    from scipy.optimize import linprog  # takes long: only where it is needed

    atoms, x = _grid(ATOM_STEP, LARGEST_ATOM), _grid(GRID_STEP, GRID_END)
    # Divided by its weight, every row of the program is in the units of the error.
    weight = _logistic_density(np.minimum(x, LARGEST_RATIO))
    tails = _tails(x, atoms, noise_variance) / np.reshape(weight, (-1, 1))
    wanted, error = _logistic_tail(x) / weight, np.ones((x.size, 1))
    solution = linprog(
        np.append(np.zeros(atoms.size), 1.0),
        A_ub=np.block([[tails, -error], [-tails, -error]]),
        b_ub=np.append(wanted, -wanted),
        A_eq=np.append(np.ones(atoms.size), 0.0)[None],
        b_eq=[1.0],
        method="highs",
        options={
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
        },
    )
    if not solution.success or solution.x is None:
        raise DpmcError(
            f"no correction exists for `noise_variance` {noise_variance}: {solution.message}"
        )
    weights: Array = solution.x[:-1]
    kept = weights > NEGLIGIBLE_WEIGHT
    return Correction(noise_variance, atoms[kept], weights[kept] / weights[kept].sum())


def check_noise_variance(noise_variance: float) -> None:
    """Refuse a variance that leaves no room for a correction."""
    number = isinstance(noise_variance, int | float) and not isinstance(noise_variance, bool)
    if not number or not 0 < noise_variance < LOGISTIC_VARIANCE:
        raise DpmcError(
            f"`noise_variance` must be positive and below pi^2/3 = {LOGISTIC_VARIANCE:.4f}, the "
            f"variance of the logistic distribution, got {noise_variance!r}"
        )


def _grid(step: float, last: float) -> Array:
    grid: Array = step * np.arange(round(last / step) + 1, dtype=np.float64)
    return grid


def _logistic_tail(x: Array) -> Array:
    from scipy.special import expit

    tail: Array = expit(-x)
    return tail


def _logistic_density(x: Array) -> Array:
    return _logistic_tail(x) * _logistic_tail(-x)


def _tails(x: Array, atoms: Array, noise_variance: float) -> Array:
    """P(N(0, C) +- a > x) for each x and atom a with a random sign, shape (..., m)."""
    from scipy.special import ndtr

    sd = math.sqrt(noise_variance)
    tails: Array = (ndtr((atoms - x[..., None]) / sd) + ndtr((-atoms - x[..., None]) / sd)) / 2
    return tails
