"""Plans of budgets, and the facts that come with the draws of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

from dpmc.types.guarantee import Guarantee


@dataclass(frozen=True)
class Plan:
    """Plan of a budget and its outcome, as far as released numbers tell.

    What a method does not have is left at its default.

    Parameters
    ----------
    method : str
        Name of the method.
    family : str
        Name of the way in, such as ``"regression"``; empty for `dpmc.fit`.
    epsilon, delta : float, optional
        The budget.
    accountant : str
        What the budget is spent by.
    mu : float, optional
        Gaussian privacy parameter of the budget.
    num_chains, num_iterations : int, optional
        Chains, and iterations of each.
    releases : mapping of str to int
        All that the chains were to release, each kind and how often. What happened to be released
        is ``Fit.ledger``.
    search : tuple of (float, float), optional
        Epsilon and delta of a search for parameters, where it has a budget of its own.
    audit : Guarantee, optional
        What the ledger holds, composed by a second accountant.
    stages : tuple of mapping
        Releases of the automatic method, in their order, each with its share of mu^2.
    clip_bound : float, optional
        Clip bound of the last gradient.
    clipped_share : float, optional
        Share of rows that it clips, from released counts.
    statement : str
        What privacy cost, in a sentence.
    widening : tuple of float
        Width of each interval over that without privacy noise.
    effective_draws : float, optional
        Independent draws that the error of the mean by privacy noise is worth.
    acceptance : float, optional
        Share of independent proposals accepted.
    prior : mapping
        ``mean`` and ``precision`` of the coefficients of a regression.
    likelihood : mapping
        How responses arise, for `Fit.predict`: a ``name``, and what the name needs; the names of
        ``columns`` where there were some.
    details : mapping
        What one family alone has, under the names of its arguments and results: ``x_bound``,
        ``y_bound``, ``num_nodes``, ``s_sd`` and ``z_sd`` of `dpmc.linear_regression`;
        ``num_passes`` and ``repaired`` of `dpmc.mixture` and `dpmc.network`; ``statistic``,
        ``mechanism``, ``released``, ``scale`` and ``ranking`` of `dpmc.select_statistic`;
        ``units``, ``steps`` and ``checks`` of `dpmc.regression`; ``dispersion`` of this and of the
        automatic method.

    Examples
    --------
    >>> plan = Plan("rwmh", num_chains=4, num_iterations=100)
    >>> Plan.of(plan.values()) == plan
    True
    """

    method: str = ""
    family: str = ""
    epsilon: float | None = None
    delta: float | None = None
    accountant: str = ""
    mu: float | None = None
    num_chains: int | None = None
    num_iterations: int | None = None
    releases: Mapping[str, int] = field(default_factory=dict)
    search: tuple[float, float] | None = None
    audit: Guarantee | None = None
    stages: tuple[Mapping[str, Any], ...] = ()
    clip_bound: float | None = None
    clipped_share: float | None = None
    statement: str = ""
    widening: tuple[float, ...] = ()
    effective_draws: float | None = None
    acceptance: float | None = None
    prior: Mapping[str, Any] = field(default_factory=dict)
    likelihood: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """Values that are no defaults, as JSON can hold them."""
        found = {}
        for one in fields(self):
            value = getattr(self, one.name)
            usual = {} if one.default is MISSING else one.default
            if value != usual:
                found[one.name] = asdict(value) if isinstance(value, Guarantee) else value
        return found

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Plan:
        """Plan whose `values` came back from JSON."""
        read = dict(values)
        for name in ("search", "stages", "widening"):
            if name in read:
                read[name] = tuple(read[name])
        if "audit" in read:
            audit = dict(read["audit"])
            read["audit"] = Guarantee(**{**audit, "outside": tuple(audit["outside"])})
        return cls(**read)
