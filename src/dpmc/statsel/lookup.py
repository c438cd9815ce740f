"""Populations, statistics and mechanisms by the names that configurations give them."""

from __future__ import annotations

from typing import Any

from dpmc import registry
from dpmc.statsel.types import Mechanism, Population, Statistic
from dpmc.types import DpmcError

# Modules of statistics: by the prefix of a text that ends with a power, and by a whole text.
WITH_POWER = {"abs": "abs_power", "pow": "power"}
WITHOUT_POWER = {"median": "median", "max": "maximum", "bit": "power"}


def population(name: str, **params: Any) -> Population:
    """Return the population called `name`, such as ``population("normal_variance", bound=10)``.

    Raises
    ------
    DpmcError
        If there is no such population, or it refuses a parameter.

    Examples
    --------
    >>> population("normal_variance", bound=10.0).log_density(1.0, 2.0) < 0
    True
    """
    built: Population = _built("population", name, params)
    return built


def mechanism(name: str, **params: Any) -> Mechanism:
    """Return the mechanism called `name`, such as ``mechanism("laplace")``.

    Raises
    ------
    DpmcError
        If there is no such mechanism, or it refuses a parameter.

    Examples
    --------
    >>> mechanism("laplace").name
    'laplace'
    """
    built: Mechanism = _built("mechanism", name, params)
    return built


def statistic(text: str, **params: Any) -> Statistic:
    """Return the statistic that a text names.

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
    built: Statistic = _built("statistic", name, params)
    return built


def _built(kind: str, name: str, params: dict[str, Any]) -> Any:
    module: Any = registry.load(kind, name)
    return module.build(registry.parameters(module, params))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
