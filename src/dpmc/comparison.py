"""Several methods on the same rows, each under a budget of its own."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from dpmc import checks, plots
from dpmc.automatic.run import NAME as AUTOMATIC_NAME
from dpmc.fits import Fit
from dpmc.fits.remarks import FEW_DRAWS, RHAT
from dpmc.fitting import AUTOMATIC, check_names, chosen, fit, is_automatic
from dpmc.mcmc.own_methods import name_of
from dpmc.privacy.joint import together
from dpmc.privacy.ledger import Noise
from dpmc.privacy.spending import tell
from dpmc.types import (
    NO_GUARANTEE,
    Array,
    Dataset,
    DpmcError,
    Guarantee,
    InvalidRows,
    Model,
    check_delta,
    check_epsilon,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Arguments that all fits of a comparison have in common.
SHARED = "epsilon", "delta", "names"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Fits of one model to the same rows.

    Parameters
    ----------
    fits : mapping of str to Fit
        By label.
    guarantee : Guarantee
        Of all fits together: what holds if all of them are published. None if one has none, or
        a method ran twice with one seed, and so with the same noise.

    Examples
    --------
    >>> import numpy as np
    >>> guarantee = Guarantee(1.0, 1e-6)
    >>> fits = {
    ...     label: Fit(np.full((40, 1, 1), value), {}, {}, "complete", (), guarantee)
    ...     for label, value in {"first": 0.0, "second": 1.0}.items()
    ... }
    >>> both = Comparison(fits, joint(fits.values(), delta=1e-5))
    >>> round(both.guarantee.epsilon, 3)
    2.0
    """

    fits: Mapping[str, Fit]
    guarantee: Guarantee

    def table(self) -> Any:
        """A ``pandas.DataFrame`` with a row for each method and component.

        Columns are those of `Fit.summary`, and the epsilon that holds.
        """
        import pandas as pd

        parts = []
        for label, one in self.fits.items():
            part = one.summary().to_dataframe()
            part.insert(0, "epsilon", one.guarantee.epsilon)
            part.index = pd.MultiIndex.from_product([[label], part.index])
            parts.append(part)
        table = pd.concat(parts)
        table.index.names = ["method", "component"]
        return table

    def plot(self) -> Figure:
        """Means and 90 % intervals, a panel for each component, a line for each method.

        The epsilon that holds stands beside the name, a star where the summary has remarks, and
        R-hat where chains disagree. Chains that disagree, are short or stopped early are hollow: a
        narrow interval of theirs says nothing.

        Raises
        ------
        DpmcError
            If a fit has no draws, or seaborn is not installed.
        """
        tables = [one.summary().to_dataframe() for one in self.fits.values()]
        labels, failed = [], []
        for (label, one), table in zip(self.fits.items(), tables, strict=True):
            apart = table["rhat"].max() > RHAT
            few = table["ess"].min() < FEW_DRAWS
            failed.append(bool(apart or few or one.status != "complete"))
            told = f"ε = {one.guarantee.epsilon:.3g}"
            told += f", R-hat {table['rhat'].max():.3g}" if apart else ""
            labels.append(f"{label}{'*' if one.remarks else ''} ({told})")
        draws = [one.kept().reshape(-1, one.kept().shape[2]) for one in self.fits.values()]
        return plots.intervals(labels, list(tables[0].index), draws, failed)

    def __str__(self) -> str:
        lines = []
        for label, one in self.fits.items():
            lines += [f"== {label}", str(one.summary()), ""]
        return "\n".join([*lines, f"All fits together: {self.guarantee}."])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f"<h4>{escape(label)}</h4>{one._repr_html_()}" for label, one in self.fits.items()]
        return "".join(parts) + f"<p>All fits together: {escape(str(self.guarantee))}.</p>"


