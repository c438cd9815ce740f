"""The attack of the gate: whether draws tell neighbouring data sets apart better than they may.

A coin decides for each run which of two neighbouring data sets a method gets
(:mod:`dpmc_league.neighbours`), and a guess is made from its draws: their mean along one direction,
above or below the middle of all runs. The ledger bounds the share of right guesses by (1 + D) / 2,
D the total variation that its releases may have, delta at epsilon 0; Phi(mu / 2) where all are
Gaussian. A method whose share is above it, by the bound of Clopper and Pearson, is found out.

The middle is taken from the runs that are judged, without their coins: given all outcomes each
guess is right with at most the chance of the best guess from its own outcome, whatever the rule
makes of the others. The number of right guesses is therefore never above a binomial one in
distribution.

What is found is a lower bound. Draws of a chain with an acceptance test say far less than what it
released, so that a fault of a factor two in its noise may pass; a method that adds none does not.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from dpmc.numerics import user_cache
from dpmc.numerics.source_digest import code_digest
from dpmc.privacy import events
from dpmc.privacy.accountants import barker_pld, subsampled
from dpmc.privacy.empirical import mu_by_accuracy
from dpmc.privacy.outcomes import Labels
from dpmc.rng import stream
from dpmc.types import Array, DpmcError
from dpmc.types.gaussian_curve import epsilon_of_loss
from dpmc_league import gate, neighbours
from dpmc_league.neighbours import Pair
from dpmc_league.submission import RIVALS, Records, Submission, Terms
from dpmc_league.task import Task

# Probability that an honest method is found out: twenty attacks have 1e-3 together.
ERROR = 5e-5
# The budget of a run under attack, where a right guess has probability 0.82 at most and, of a
# method with half of its noise, 0.97.
EPSILON = 10.0
MAX_PASSES, NUM_DRAWS = 120, 100
SEED = 20261125
# Runs that all fail before another pair is tried, and runs of one call of a command.
TRIED, AT_ONCE = 3, 50


@dataclass(frozen=True)
class Attacked:
    """What the runs of an attack on one method say.

    Parameters
    ----------
    reason : str
        Why the method gets no scores; empty where it stands.
    runs, right : int
        Guesses, and how many of them were right.
    mu, claim_mu : float
        Lower bound on mu from the guesses, and the largest mu of a ledger; of one that is not
        Gaussian, that of the Gaussian release with its total variation.
    epsilon, claim : float
        The same as epsilon at the delta of the attack.
    """

    reason: str = ""
    runs: int = 0
    right: int = 0
    mu: float = math.nan
    claim_mu: float = math.nan
    epsilon: float = math.nan
    claim: float = math.nan


def of(method: Any, task: Task, runs: int) -> Attacked:
    """Attack a method, or return what the same attack found before, from the user's cache.

    A method that fails on the Gaussian pair is attacked on the rows of `task`.
    """
    key = identity(method)
    first = _known(key, "gaussian", runs, lambda: attack(method, neighbours.gaussian(), runs))
    if first.runs:
        return first
    return _known(key, task.digest, runs, lambda: attack(method, neighbours.of(task), runs))


def identity(method: Any) -> str | None:
    """What tells a method from others and from what it was; None where nothing does.

    That is the code of a file of :mod:`dpmc_league.rivals`, or what ``method.identity()`` says.
    """
    if hasattr(method, "identity"):
        return str(method.identity())
    name = str(getattr(method, "__name__", ""))
    if name.startswith(f"{RIVALS}.") and getattr(method.run, "__module__", "") == name:
        return f"{name} {code_digest(name)}"
    return None


def attack(method: Any, pair: Pair, runs: int, seed: int = SEED) -> Attacked:
    """Attack a method on a pair of data sets.

    It may have ``run_many(tasks, terms)`` as well, which returns a submission or an error for each.
    """
    refused = getattr(method, "refusal", lambda task: "")(pair.data)
    if refused:
        return Attacked(refused)
    coins = stream(seed, "league", "attack", "coins").random(runs) < 0.5
    seeds = stream(seed, "league", "attack", "seeds").integers(2**62, size=runs)
    terms = Terms(EPSILON, pair.data.delta, MAX_PASSES, NUM_DRAWS)
    seeded = [replace(terms, seed=int(one)) for one in seeds]
    values, ledgers, said = _outcomes(method, pair, coins, seeded)
    if not ledgers:
        return Attacked(said)
    try:
        claim_mu = claimed(ledgers, terms)
    except DpmcError as error:
        return Attacked(str(error), runs)
    right = int(np.count_nonzero(guesses(values) == coins))
    mu = mu_by_accuracy(right, runs, 1 - ERROR)
    epsilon, claim = (epsilon_of_loss(m * m / 2, terms.delta) if m else 0.0 for m in (mu, claim_mu))
    beaten = mu > claim_mu * (1 + 1e-9)
    reason = f"`ledger` must hold under attack: it has epsilon {claim:.3g}, {epsilon:.3g} was spent"
    return Attacked(reason if beaten else "", runs, right, mu, claim_mu, epsilon, claim)


def guesses(values: Array) -> Labels:
    """For each outcome whether it is above the middle: that of the quartiles of all."""
    finite = values[np.isfinite(values)]
    middle = 0.5 * sum(np.quantile(finite, [0.25, 0.75])) if len(finite) else 0.0
    above: Labels = values > middle
    return above


def claimed(ledgers: Sequence[Records], terms: Terms) -> float:
    """Largest mu of some ledgers, the dearest of which passes the gate."""
    best, dearest = -math.inf, ledgers[0]
    for records in dict.fromkeys(_frozen(one) for one in ledgers):
        mu = _mu(records)
        if mu > best:
            best, dearest = mu, records
    gate.ledger(dearest, terms.delta, terms.epsilon)
    return best


def _mu(records: Records) -> float:
    """Mu of the Gaussian release with the total variation of a ledger."""
    counts = gate.counted(records)
    mu = gate.mu_of(counts)
    if math.isfinite(mu):
        return mu
    barker = any(isinstance(event, events.BarkerEvent) for event in counts)
    distance = (barker_pld if barker else subsampled).delta(counts, 0.0)
    return 2 * float(ndtri(0.5 * (1 + distance)))


def _frozen(records: Records) -> Any:
    return tuple((text, count) for text, count in gate.checked(records))


def _outcomes(
    method: Any, pair: Pair, coins: Labels, terms: Sequence[Terms]
) -> tuple[Array, list[Records], str]:
    """Statistic of each run, NaN where it failed; ledgers; and the last error."""
    tasks = [pair.neighbour if coin else pair.data for coin in coins]
    values = np.full(len(tasks), -math.inf)
    ledgers: list[Records] = []
    said = ""
    for k, handed in enumerate(_handed(method, tasks, terms)):
        if isinstance(handed, Exception):
            said = f"failed under attack: {' '.join(str(handed).split())[:160]}"
            if k + 1 == TRIED and not ledgers:
                break
            continue
        try:
            if handed.ledger is None:
                raise DpmcError("`ledger` must list releases, got none")
            ledgers.append(handed.ledger)
            draws = gate.draws(handed.draws, pair.data.dim, least=1)
            values[k] = float(draws.reshape(-1, pair.data.dim).mean(axis=0) @ pair.direction)
        except DpmcError as error:
            said = f"failed under attack: {error}"
    return values, ledgers, said


def _handed(
    method: Any, tasks: Sequence[Task], terms: Sequence[Terms]
) -> Iterator[Submission | Exception]:
    """What each run hands in, or how it fails; one that cannot be is soon known."""
    if not getattr(method, "many", False):
        for task, one in zip(tasks, terms, strict=True):
            try:
                with np.errstate(all="ignore"):
                    yield method.run(task, one)
            except Exception as error:  # of a method's own
                yield error
        return
    first, end = 0, TRIED
    while first < len(tasks):
        yield from method.run_many(tasks[first:end], terms[first:end])
        first, end = end, end + AT_ONCE


def _known(key: str | None, pair: str, runs: int, make: Callable[[], Attacked]) -> Attacked:
    """Attack of a key from the user's cache, making it where it is not there."""
    if key is None:
        return make()
    whole = f"{key} {pair} {runs} {code_digest(__name__)}"
    name = hashlib.sha256(whole.encode()).hexdigest()[:24]
    path = user_cache.folder() / "league" / f"attack-{name}.json"
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Attacked(**json.loads(path.read_text(encoding="utf-8")))
    found = make()
    part = path.with_name(f"{path.stem}-{uuid.uuid4().hex}.part")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(asdict(found)), encoding="utf-8")
        part.replace(path)
    return found
