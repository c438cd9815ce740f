"""Iterations and noise that budgets buy, in a file of the project and in the user's cache.

A run never reads them: the code of its own process asks the accountant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from dpmc import registry
from dpmc.numerics import user_cache
from dpmc.numerics.source_digest import canonical
from dpmc.privacy import accounting, events
from dpmc.registry import refusal
from dpmc.types import Budget, DpmcError
from dpmc_papers.config.pricing import Bought
from dpmc_papers.config.settings import plain
from dpmc_papers.config.setups import ChainSetup, StudySetup
from dpmc_papers.data._sizes import shape
from dpmc_papers.pipeline import dependencies, files

# Beyond it the oldest are forgotten.
MOST_KEPT = 20_000
DIGITS = 16
# They draw noise and keep books: what a budget buys is none of their business.
SPENDING = frozenset(
    f"dpmc.privacy.{name}"
    for name in ("budgets", "compiled_noise", "discrete", "ledger", "single_releases")
)
# By a digest of all that they depend on, settings and code: many jobs share them.
_known: dict[str, tuple[Bought, ...]] = {}


def of_chain(setup: ChainSetup) -> Bought:
    """Return what the budget of one point of an experiment buys, as its method and accountant say.

    Raises
    ------
    DpmcError
        If the method spends no budget and is given one.
    """
    rows, _ = shape(setup.problem)
    wanted = (setup.params, setup.budget, setup.num_chains, setup.num_iterations)
    asked = [rows, setup.method, *map(plain, wanted), setup.max_iterations]
    modules = [f"{registry.package('method')}.{setup.method}"]
    if setup.budget is not None:
        modules.append(f"{accounting.PACKAGE}.{setup.budget.accountant}")
    (found,) = _recalled(asked, modules, lambda: (_buy(setup, rows),))
    return found


def of_study(setup: StudySetup) -> tuple[Bought, ...]:
    """Return what the budgets of the points of a study buy, as the study says, each once."""
    modules = [f"{registry.package('study')}.{setup.study}"]
    modules.append(registry.home(setup.study, setup.method))
    study = registry.load("study", setup.study)

    def ask() -> tuple[Bought, ...]:
        return tuple(dict.fromkeys(map(study.describe_budget, setup.each())))

    return _recalled(plain(setup), modules, ask)


def shipped(root: Path) -> Path:
    """Return the file of the project in a checkout."""
    return root / "config" / "budgets.json"


def default_path() -> Path:
    """Return the file in the user's cache."""
    return user_cache.folder() / "budgets.json"


@contextmanager
def kept(path: Path, *others: Path) -> Iterator[None]:
    """Take what budgets buy from files, and add to the first what was asked for besides.

    Parameters
    ----------
    path : Path
        One that is missing or damaged is made anew; one that cannot be written is left.
    *others : Path
        Read alone.
    """
    found = _read(path)
    for other in others:
        _known.update(_read(other))
    _known.update(found)
    before = set(_known)
    try:
        yield
    finally:
        if new := {key: value for key, value in _known.items() if key not in before}:
            newest = dict(list({**found, **new}.items())[-MOST_KEPT:])
            with suppress(OSError), files.replacing(path) as partial:
                partial.write_bytes(msgspec.json.encode(newest))


def ship(path: Path) -> None:
    """Write all that is known to a file of the project, an answer a line."""
    encoded = {key: msgspec.json.encode(_known[key]).decode() for key in sorted(_known)}
    lines = ",\n".join(f'"{key}":{value}' for key, value in encoded.items())
    files.write_text(path, f"{{\n{lines}\n}}\n")


def _read(path: Path) -> dict[str, tuple[Bought, ...]]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, tuple[Bought, ...]])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _recalled(
    asked: object, modules: list[str], ask: Callable[[], tuple[Bought, ...]]
) -> tuple[Bought, ...]:
    named = dependencies.strings(asked)
    code = dependencies.code_about(
        "dpmc.privacy", __name__, *modules, named=named, without=SPENDING
    )
    key = hashlib.sha256(canonical([asked, code]).encode()).hexdigest()[:DIGITS]
    if key not in _known:
        _known[key] = ask()
    return _known[key]


def _buy(setup: ChainSetup, num_rows: int) -> Bought:
    module = registry.load("method", setup.method)
    budget = setup.budget
    if budget is None:
        return Bought(None, setup.num_iterations, "none")
    releases = module.releases(registry.parameters(module, setup.params), num_rows)
    if releases is None:
        wanted = f"left out, since {setup.method} spends none"
        raise DpmcError(refusal("accountant", wanted, budget.accountant))
    asked = Budget(budget.epsilon, budget.delta, budget.accountant)
    count = accounting.max_iterations(releases, asked, setup.num_chains)
    if setup.max_iterations is not None:
        count = min(count, setup.max_iterations)
    noises = [events.noise_of(event) for event in releases.counts(1, 1)]
    multipliers = ", ".join(f"{noise[0]:.4g}" for noise in noises if noise is not None)
    # The noise of an accept test that is a Barker test is no multiple of a sensitivity.
    return Bought(budget.epsilon, count, multipliers or "of the Barker test")
