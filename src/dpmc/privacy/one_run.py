"""Lower bound on the epsilon of a mechanism from one run, with many canaries [Steinke et al. 2023].

A fair coin decides of each of m canaries whether it is in the data. Scores that are computed from
the outcome rank them; the highest are guessed to be in and as many of the lowest to be out. Of r
guesses about a mechanism that is (epsilon, delta)-DP for each coin, at least v are right with a
probability of at most

    P(B >= v) + 2 m delta max_i P(v - i <= B < v) / i,    B binomial with r and
                                                          e^epsilon / (1 + e^epsilon)

[theorem 5.2]. A mechanism with this epsilon has all that are larger, so any at which this is at
most the error probability is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import bisect
from scipy.special import expit
from scipy.stats import binom

from dpmc import checks
from dpmc.privacy.empirical import AuditResult, checked, roots
from dpmc.privacy.runs import takes
from dpmc.types import Array, DpmcError, Guarantee

FEWEST_CANARIES = 10
_LARGEST_EPSILON = 50.0


def audit_one_run(
    mechanism: Callable[..., Any],
    num_canaries: int,
    *,
    delta: float | None = None,
    confidence: float = 0.95,
    claim: float | Guarantee | None = None,
    seed: int | None = None,
) -> AuditResult:
    """Lower bound on the epsilon of a mechanism, from a single run of it.

    For mechanisms that take minutes. Where thousands of runs can be made `dpmc.audit` finds more:
    all canaries of one run share its noise, so they need parameters enough to be told apart.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(included)`` puts those canaries into its rows that are true in a boolean array
        of shape (num_canaries,), and returns a score for each, higher where the outcome looks as
        if the canary is in. What takes the place of one that is out is as the claimed relation of
        neighbours says: another row, or none. A parameter called ``rng``, without a default, gets
        a `numpy.random.Generator`.
    num_canaries : int
    delta : float, optional
        In [0, 1); by default that of the claim, or 0. Far below 1 / num_canaries it costs nothing.
    confidence : float
        In (0.5, 1).
    claim : float or Guarantee, optional
        Claimed epsilon at `delta`, or a guarantee.
    seed : int, optional
        Makes the coins, and a mechanism that takes ``rng``, repeatable.

    Returns
    -------
    AuditResult
        With the guesses, all or fewer, whose bound is largest; the confidence is shared among
        the numbers of guesses that are tried.

    Raises
    ------
    DpmcError
        If an argument is not allowed, before the run, or the scores are not one number for each
        canary.

    Examples
    --------
    >>> def mechanism(included, rng):
    ...     return included + rng.laplace(scale=0.5, size=included.shape)
    >>> result = audit_one_run(mechanism, 1000, claim=1.0, seed=1)
    >>> result.violates_claim
    True
    """
    delta, claimed = checked(mechanism, confidence, delta, claim)
    checks.at_least("num_canaries", num_canaries, FEWEST_CANARIES)
    coins, runs = roots(seed)
    included = np.random.default_rng(coins).random(num_canaries) < 0.5
    given = {"rng": np.random.default_rng(runs)} if takes(mechanism, "rng") else {}
    scores = _scores(mechanism(included.copy(), **given), num_canaries)

    numbers = _numbers_of_guesses(num_canaries)
    error = (1 - confidence) / len(numbers)
    right = _right_guesses(scores, included, numbers)
    bounds = [
        epsilon_of_guesses(v, r, num_canaries, delta, error)
        for v, r in zip(right, numbers, strict=True)
    ]
    best = int(np.argmax(bounds))
    counts = {"canaries": int(num_canaries), "guesses": numbers[best], "right": right[best]}
    event = f"guess the {numbers[best] // 2} highest scores in and as many of the lowest out"
    return AuditResult(bounds[best], None, delta, confidence, "one_run", event, counts, claimed)


def epsilon_of_guesses(
    right: int, guesses: int, canaries: int, delta: float, error: float
) -> float:
    """Lower bound on epsilon that right guesses about the canaries of one run give, at least 0.

    Parameters
    ----------
    right, guesses, canaries : int
    delta : float
    error : float
        Probability, at most, that the bound is above the truth.
    """

    def excess(epsilon: float) -> float:
        return p_value(right, guesses, canaries, epsilon, delta) - error

    return float(bisect(excess, 0.0, _LARGEST_EPSILON)) if excess(0.0) < 0 else 0.0


def p_value(right: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Largest probability of so many right guesses where the mechanism is (epsilon, delta)-DP."""
    law = binom(guesses, expit(epsilon))
    beyond = float(law.sf(right - 1))
    if delta == 0 or right == 0:
        return beyond
    below = np.cumsum(law.pmf(np.arange(right - 1, -1, -1)))  # of v - i <= B < v for i = 1, 2, ...
    gained = float(np.max(below / np.arange(1, right + 1)))
    return min(1.0, beyond + 2 * canaries * delta * gained)


def _numbers_of_guesses(canaries: int) -> list[int]:
    """Even numbers of guesses, each about half of the one before."""
    numbers = [canaries - canaries % 2]
    while numbers[-1] // 2 >= FEWEST_CANARIES:
        half = numbers[-1] // 2
        numbers.append(half - half % 2)
    return numbers


def _right_guesses(scores: Array, included: npt.NDArray[np.bool_], numbers: list[int]) -> list[int]:
    order = np.argsort(scores, kind="stable")
    ranked = included[order]
    return [
        int(np.count_nonzero(ranked[len(ranked) - r // 2 :]) + np.count_nonzero(~ranked[: r // 2]))
        for r in numbers
    ]


def _scores(values: Any, num_canaries: int) -> Array:
    scores = checks.real_numbers(values)
    if scores.shape != (num_canaries,) or np.isnan(scores).any():
        got = "NaN among them" if scores.shape == (num_canaries,) else f"shape {np.shape(values)}"
        raise DpmcError(
            f"`mechanism` must return {num_canaries} numbers, a score for each canary, got {got}"
        )
    return scores
