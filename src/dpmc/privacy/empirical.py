"""Lower bounds on the privacy loss of a mechanism that can only be run.

A fair coin decides for each run whether the mechanism gets the data or the neighbour, and a rule
guesses the coin from the outcome, or passes. The rule is chosen on the first part of the runs and
judged on the rest, which makes the share of right guesses a binomial one:

- by counts: guess the neighbour on a set E of outcomes and the data on a set F. A mechanism that is
  (epsilon, delta)-DP has P(right) <= e^epsilon P(wrong) + k delta / 2, whatever E and F are, with k
  the number of those that are not empty: half the sum of the definition for either. With the
  Clopper-Pearson lower bounds q on the share of right guesses among all guesses, and g on the
  probability of a guess, epsilon >= ln((q - k delta / (2 g)) / (1 - q)).
- by the trade-off curve: guess always. Of a mechanism that is mu-GDP [Dong, Roth and Su 2022,
  definition 2.3] at most the share Phi(mu / 2) of the guesses is right, and epsilon at delta
  follows from mu [corollary 2.13]. This bound is larger where the claim is one of Gaussian privacy,
  as [Nasr et al. 2023] found for noisy gradients, and nothing where it is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri

from dpmc import checks, plots
from dpmc.privacy.outcomes import Labels, Outcomes, Raised, Score, candidates
from dpmc.privacy.runs import outcomes_of
from dpmc.types import Array, DpmcError, Guarantee, is_real
from dpmc.types.gaussian_curve import epsilon_of_loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Method = Literal["counts", "trade_off", "one_run"]

FEWEST_RUNS = 200
# Share of the runs to choose the rule on; the bound is from the rest. Scores are learnt from the
# first half of these, and their thresholds chosen on the second.
LEARNING_SHARE = 1 / 4
# Standard errors that a rule is put down by when it is chosen: more than the bound has, since the
# best of many rules by their own counts is the luckiest one.
_CAUTION = 3.5
# Share of the error probability for how often the rule guesses, which matters with delta only.
_SHARE_OF_GUESSES = 0.1
_NUM_LEVELS = 160


@dataclass(frozen=True, repr=False)
class AuditResult:
    """Result of an audit of a mechanism by its runs.

    Parameters
    ----------
    epsilon_lower : float
        Lower bound on epsilon at `delta`, with the confidence.
    mu_lower : float or None
        Lower bound on mu, by the trade-off curve.
    delta : float
    confidence : float
        Probability, at least, that a bound is not above the truth.
    method : {"counts", "trade_off", "one_run"}
        ``"counts"`` holds for every mechanism, as does ``"one_run"``; ``"trade_off"`` under the
        hypothesis of mu-GDP.
    event : str
        The rule, in words.
    counts : mapping of str to int
        Runs ``learning`` and ``judging`` the rule, or ``canaries`` of one run; of the latter
        ``guesses`` and, among those, ``right`` ones.
    claim : float or None
        Claimed epsilon at `delta`.
    claim_mu : float or None
        Claimed mu.

    Examples
    --------
    >>> counts = {"learning": 50, "judging": 150, "guesses": 100, "right": 90}
    >>> result = AuditResult(1.2, None, 0.0, 0.95, "counts", "output > 0.5", counts, claim=1.0)
    >>> result.violates_claim
    True
    """

    epsilon_lower: float
    mu_lower: float | None
    delta: float
    confidence: float
    method: Method
    event: str
    counts: Mapping[str, int]
    claim: float | None = None
    claim_mu: float | None = None

    @property
    def violates_claim(self) -> bool:
        """Whether the claim is refuted, with the confidence."""
        if self.claim_mu is not None and self.mu_lower is not None:
            return self.mu_lower > self.claim_mu
        return self.claim is not None and self.epsilon_lower > self.claim

    def plot(self) -> Figure:
        """Trade-off curves [Dong, Roth and Su 2022] of the claim and of what was found.

        A claim whose curve is above the one that was found is refuted.

        Raises
        ------
        DpmcError
            If seaborn is not installed.
        """
        found = plots.of_epsilon(self.epsilon_lower, self.delta)
        lines = {f"found, epsilon >= {self.epsilon_lower:.3g}": found}
        if self.mu_lower is not None:
            lines = {f"found, mu >= {self.mu_lower:.3g}": plots.of_mu(self.mu_lower)}
        if self.claim_mu is not None and math.isfinite(self.claim_mu):
            lines[f"claim, mu = {self.claim_mu:.3g}"] = plots.of_mu(self.claim_mu)
        elif self.claim is not None:
            curve = plots.of_epsilon(self.claim, self.delta)
            lines[f"claim, epsilon = {self.claim:.3g}"] = curve
        return plots.trade_off(lines)

    def __repr__(self) -> str:
        how = "from one run" if self.method == "one_run" else "by counts"
        how = how if self.mu_lower is None else f"if GDP, mu >= {self.mu_lower:.3g}"
        text = f"epsilon >= {self.epsilon_lower:.3g} at delta = {self.delta:.3g} ({how}"
        text += f", confidence {self.confidence:.4g})"
        if self.claim is not None:
            verdict = "violated" if self.violates_claim else "not violated"
            text += f", claim {self.claim:.3g} {verdict}"
        return f"AuditResult({text})"


def audit(
    mechanism: Callable[..., Any],
    data: Any,
    neighbour: Any,
    *,
    delta: float | None = None,
    confidence: float = 0.95,
    num_runs: int = 20_000,
    statistic: Callable[[Any], Any] | None = None,
    claim: float | Guarantee | None = None,
    mu: float | None = None,
    workers: int = 1,
    seed: int | None = None,
) -> AuditResult:
    """Lower bound on the epsilon of a mechanism, from its outcomes alone.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(data)`` returns an outcome of any type. A parameter called ``size``, without
        a default, asks for so many independent outcomes at once, as a sequence; one called
        ``rng``, without a default, gets a `numpy.random.Generator`. An exception is an outcome
        too, where runs are made one by one.
    data, neighbour
        Two neighbouring data sets, passed on as they are. The bound is that of this pair, so
        choose a bad one: see ``docs/audit.md``.
    delta : float, optional
        In [0, 1); by default that of the claim, or 0.
    confidence : float
        In (0.5, 1).
    num_runs : int
        Runs in all, on either data set by a fair coin.
    statistic : callable, optional
        What to look at in an outcome: a number, or anything else. By default a score is learnt
        from the whole outcome.
    claim : float or Guarantee, optional
        Claimed epsilon at `delta`, or a guarantee.
    mu : float, optional
        Claimed mu of Gaussian differential privacy: the bound is then by the trade-off curve
        and not by counts. With ``inf``, such a bound without a claim.
    workers : int
        Processes. More than one need a mechanism that can be pickled and takes ``rng``.
    seed : int, optional
        Makes the coins, and a mechanism that takes ``rng``, repeatable.

    Returns
    -------
    AuditResult

    Raises
    ------
    DpmcError
        If an argument is not allowed, before any run, the mechanism returns another number of
        outcomes than it was asked for, or every run of it raises.

    Examples
    --------
    >>> def mechanism(data, size, rng):
    ...     return data + rng.laplace(scale=1.0, size=size)
    >>> result = audit(mechanism, 0.0, 1.0, claim=0.1, num_runs=4000, seed=1)
    >>> result.violates_claim
    True
    """
    delta, claimed = checked(mechanism, confidence, delta, claim, mu)
    checks.at_least("num_runs", num_runs, FEWEST_RUNS)
    checks.at_least("workers", workers, 1)
    num_runs, workers = int(num_runs), int(workers)
    coins, runs = roots(seed)
    labels: Labels = np.random.default_rng(coins).random(num_runs) < 0.5
    results = outcomes_of(mechanism, (data, neighbour), labels, workers, runs)
    if all(isinstance(outcome, Raised) for outcome in results):
        raise DpmcError(
            f"`mechanism` must return an outcome in some run, got {results[0].name}: "
            f"{results[0].text} and the like in all of {num_runs}"
        )
    if statistic is not None:
        results = [x if isinstance(x, Raised) else statistic(x) for x in results]
    cut = round(num_runs * LEARNING_SHARE)
    learning, judging = Outcomes(results[:cut]), Outcomes(results[cut:])
    method: Method = "counts" if mu is None else "trade_off"
    rule = _choose(learning, labels[:cut], delta, method)
    guess = rule.guess(judging)
    guesses = int(np.count_nonzero(guess))
    right = int(np.count_nonzero(guess == np.where(labels[cut:], 1, -1)))
    counts = {"learning": cut, "judging": len(judging), "guesses": guesses, "right": right}
    event = rule.text(learning, "output" if statistic is None else "statistic")
    common = (delta, confidence, method, event, counts, claimed)
    if mu is None:
        lower = epsilon_by_counts(right, guesses, len(judging), rule.sides * delta / 2, confidence)
        return AuditResult(lower, None, *common)
    mu_lower = mu_by_accuracy(right, guesses, confidence)
    claim_mu = mu if math.isfinite(mu) else None
    return AuditResult(_epsilon(mu_lower, delta), mu_lower, *common, claim_mu)


def epsilon_by_counts(
    right: int, guesses: int, runs: int, allowed: float, confidence: float
) -> float:
    """Lower bound on epsilon that right guesses give, at least 0.

    Parameters
    ----------
    right, guesses, runs : int
        Right guesses of the guesses made in so many runs.
    allowed : float
        k delta / 2: what the probability of a right guess may have beyond e^epsilon times that of
        a wrong one.
    confidence : float
    """
    error = 1 - confidence
    if allowed == 0:
        q, spent = clopper_pearson(right, guesses, error), 0.0
    else:
        q = clopper_pearson(right, guesses, (1 - _SHARE_OF_GUESSES) * error)
        g = clopper_pearson(guesses, runs, _SHARE_OF_GUESSES * error)
        spent = allowed / g if g > allowed else 1.0
    return math.log((q - spent) / (1 - q)) if q - spent > 1 - q else 0.0


def mu_by_accuracy(right: int, guesses: int, confidence: float) -> float:
    """Lower bound on mu that right guesses give, at least 0, where none is passed."""
    return max(0.0, 2 * float(ndtri(clopper_pearson(right, guesses, 1 - confidence))))


def clopper_pearson(successes: int, trials: int, error: float) -> float:
    """Lower end of the one-sided interval of [Clopper and Pearson 1934]."""
    if successes == 0:
        return 0.0
    return float(betaincinv(successes, trials - successes + 1, error))


@dataclass(frozen=True, eq=False)
class _Rule:
    """Guess the neighbour from a score of `upper` on, the data where it is below `lower`."""

    score: Score
    lower: float
    upper: float

    @property
    def sides(self) -> int:
        """Of how many of the two the rule knows a sign."""
        return int(math.isfinite(self.lower)) + int(math.isfinite(self.upper))

    def guess(self, outcomes: Outcomes) -> npt.NDArray[np.int64]:
        """Return 1 for the neighbour, -1 for the data and 0 for no guess, shape (m,)."""
        values = self.score(outcomes)
        return (values >= self.upper).astype(np.int64) - (values < self.lower)

    def text(self, outcomes: Outcomes, name: str) -> str:
        parts = []
        if math.isfinite(self.upper):
            region = self.score.region(outcomes, self.upper, True, name)
            parts.append(f"neighbour where {region}")
        if math.isfinite(self.lower):
            otherwise = self.lower == self.upper
            region = self.score.region(outcomes, self.lower, False, name)
            parts.append("data otherwise" if otherwise else f"data where {region}")
        return "guess " + ", ".join(parts) if parts else "no guess"


def _choose(outcomes: Outcomes, labels: Labels, delta: float, method: Method) -> _Rule:
    """Rule whose cautious bound on the runs that it is chosen on is largest."""
    best, rule = -math.inf, None
    half = len(labels) // 2
    scores = candidates(Outcomes(outcomes.values[:half]), labels[:half])
    outcomes, labels = Outcomes(outcomes.values[half:]), labels[half:]
    for score in scores:
        values = score(outcomes)
        levels = np.concatenate([np.linspace(0, 1, _NUM_LEVELS + 1), [1e-3, 3e-3, 0.997, 0.999]])
        grid = np.unique(np.quantile(values, levels, method="inverted_cdf"))
        grid = np.append(grid, math.inf)
        ones, zeros = np.sort(values[labels]), np.sort(values[~labels])
        below_ones, below_zeros = np.searchsorted(ones, grid), np.searchsorted(zeros, grid)
        above_ones, above_zeros = len(ones) - below_ones, len(zeros) - below_zeros
        right = above_ones[None, :] + below_zeros[:, None]  # data below row, neighbour from column
        guesses = right + above_zeros[None, :] + below_ones[:, None]
        if method == "trade_off":
            gain = np.where(np.eye(len(grid), dtype=bool), right.astype(float), -math.inf)
        else:
            sides = np.add.outer(np.arange(len(grid)) > 0, np.isfinite(grid), dtype=float)
            allowed = len(values) * sides * delta / 2
            gain = _cautious(right.astype(float), guesses.astype(float), allowed)
            gain[np.tri(len(grid), k=-1, dtype=bool)] = -math.inf
        row, column = np.unravel_index(int(np.argmax(gain)), gain.shape)
        if gain[row, column] > best:
            best = float(gain[row, column])
            lower = _between(values, grid[row]) if row else -math.inf  # nothing is below the least
            rule = _Rule(score, lower, _between(values, grid[column]))
    assert rule is not None, "no score was learnt"
    return rule


def _between(values: Array, threshold: float) -> float:
    """Middle of the gap that ends at a threshold, which parts values in the same way.

    Runs to come have other scores: those that are far apart stay so.
    """
    below = values[values < threshold]
    if not (below.size and math.isfinite(threshold)):
        return float(threshold)
    largest = float(below.max())
    middle = largest + (threshold - largest) / 2
    return middle if largest < middle else float(threshold)


def _cautious(right: Array, guesses: Array, allowed: Array) -> Array:
    """Bounds with Wilson's interval in place of the exact one, which takes long."""
    z, total = _CAUTION, np.maximum(guesses, 1)
    share = right / total
    middle = share + z**2 / (2 * total)
    half = z * np.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    q = (middle - half) / (1 + z**2 / total)
    bounds: Array = np.log(np.maximum(q - allowed / total, 1e-9) / (1 - q))
    return np.where(guesses > 0, bounds, -1e9)


