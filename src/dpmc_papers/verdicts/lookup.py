"""Look-up of the kinds of rules by name: the general ones, and those of one document."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import ModuleType

from dpmc import registry
from dpmc_papers.verdicts import comparisons, printed, rules
from dpmc_papers.verdicts.kinds import Kind


@functools.cache
def kinds(paper: str) -> Mapping[str, Kind]:
    """Kinds of rules that claims of a document may have, by name.

    Rules that it alone needs are in the module of its name in ``dpmc_papers.outputs._rules``.
    """
    by_name = {**_kinds(rules), **_kinds(comparisons), **_kinds(printed)}
    if paper in registry.names("rules"):
        by_name |= _kinds(registry.load("rules", paper))
    return by_name


def _kinds(module: ModuleType) -> dict[str, Kind]:
    return {name: value for name, value in vars(module).items() if isinstance(value, Kind)}