def compare(
    model: Model,
    data: Any,
    methods: Sequence[Any] | Mapping[str, Mapping[str, Any]],
    *,
    epsilon: float,
    delta: float,
    num_chains: int = 4,
    num_draws: int | None = None,
    start: Array | None = None,
    seed: int | None = None,
    noise: Noise | None = None,
    progress: bool = True,
    invalid_rows: InvalidRows = "refuse",
    names: Sequence[str] = (),
    **options: Any,
) -> Comparison:
    """Fits of several methods to the same rows, each with the whole budget.

    Parameters
    ----------
    model : Model
        The posterior.
    data : Dataset, ndarray of shape (n, p), or a data frame of numbers
        The private rows.
    methods : sequence of str or object, or mapping of str to mapping
        Methods, as `dpmc.fit` takes them; or labels, and for each what `dpmc.fit` takes:
        ``method``, by default the label, and parameters. With ``num_iterations``, which only a
        method without privacy takes, there is no budget.
    epsilon, delta : float
        The budget of each. Together they cost more: see ``Comparison.guarantee``.
    num_chains, num_draws, start, seed, noise, progress, invalid_rows, names
        For all fits, as of `dpmc.fit`; `num_draws` for the automatic method alone.
    **options
        How chains of named methods run, as of `dpmc.fit`.

    Returns
    -------
    Comparison
        With a table, a picture, and the guarantee of all fits together.

    Raises
    ------
    DpmcError
        If an argument is refused; before the first method runs where no row is needed to tell.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmc.models import gaussian_mean
    >>> rows = np.random.default_rng(0).normal(size=(5000, 1))
    >>> model = gaussian_mean.build(gaussian_mean.Params(1, [[1]], prior_variance=100))
    >>> walk = {"num_iterations": 200, "proposal_sd": 0.03}
    >>> both = compare(model, rows, {"auto": {}, "rwmh": walk}, epsilon=1, delta=1e-6,
    ...                progress=False, seed=1)
    >>> list(both.fits), both.guarantee.private
    (['auto', 'rwmh'], False)
    """
    checks.instance("model", model, Model, "a dpmc.Model")
    check_epsilon(epsilon)
    check_delta(delta)
    check_names(names, model)
    shared = {
        "num_chains": num_chains,
        "start": start,
        "seed": seed,
        "noise": noise,
        "progress": progress,
        "invalid_rows": invalid_rows,
    }
    runs = {}
    for label, given in _chosen(methods).items():
        arguments = dict(given)
        method = arguments.pop("method", label)
        # The automatic method has draws to choose, and no iterations.
        own = {"num_draws": num_draws} if is_automatic(method) else options
        runs[label] = (method, {**shared, **own, **arguments})
    known = inspect.signature(fit).parameters
    for method, arguments in runs.values():
        chosen(method, {key: value for key, value in arguments.items() if key not in known})
    automatic = [is_automatic(method) for method, _ in runs.values()]
    if all(automatic):
        chosen(AUTOMATIC, options, compare)
    elif num_draws is not None and not any(automatic):
        raise DpmcError("`num_draws` must be left out where no method is the automatic one")
    dataset = data if isinstance(data, Dataset) else Dataset.of("data", data, invalid_rows)
    fits = {}
    for label, (method, arguments) in runs.items():
        without = arguments.get("num_iterations") is not None
        try:
            fits[label] = fit(
                model,
                dataset,
                method=method,
                epsilon=None if without else epsilon,
                delta=None if without else delta,
                names=names,
                **arguments,
            )
        except BaseException as error:
            _tell_all(error, fits)
            raise
    if _of_one_seed(runs):
        return Comparison(fits, NO_GUARANTEE)
    return Comparison(fits, joint(fits.values(), delta))


def _tell_all(error: BaseException, finished: Mapping[str, Fit]) -> None:
    """Let an error carry what the methods before it have spent, too: epsilons and deltas add up."""
    private = [one for one in finished.values() if one.guarantee.private]
    own: Guarantee | None = getattr(error, "spent", None)
    parts = [one.guarantee for one in private] + ([own] if own is not None else [])
    if not private or any(one.neighbours != parts[0].neighbours for one in parts):
        return
    total = [math.fsum(getattr(one, key) for one in parts) for key in ("epsilon", "delta")]
    ledgers = [one.ledger for one in private] + [getattr(error, "ledger", ())]
    tell(
        error,
        replace(parts[0], epsilon=total[0], delta=min(total[1], 1.0), accountant=""),
        sum(ledgers, ()),
    )


def _chosen(methods: Any) -> Mapping[str, Mapping[str, Any]]:
    """Method and arguments of each label."""
    if isinstance(methods, Mapping):
        chosen = dict(methods)
    elif isinstance(methods, str) or not isinstance(methods, Iterable):
        raise DpmcError(
            f"`methods` must be a list of methods, or what each label runs, got {methods!r}"
        )
    else:
        given = [(one if isinstance(one, str) else name_of(one), one) for one in methods]
        chosen = {label: {"method": one} for label, one in given}
        if len(chosen) < len(given):
            raise DpmcError(
                "`methods` must have different names, or be a mapping whose labels differ, got "
                f"{', '.join(label for label, _ in given)}"
            )
    if not chosen:
        raise DpmcError("`methods` must name at least one method, got none")
    for label, params in chosen.items():
        if not (isinstance(label, str) and isinstance(params, Mapping)):
            raise DpmcError(
                "`methods` must have a mapping of arguments for each label, which is a text, got "
                f"{label!r}: {params!r}"
            )
        for name in SHARED:
            if name in params:
                raise DpmcError(f"`{name}` must be given once, for all methods, got one of {label}")
    return chosen


def joint(fits: Iterable[Fit], delta: float) -> Guarantee:
    """Guarantee of all fits together, whose noise is independent.

    At `delta` where it has one there; else at the sum of all deltas, as epsilons and deltas of any
    mechanisms add up. None if one of the fits has none.
    """
    parts = list(fits)
    without = [one for one in parts if not one.guarantee.private]
    if without:
        return without[0].guarantee
    first = parts[0].guarantee
    tight = together(parts, delta, first.neighbours)
    if tight.private:
        return tight
    added = math.fsum(one.guarantee.delta for one in parts) * (1 + 2.0**-50)
    if added >= 1:
        return tight
    return together(parts, added, first.neighbours)


def _of_one_seed(runs: Mapping[str, tuple[Any, Mapping[str, Any]]]) -> bool:
    """True if two fits have the same noise: streams are keyed by seed and method."""
    keys = [
        (AUTOMATIC_NAME if is_automatic(method) else name_of(method), arguments["seed"])
        for method, arguments in runs.values()
        if arguments["seed"] is not None
    ]
    return len(set(keys)) < len(keys)