def _epsilon(mu: float, delta: float) -> float:
    if mu == 0:
        return 0.0
    return epsilon_of_loss(mu**2 / 2, delta)


def checked(
    mechanism: object,
    confidence: float,
    delta: float | None,
    claim: float | Guarantee | None,
    mu: float | None = None,
) -> tuple[float, float | None]:
    """Delta and the claimed epsilon, after all that audits are given was checked."""
    if not callable(mechanism):
        raise DpmcError(f"`mechanism` must be a function, got {type(mechanism).__name__}")
    if not (is_real(confidence) and 0.5 < confidence < 1):
        raise DpmcError(f"`confidence` must be in (0.5, 1), got {confidence!r}")
    claimed = claim.epsilon if isinstance(claim, Guarantee) else claim
    if isinstance(claim, Guarantee) and delta not in (None, claim.delta):
        raise DpmcError(f"`delta` must be that of the claim, {claim.delta}, got {delta}")
    if delta is None:
        delta = claim.delta if isinstance(claim, Guarantee) else 0.0
    if not (is_real(delta) and 0 <= delta < 1):
        raise DpmcError(f"`delta` must be in [0, 1), got {delta!r}")
    if claimed is not None and not (is_real(claimed) and claimed >= 0):
        raise DpmcError(f"`claim` must be a number of at least 0 or a Guarantee, got {claimed!r}")
    if mu is None:
        return delta, claimed
    if not (is_real(mu) and mu > 0):
        raise DpmcError(f"`mu` must be positive, got {mu!r}")
    if delta == 0:
        raise DpmcError("`delta` must be positive with `mu`, got 0: no Gaussian noise has epsilon")
    if claimed is None and math.isfinite(mu):
        claimed = _epsilon(mu, delta)
    return delta, claimed


def roots(seed: int | None) -> list[np.random.SeedSequence]:
    """Roots of coins and of runs."""
    seed = checks.seed(seed)
    # No root takes a negative number.
    return np.random.SeedSequence(seed if seed is None or seed >= 0 else [-seed, 1]).spawn(2)
