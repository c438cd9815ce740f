"""Look an accountant up by its file name, and turn its delta into counts."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from dpmc.privacy import events
from dpmc.types import Budget, DpmcError
from dpmc.types.roots import Bracket

if TYPE_CHECKING:
    from dpmc.privacy.events import Counts, Event, Releases

PACKAGE = "dpmc.privacy.accountants"
MAX_ITERATIONS = 10**12  # a count beyond it is a mistake in the noise multiplier


def names() -> tuple[str, ...]:
    """Sorted names of the accountants."""
    package = importlib.import_module(PACKAGE)
    found = (info.name for info in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def load(name: str) -> ModuleType:
    """Accountant called `name`."""
    if name not in names():
        raise DpmcError(f"`accountant` must be one of {', '.join(names())}, got {name!r}")
    return importlib.import_module(f"{PACKAGE}.{name}")


def refuse(accountant: str, event: Event, covered: str) -> DpmcError:
    """Error of an accountant that cannot prove `event`."""
    return DpmcError(f"accountant {accountant} covers {covered} only, got {events.text(event)}")


def max_iterations(releases: Releases, budget: Budget, num_chains: int) -> int:
    """Largest number of iterations per chain that the budget pays for.

    The chains are released together: composition runs over all of them
    (raisa2021dphmc, section 4). The number never exceeds the budget by the
    accountant's own delta.

    Parameters
    ----------
    releases : Releases
        What one chain releases.
    budget : Budget
        Names the accountant.
    num_chains : int
        Chains that share the budget.

    Returns
    -------
    int
        0 if not even one iteration fits.
    """
    if num_chains < 1:
        raise DpmcError(f"`num_chains` must be at least 1, got {num_chains}")
    accountant = load(budget.accountant)
    if hasattr(accountant, "max_iterations"):
        return int(accountant.max_iterations(releases, budget, num_chains))
    return search(accountant.delta, releases, budget, num_chains)


def search(
    delta: Callable[[Counts, float], float],
    releases: Releases,
    budget: Budget,
    num_chains: int,
    guess: int = 1,
) -> int:
    """Largest number of iterations per chain by a search over an accountant's delta."""

    def excess(num_iterations: int) -> float:
        spent = delta(releases.counts(num_iterations, num_chains), budget.epsilon)
        return math.log(spent / budget.delta) if spent > 0 else -math.inf

    return largest(excess, guess)


def largest(excess: Callable[[int], float], guess: int = 1) -> int:
    """Largest k in 1..`MAX_ITERATIONS` with ``excess(k) <= 0``, 0 if there is none.

    Parameters
    ----------
    excess : callable ``(int) -> float``
        Increasing. About a power of k near its root helps speed, not correctness.
    guess : int, default 1
        Where to look first.

    Returns
    -------
    int
        With ``excess`` not positive there, and positive one further.
    """
    within: tuple[int, float] | None = None
    beyond: tuple[int, float] | None = None
    k, stride = min(max(guess, 1), MAX_ITERATIONS), 1
    while within is None or beyond is None:
        value = excess(k)
        if value <= 0:
            within = k, value
            if k == MAX_ITERATIONS:
                return k
            k = k + stride if guess > 1 else 8 * k
        else:
            beyond = k, value
            if k == 1:
                return 0
            k -= stride
        k, stride = min(max(k, 1), MAX_ITERATIONS), 8 * stride
    bracket = Bracket(*within, *beyond)
    while bracket.high - bracket.low > 1:
        k = round(bracket.low * (bracket.high / bracket.low) ** bracket.share())
        k = int(min(max(k, bracket.low + 1), bracket.high - 1))
        bracket.narrow(k, excess(k))
    return int(bracket.low)


def settle(quotient: float, within: Callable[[int], bool]) -> int:
    """Largest count within budget, next to a quotient that only rounding puts off.

    Parameters
    ----------
    quotient : float
        What is left of the budget over the cost of one iteration.
    within : callable ``(int) -> bool``
        Whether so many iterations keep the budget.

    Returns
    -------
    int
        Between 0 and `MAX_ITERATIONS`; within budget unless 0.
    """
    count = max(0, math.floor(min(quotient, MAX_ITERATIONS) * (1 - 1e-12)))
    while count > 0 and not within(count):
        count -= 1 + count // 10**9
    while count < MAX_ITERATIONS and within(count + 1):
        count += 1
    return count
