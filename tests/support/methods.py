"""The methods of the registry and their examples, for tests of what all of them must do."""

from __future__ import annotations

from dataclasses import MISSING, asdict, fields

from dpmc import registry

ALL = {name: registry.load("method", name) for name in registry.names("method")}
TUNED = tuple(name for name, module in ALL.items() if hasattr(module, "tuned"))
PRIVATE = tuple(name for name, one in ALL.items() if one.releases(one.EXAMPLE, 60) is not None)


def example(name: str) -> dict[str, object]:
    """Return the parameters of a method's example."""
    return asdict(ALL[name].EXAMPLE)


def other(name: str) -> dict[str, object]:
    """Return parameters of which each that is needed and no count is another one."""
    needed = [one.name for one in fields(ALL[name].Params) if one.default is MISSING]
    given = example(name)
    return given | {key: 1.5 * given[key] for key in needed if isinstance(given[key], float)}
