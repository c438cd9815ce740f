"""Names of parameters that mean one thing in all methods.

A clip bound and a noise multiplier say of what: ``ratio_clip_bound`` is per unit of distance of a
move, ``gradient_clip_bound`` a norm, and multipliers of noise likewise. Some methods have shorter
names in their ``Params``, which configurations of the reproduction use and random streams are
keyed by; the way in for a user knows both.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from dpmc import callers, registry
from dpmc.types import DpmcError

RATIO = {"ratio_clip_bound": "clip_bound", "ratio_noise_multiplier": "noise_multiplier"}
GRADIENT = {"gradient_clip_bound": "clip_bound"}
# Of each method: the name of all methods, and that of its `Params`.
FIELDS: Mapping[str, Mapping[str, str]] = {
    "dp_penalty": RATIO,
    "minibatch_penalty": RATIO,
    "rwmh": {"ratio_clip_bound": "clip_bound"},
    "dp_sgld": GRADIENT,
    "dp_sgnht": GRADIENT,
}


def fields_of(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters by the names of a method's ``Params``.

    Parameters
    ----------
    method : str
    params : mapping
        By either name.

    Raises
    ------
    DpmcError
        If one is given by both names.

    Warns
    -----
    DeprecationWarning
        For each of the shorter names.
    """
    known = FIELDS.get(method, {})
    shorter = {field: name for name, field in known.items()}
    found: dict[str, Any] = {}
    for key, value in params.items():
        field = known.get(key, key)
        if field in found:
            raise DpmcError(f"`{shorter[field]}` must be given once, got `{field}` as well")
        if key in shorter:
            warnings.warn(
                f"`{key}` of {method} is called `{shorter[key]}`, as it is in other methods",
                DeprecationWarning,
                stacklevel=callers.stacklevel(),
            )
        found[field] = value
    return found


def check_known(method: str, params: Iterable[str], fields: Iterable[str]) -> None:
    """Refuse a parameter that a method does not have, by the names that all methods share.

    Parameters
    ----------
    method : str
    params : iterable of str
        By either name.
    fields : iterable of str
        Names in the ``Params`` of the method.
    """
    shorter = {field: name for name, field in FIELDS.get(method, {}).items()}
    shown = [shorter.get(field, field) for field in fields]
    for key in params:
        if key not in shown and key not in shorter:
            wanted = f"a parameter of {method} ({registry.listed(shown)})"
            raise DpmcError(registry.refusal(key, wanted, None, shown))


def in_common(method: str, message: str) -> str:
    """Return a message with the names of all methods in place of those of ``Params``."""
    for name, field in FIELDS.get(method, {}).items():
        message = message.replace(f"`{field}`", f"`{name}`")
    return message
