"""Methods as a user gives them: by name, of this package or of another one, or as an object.

Another package offers a method under the entry-point group ``dpmc.methods``. Such an entry, and an
object, have what the modules of :mod:`dpmc.mcmc.methods` have: ``Params``, ``releases`` and
``sampler``. They run here alone: the reproduction takes the methods of its own commit.
"""

from __future__ import annotations

import functools
import importlib.metadata
import inspect
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any

from dpmc import registry
from dpmc.privacy.events import Releases
from dpmc.types import DpmcError

GROUP = "dpmc.methods"
NEEDED = ("Params", "releases", "sampler")
OPTIONAL = ("clip_shares",)


def resolve(method: Any) -> ModuleType:
    """Module of a method.

    Parameters
    ----------
    method : str or object
        A name, of `dpmc.mcmc.methods` or of an entry point of another package; or what has the
        attributes of such a module, such as a module, a class or an instance.

    Returns
    -------
    module
        Its name is that of the method, which random streams are keyed by.
    """
    if not isinstance(method, str):
        return method if _is_ours(method) else as_module(method, name_of(method))
    built_in = registry.names("method")
    offered = _offered(method)
    packages = sorted(map(_package, offered))
    if method in built_in:
        if offered:
            raise DpmcError(
                f"`method` {method!r} is one of dpmc and must not be that of another package, got "
                f"one of {', '.join(packages)}"
            )
        module: ModuleType = registry.load("method", method)
        return module
    if not offered:
        known = sorted({*built_in, *names()})
        wanted = f"one of {registry.listed(known)}"
        raise DpmcError(registry.refusal("method", wanted, method, known))
    if len(offered) > 1:
        raise DpmcError(
            f"`method` {method!r} must be offered by one package, got {', '.join(packages)}"
        )
    try:
        found = offered[0].load()
    except Exception as error:  # of the other package, whatever it is
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise DpmcError(
            f"`method` {method!r} of {packages[0]} ({offered[0].value}) must load, got {reason}"
        ) from None
    return as_module(found, method, f" of {packages[0]} ({offered[0].value})")


def names() -> tuple[str, ...]:
    """Names of methods that other packages offer."""
    return tuple(sorted({entry.name for entry in importlib.metadata.entry_points(group=GROUP)}))


def name_of(method: object) -> str:
    """Name of a method that is given as an object.

    Its ``name`` if it has one; that of a module, without its package, or of a class.
    """
    own = getattr(method, "name", None) or getattr(method, "__name__", None)
    return own.rpartition(".")[2] if isinstance(own, str) else type(method).__name__


def is_own(module: ModuleType) -> bool:
    """Whether a method is none of dpmc, whatever its name is."""
    return not _is_ours(module)


def _is_ours(method: object) -> bool:
    name = name_of(method)
    return name in registry.names("method") and method is registry.load("method", name)


def as_module(method: object, name: str, source: str = "") -> ModuleType:
    """Module with what a method needs, taken from any object that has it."""
    told = f"`method` {name!r}{source}"
    missing = [part for part in NEEDED if not hasattr(method, part)]
    if missing:
        raise DpmcError(f"{told} must have Params, releases and sampler, got none of {missing[0]}")
    params: Any = method.Params  # type: ignore[attr-defined]
    if not (isinstance(params, type) and is_dataclass(params)):
        raise DpmcError(f"{told}: `Params` must be a dataclass, got {_kind(params)}")
    given = [part for part in (*NEEDED[1:], *OPTIONAL) if hasattr(method, part)]
    for part in given:
        if not callable(getattr(method, part)):
            got = _kind(getattr(method, part))
            raise DpmcError(f"{told}: `{part}` must be a function, got {got}")
    module = ModuleType(name, inspect.getdoc(method))
    for part in ("Params", *given):
        setattr(module, part, getattr(method, part))
    makes = "dpmc.privacy.events.Releases, or None without privacy,"
    of = (told, "releases", makes, lambda made: made is None or isinstance(made, Releases))
    vars(module)["releases"] = _returning(module.releases, *of)
    of = (told, "sampler", "a function,", callable)
    vars(module)["sampler"] = _returning(module.sampler, *of)
    return module


def _returning(
    function: Callable[..., Any], told: str, part: str, makes: str, holds: Callable[[Any], bool]
) -> Callable[..., Any]:
    """Function of a method that refuses what it must not return."""

    @functools.wraps(function)
    def checked(*arguments: Any) -> Any:
        made = function(*arguments)
        if not holds(made):
            raise DpmcError(f"{told}: `{part}` must return {makes} got {_kind(made)}")
        return made

    return checked


def _offered(name: str) -> list[importlib.metadata.EntryPoint]:
    """Entry points of a name, those that are found twice in one place once."""
    found: Iterable[Any] = importlib.metadata.entry_points(group=GROUP, name=name)
    return list({(_package(entry), entry.value): entry for entry in found}.values())


def _package(entry: Any) -> str:
    return str(entry.dist.name) if entry.dist is not None else "an unnamed package"


def _kind(value: object) -> str:
    return value.__name__ if isinstance(value, type) else type(value).__name__
