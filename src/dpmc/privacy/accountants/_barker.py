"""One release of the Barker test: its dominating pairs and its Rényi divergence.

From a batch the test releases N(mean, C - s**2), where s**2 is the variance of the
batch, and both depend on the rows. In units of the smallest noise variance,
C - kappa**2, one substituted row of the batch turns one normal distribution into another; both
variances are at least 1 and differ by at most t = 4 kappa**2 (1 - 1/b) / (b (C - kappa**2)),
the means differ by at most m = 2 kappa / sqrt(b (C - kappa**2)). All that follows holds for
every two such distributions.

Theorem. For gamma >= 1 their divergence H, the integral of p - gamma q over the set A
where p > gamma q, is at most the largest of those of N(m, 1 + t) from N(0, 1), of
N(m, 1) from N(0, 1), and of N(m, 1) from N(0, 1 + t).

Proof. Let p = N(a, v) and q = N(0, w) with a >= 0. On the boundary of A, where it moves,
p = gamma q, so derivatives of H are those under the integral.

1. H grows with a. A is an interval (l, u), or all but one, both centred at a w / (w - v),
   or a half line (l, inf). dH/da is p(l) - p(u) = gamma (q(l) - q(u)) for an interval, the
   negative of it for all but one, and p(l) for a half line. The centre of the interval
   has the sign of w - v, positive in the first case and negative in the second: none of
   the three derivatives is negative.
2. So a = m. For a given ratio v / w, H depends on m**2 / w alone and grows with it, so
   both variances are as small as can be and the smaller is 1. What is left is
   (v, w) = (1 + d, 1) or (1, 1 + d) with 0 <= d <= t. It remains that in both cases, as d
   grows, H does not rise before it falls; then the largest value is at d = 0 or at t.
   Let r = 1 + d, and f(x) = ln x - x**2 / (2 r), so that f' has the sign of r - x**2.
3. (1 + d, 1). All but (l, u), l < 0: 2 r dH/dd = (m - l) p(l) + (u - m) p(u). That is
   positive where u >= m, and at u = m the root u grows with d: it does not return.
   Where u < m, the sign is that of T = f(x) - f(y), x = m - l and y = m - u, x > y > 0.
   With d, ln(p / q) changes by (z**2 / r - 1) / (2 r) at distance z from m. Hence x grows
   where x**2 < r and falls where x**2 > r, y the other way round, so that f(x) - f(y)
   grows through them; it grows through r too, by (x**2 - y**2) / (2 r**2). T increases.
4. (1, 1 + d). An interval (l, u): 2 r dH/dd = gamma (u q(u) - l q(l)). That is positive
   where l <= 0, and at l = 0 the root l falls with d: it does not return. Where l > 0, the
   sign is that of T = f(u) - f(l), u > l > 0. With d, ln(p / q) changes by
   (1 - z**2 / r) / (2 r) at z. Hence u grows where u**2 < r and falls where u**2 > r, l the
   other way round, and T increases as before. Where A is empty H is 0; where it opens
   again, T starts from 0.

The profile of the release, from a batch drawn without replacement, is
``q h(ln(1 + (exp(loss) - 1) / q))`` (Balle, Barthe and Gaboardi 2018, theorem 10), with q
the sampling fraction and h the largest of the three profiles. The largest of convex
functions of gamma is convex, so it is the profile of a pair; neighbours have no order,
so the pair is symmetric.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from dpmc.privacy.accountants._pairs import MAX_LOSS, after_sampling, before_sampling
from dpmc.privacy.events import BarkerEvent
from dpmc.types import Array

# The loss grows with the square of what is released: standard deviations cost points of a grid.
_REACH = 10.5  # a tail of 4e-26 is put at infinite loss


@dataclass(frozen=True)
class BarkerBatch:
    """The symmetric pair of one release of the Barker test.

    Parameters
    ----------
    event : BarkerEvent
    """

    event: BarkerEvent

    @property
    def mean(self) -> float:
        """m, change of the mean in units of the smallest standard deviation."""
        return self.event.mean_change / math.sqrt(self.event.least_variance)

    @property
    def change(self) -> float:
        """t, change of the variance in units of the smallest."""
        return self.event.variance_change / self.event.least_variance

    def tails(self, loss: Array) -> tuple[Array, Array]:
        """See `dpmc.privacy.accountants._pairs.Pair`."""
        q = self.event.fraction
        of_batch = before_sampling(q, loss)
        m, t = self.mean, self.change
        sides = (_same(of_batch, m), _wider(of_batch, m, t), _narrower(of_batch, m, t))
        uppers, lowers = (np.stack(tails) for tails in zip(*sides, strict=True))
        largest = np.argmax(uppers * np.exp(-of_batch) - lowers, axis=0)[None]
        upper = np.take_along_axis(uppers, largest, 0)[0]
        lower = np.take_along_axis(lowers, largest, 0)[0]
        return (1 - q) * lower + q * upper, lower

    def reach(self) -> float:
        """See `dpmc.privacy.accountants._pairs.Pair`."""
        wide = 1 + self.change
        x = self.mean + _REACH * math.sqrt(wide)
        of_batch = (x**2 - _REACH**2 - math.log(wide)) / 2
        return min(MAX_LOSS, after_sampling(self.event.fraction, of_batch))


def _same(loss: Array, m: float) -> tuple[Array, Array]:
    """Two tails of the loss of N(m, 1) from N(0, 1)."""
    x = loss / m + m / 2
    return ndtr(m - x), ndtr(-x)


def _wider(loss: Array, m: float, t: float) -> tuple[Array, Array]:
    """Two tails of the loss of N(m, 1 + t) from N(0, 1).

    The loss is exceeded outside of the roots of ``t x**2 + 2 m x = k``.
    """
    wide = 1 + t
    k = m**2 + wide * (2 * loss + math.log1p(t))
    outer = m + np.sqrt(m**2 + t * k)
    above = k / outer
    below = -outer / t if t > 0 else np.full_like(loss, -np.inf)
    scale = math.sqrt(wide)
    return ndtr((m - above) / scale) + ndtr((below - m) / scale), ndtr(-above) + ndtr(below)


def _narrower(loss: Array, m: float, t: float) -> tuple[Array, Array]:
    """Two tails of the loss of N(m, 1) from N(0, 1 + t).

    The loss is exceeded between the roots of ``t x**2 - 2 m (1 + t) x = -k``, if any.
    """
    wide = 1 + t
    k = wide * (m**2 + 2 * loss - math.log1p(t))
    square = (m * wide) ** 2 - t * k
    outer = m * wide + np.sqrt(np.maximum(square, 0.0))
    low = k / outer
    high = outer / t if t > 0 else np.full_like(loss, np.inf)
    scale = math.sqrt(wide)
    upper = np.where(square > 0, ndtr(m - low) - ndtr(m - high), 0.0)
    return upper, np.where(square > 0, ndtr(-low / scale) - ndtr(-high / scale), 0.0)


def renyi(event: BarkerEvent, orders: Array) -> Array:
    """Largest Rényi divergence of a release from one batch, under substitution.

    That of N(m, 1 + t) from N(0, 1), in the units of this module: of N(a, w (1 + s)) from
    N(0, w) it is ``order a**2 / (2 w (1 - (order - 1) s))`` and, to be added,
    ``-ln(1 + s) / 2 - ln(1 - (order - 1) s) / (2 (order - 1))``. Both terms grow with s >= 0,
    and for orders of at least 2 both are smaller at -s.

    Parameters
    ----------
    event : BarkerEvent
    orders : ndarray
        At least 2.

    Returns
    -------
    ndarray
        Infinite where ``(order - 1) t >= 1``.
    """
    t = event.variance_change / event.least_variance
    rest = 1 - (orders - 1) * t
    inside = np.where(rest > 0, rest, 1.0)
    shift = orders * event.mean_change**2 / (2 * event.least_variance * inside)
    spread = -math.log1p(t) / 2 - np.log(inside) / (2 * (orders - 1))
    return np.where(rest > 0, shift + spread, np.inf)
