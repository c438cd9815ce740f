"""Populations, statistics and mechanisms by the names that configurations give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpmc import registry
from dpmc.registry import listed, refusal
from dpmc.statsel import mechanisms, populations, statistics
from dpmc.statsel.types import Mechanism, Population, Statistic
from dpmc.types import DpmcError

# Names in the table of statistics by the prefix of a text that ends with a power.
WITH_POWER = {"abs": "abs_power", "pow": "power"}
# Names in the table of statistics by a whole text.
WITHOUT_POWER = {"median": "median", "max": "maximum", "bit": "power"}


def population(name: str, **params: Any) -> Population:
    """Population called `name`, such as ``population("normal_variance", bound=10)``.

    Examples
    --------
    >>> population("normal_variance", bound=10.0).log_density(1.0, 2.0) < 0
    True
    """
    built: Population = _built("population", populations.TABLE, name, params)
    return built


def mechanism(name: str, **params: Any) -> Mechanism:
    """Mechanism called `name`, such as ``mechanism("laplace")``.

    Examples
    --------
    >>> mechanism("laplace").name
    'laplace'
    """
    built: Mechanism = _built("mechanism", mechanisms.TABLE, name, params)
    return built


def statistic(text: str, **params: Any) -> Statistic:
    """Statistic that a text names.

    Parameters
    ----------
    text : str
        ``"abs_0.5"`` for |x|^0.5, ``"pow_3"`` for x^3, ``"median"``, ``"max"`` or ``"bit"``
        for x.
    **params
        Of the statistic, such as ``average=True`` of the median.

    Raises
    ------
    DpmcError
        If the text names none, or the statistic refuses a parameter.

    Examples
    --------
    >>> statistic("abs_0.5").name
    '|x|^0.5'
    """
    head, _, tail = text.partition("_") if isinstance(text, str) else ("", "", "")
    if text in WITHOUT_POWER:
        name = WITHOUT_POWER[text]
    elif head in WITH_POWER and (power := _number(tail)) is not None:
        name = WITH_POWER[head]
        params = {"power": int(power) if head == "pow" and power == int(power) else power, **params}
    else:
        raise DpmcError(
            f"`statistic` must be one of abs_<power>, pow_<power>, {', '.join(WITHOUT_POWER)}, "
            f"got {text!r}"
        )
    built: Statistic = _built("statistic", statistics.TABLE, name, params)
    return built


def _built(kind: str, table: Mapping[str, Any], name: str, params: dict[str, Any]) -> Any:
    if name not in table:
        raise DpmcError(refusal(kind, f"one of {listed(table)}", name, table))
    return registry.called(table[name], name, params)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
