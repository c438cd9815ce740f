"""The way in: a model, rows and an epsilon in, a posterior out."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any, overload

import numpy as np

from dpmc import callers, checks, progress_bar, registry, tuning, types
from dpmc.automatic import run as automatic
from dpmc.fits import Fit
from dpmc.fits.remarks import remarks, weak
from dpmc.mcmc import fit as chains
from dpmc.mcmc import parameter_names
from dpmc.mcmc.clip_shares import CHOICES, Diagnostics
from dpmc.mcmc.own_methods import is_own, name_of, resolve
from dpmc.modelling import ParametricModel
from dpmc.privacy import accounting, spending
from dpmc.privacy.ledger import Noise, noise_of
from dpmc.shards.federation import Federation, num_columns
from dpmc.shards.rows import ShardedRows, open_rows
from dpmc.types import (
    Array,
    Dataset,
    DpmcError,
    InvalidRows,
    Model,
    check_delta,
    check_epsilon,
)

AUTOMATIC = "auto"
# Options of methods by name alone, and of the automatic method alone.
OF_METHODS = "accountant", "num_iterations", "max_iterations", "num_threads", "diagnostics"
OF_AUTOMATIC = ("num_draws",)
NUM_DRAWS = 2000


class PosteriorWarning(UserWarning):
    """The draws of a fit are not what they seem; says why, and what would help.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", PosteriorWarning)
    """


@overload
def fit(
    model: Model,
    data: Dataset | Array | ShardedRows | Federation | str | os.PathLike[str],
    /,
    *,
    epsilon: float,
    delta: float,
    method: Any = ...,
    names: Sequence[str] = ...,
    num_draws: int = ...,
    **options: Any,
) -> Fit: ...
@overload
def fit(
    method: Any,
    model: Model,
    data: Dataset | Array | ShardedRows | Federation | str | os.PathLike[str],
    /,
    *,
    epsilon: float | None = ...,
    delta: float | None = ...,
    names: Sequence[str] = ...,
    **options: Any,
) -> Fit: ...
def fit(
    *what: Any,
    method: Any = None,
    epsilon: float | None = None,
    delta: float | None = None,
    accountant: str | None = None,
    num_iterations: int | None = None,
    max_iterations: int | None = None,
    num_chains: int = 4,
    num_threads: int | None = None,
    num_draws: int | None = None,
    start: Array | None = None,
    seed: int | None = None,
    noise: Noise | None = None,
    progress: bool = True,
    diagnostics: Diagnostics | None = None,
    invalid_rows: InvalidRows = "refuse",
    names: Sequence[str] = (),
    **params: Any,
) -> Fit:
    """Sample the posterior of a model given private rows, under a privacy budget.

    ``fit(model, rows, epsilon=1, delta=1e-6)`` chooses everything else along the way, from what it
    has released: see :mod:`dpmc.automatic`. ``fit(method, model, rows, ...)`` runs one method with
    parameters of your own; all chains are then released together under the one budget. Those that
    a private method of dpmc needs and is not given are chosen from a search that has a quarter of
    the budget (:mod:`dpmc.tuning`).

    Parameters
    ----------
    method : str or object, optional
        ``"auto"`` by default; otherwise a name such as ``"dp_hmc"``
        (``dpmc.registry.names("method")``), of dpmc or of another package that offers it as an
        entry point; or an object with ``Params``, ``releases`` and ``sampler``. First or by
        keyword.
    model : Model
        The posterior, written for one row.
    data : Dataset, ndarray of shape (n, p), a data frame of numbers, or a folder
        The private rows. The automatic method also takes the path of a folder of Parquet or .npy
        files, or what `dpmc.open_rows` makes of some, which are read a part at a time: the draws
        are the same, to the last bit, as for these rows in memory. Rows that stay at several
        nodes are those of `dpmc.federation`.
    epsilon, delta : float
        The budget under substitution of one row; left out only for a method without privacy.
    accountant : str, optional
        What turns the budget of a method into iterations; by default the tightest that is valid.
    num_iterations : int, optional
        Iterations per chain of a method without privacy; otherwise the budget decides.
    max_iterations : int, optional
        Iterations per chain of a private method to stop at, where its budget buys more.
        What is not run is not spent: the guarantee is better than the budget, unless a search
        chose parameters of the method.
    num_chains : int
        Number of chains.
    num_threads : int, optional
        Threads that chains of a method run in, with the same results whatever their number; by
        default one for each processor where the rows are many, and a single one otherwise.
    num_draws : int, optional
        Draws per chain of the automatic method, 2,000 by default. They cost no privacy.
    start : ndarray of shape (d,) or (chains, d), optional
        Start points, chosen without looking at the data; by default the mode of the prior for the
        automatic method, which takes one, and the origin for others. On the unbounded scale of a
        model of `dpmc.model`, whose draws are on the scale of its parameters.
    seed : int, optional
        Makes a run repeatable, and thereby not private: whoever knows the seed can
        subtract the noise. By default cryptographic generators are keyed by the operating
        system.
    noise : {"continuous", "discrete"}, optional
        ``"discrete"`` rounds what is released to a grid far below the noise, so that the
        last digits of floating-point numbers reveal nothing (:mod:`dpmc.privacy.discrete`): the
        default. With a `seed` it is ``"continuous"``, as in published experiments, and the
        guarantee names its low bits as outside of it.
    progress : bool
        Whether to show a progress bar.
    diagnostics : {"private", "none", "exact"}, optional
        Of a method of your choice, shares of clipped rows: by default released with noise from one
        hundredth of the budget, in ``Fit.diagnostics``; left out; or exact in ``Fit.info`` and
        ``Fit.totals``, which the guarantee then names as outside of it. A method without privacy
        has them exact. The automatic method has its counts of clipped rows among its releases.
    invalid_rows : {"refuse", "zero"}
        Of an array: what becomes of rows with an entry that is not finite. A `Dataset` says
        so itself.
    names : sequence of str
        Names of the components of theta, for tables and ArviZ; a model of `dpmc.model` has some.
    **params
        Parameters of the method, as in its ``Params``; bounds and noise of ratios and of gradients
        by the names that all methods share (:mod:`dpmc.mcmc.parameter_names`).

    Returns
    -------
    Fit
        Draws, the ledger, what the budget bought, and remarks: in words what is wrong with the
        draws and what would help.

    Raises
    ------
    DpmcError
        On any input that is refused, and on a model that fails on public probes, before any
        row is used. What ends a fit later, Ctrl-C too, has what was spent in its attributes
        `spent` and `ledger`, and says it.

    Warns
    -----
    PosteriorWarning
        Once for each remark.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmc.models import gaussian_mean
    >>> rows = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> model = gaussian_mean.build(gaussian_mean.Params(2, [[1, 0], [0, 1]], prior_variance=100))
    >>> result = fit(model, rows, epsilon=1, delta=1e-6)
    >>> result.draws.shape
    (2000, 4, 2)
    >>> bool(abs(result.kept().mean(axis=(0, 1)) - rows.mean(axis=0)).max() < 0.05)
    True
    """
    method, model, data = _sorted_out(what, method)
    named = check_names(names, model)
    seed = checks.seed(seed)
    checks.at_least("num_chains", num_chains, 1)
    noise = noise_of(noise, published=seed is not None)
    checks.flag("progress", progress)
    points = None if start is None else _numbers(start)
    if is_automatic(method):
        given = accountant, num_iterations, max_iterations, num_threads, diagnostics
        refuse_beside_auto(params, dict(zip(OF_METHODS, given, strict=True)))
        num_draws = NUM_DRAWS if num_draws is None else num_draws
        checks.at_least("num_draws", num_draws, 1)
        budget = _budget(epsilon, delta)
        rows = _source(data, invalid_rows)
        _check_columns(model, rows)
        num_rows = rows.num_rows
        with progress_bar.shown(progress, "% of the budget") as report:
            fitted = automatic.fit(
                model,
                rows,
                *budget,
                num_chains=int(num_chains),
                num_draws=int(num_draws),
                start=None if points is None else chains.start_points(points, model.dim, 1)[0],
                seed=seed,
                noise=noise,
                names=named,
                progress=report,
            )
    else:
        if num_draws is not None:
            raise DpmcError(
                "`num_draws` must be left out beside a `method`, whose draws are its iterations"
            )
        diagnostics = "private" if diagnostics is None else diagnostics
        checks.one_of("diagnostics", diagnostics, CHOICES)
        what_runs = sorted_params(method, params)
        dataset = _rows(data, invalid_rows)
        _check_columns(model, dataset)
        num_rows = dataset.num_rows
        result = _one_method(
            what_runs,
            model,
            dataset,
            epsilon=epsilon,
            delta=delta,
            accountant=accountant,
            num_iterations=num_iterations,
            max_iterations=max_iterations,
            num_chains=int(num_chains),
            num_threads=num_threads,
            start=points,
            seed=seed,
            noise=noise,
            progress=progress,
            diagnostics=diagnostics,
        )
        fitted = Fit.of(result, named, tuple(remarks(result)))
    with spending.told(fitted.guarantee, lambda: fitted.ledger):
        if isinstance(model, ParametricModel):
            fitted = _bounded(fitted, model)
        fitted = replace(fitted, remarks=(*fitted.remarks, *weak(fitted.guarantee, num_rows)))
        for remark in fitted.remarks:
            warnings.warn(remark, PosteriorWarning, stacklevel=callers.stacklevel())
    return fitted


# Arguments of `fit` by keyword.
OPTIONS = tuple(
    name
    for name, one in inspect.signature(fit).parameters.items()
    if one.kind is inspect.Parameter.KEYWORD_ONLY
)


def _one_method(
    what: tuple[ModuleType, dict[str, Any], bool], model: Model, dataset: Dataset, **options: Any
) -> types.Fit:
    """Return the chains of one method, with parameters that are missing chosen where they can be.

    `what` is as `sorted_params` returns it.

    Raises
    ------
    DpmcError
        Of parameters by the names that all methods share.
    """
    epsilon, accountant = options["epsilon"], options["accountant"]
    if epsilon is not None:
        options["epsilon"] = epsilon = _epsilon(epsilon)
    if accountant is not None:
        check_accountant(accountant)
    module, given, own = what
    name = name_of(module)
    try:
        if epsilon is None or own or not tuning.lacks(module, given):
            return chains.fit(module, model, dataset, **options, **given)
        start, delta = options["start"], check_delta(options["delta"])
        begin = None if start is None else chains.start_points(start, model.dim, 1)[0]
        shared = {key: options[key] for key in tuning.SHARED}
        chosen, search = tuning.tuned(
            name, given, model, dataset, epsilon, delta, start=begin, **shared
        )
        with spending.told(search.spent, lambda: search.records):
            return chains.fit(module, model, dataset, search=search, **options, **chosen)
    except DpmcError as error:
        if not own:
            error.args = (parameter_names.in_common(name, str(error)),)
        raise


def sorted_params(method: Any, params: Mapping[str, Any]) -> tuple[ModuleType, Any, bool]:
    """Return a method, parameters by the names of its ``Params``, and whether it is a user's own.

    A method of a user that has the name of one of dpmc is itself: nothing is renamed for it.

    Raises
    ------
    DpmcError
        If there is no such method, or a method of dpmc does not have a parameter.
    """
    module = resolve(method)
    name = name_of(module)
    own = is_own(module)
    given = {key: _plain(value) for key, value in params.items()}
    if own:
        return module, given, own
    parameter_names.check_known(name, given, [field.name for field in fields(module.Params)])
    return module, parameter_names.fields_of(name, given), own


def _bounded(fitted: Fit, model: ParametricModel) -> Fit:
    """Return a fit whose draws are parameters on their own scale."""
    if fitted.draws is None:
        return fitted
    return replace(fitted, draws=model.bounded(fitted.draws), names=fitted.names or model.names)


def _sorted_out(what: tuple[Any, ...], method: Any) -> tuple[Any, Model, Any]:
    """Return method, model and data in this order, however they were given."""
    given = list(what)
    if len(given) == 3 or (given and isinstance(given[0], str)):
        first = given.pop(0)
        if method is not None:
            raise DpmcError(f"`method` must be given once, got {first!r} and {method!r}")
        method = first
    if len(given) != 2 or (len(what) == 3 and method is None):
        raise DpmcError(
            "`fit` must be called as fit(model, rows, ...) or fit(method, model, rows, ...), got "
            f"{len(what)} positional arguments"
        )
    model, data = given
    if not isinstance(model, Model):
        kind = type(model).__name__
        raise DpmcError(f"`model` must be a dpmc.Model, before the rows, got {kind}")
    return AUTOMATIC if method is None else method, model, data


def check_names(names: Sequence[str], model: Model) -> tuple[str, ...]:
    """Return names of the components, refusing what are not so many different texts."""
    named = (None,) if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    count = len(model.names) if isinstance(model, ParametricModel) else model.dim
    texts = tuple(name for name in named if isinstance(name, str))
    if named and (len(texts) != len(named) or len(named) != count or len({*texts}) != count):
        raise DpmcError(f"`names` must be {count} different names, got {names!r}")
    return texts


def is_automatic(method: Any) -> bool:
    """Return whether a method is the automatic one, by its name."""
    return isinstance(method, str) and method == AUTOMATIC


def refuse_beside_auto(params: Iterable[str], options: Mapping[str, Any]) -> None:
    """Refuse parameters of methods beside the automatic one, and options that it does not have."""
    given = [*params, *(name for name in OF_METHODS if options.get(name) is not None)]
    if not given:
        return
    name = given[0]
    if name in OF_METHODS or name in _parameters_of_methods():
        raise DpmcError(
            f"`{name}` must be left out for the automatic method, which chooses it, or given "
            "beside a `method`"
        )
    raise DpmcError(registry.refusal(name, "an argument of `fit`", None, set(OPTIONS)))


@functools.cache
def _parameters_of_methods() -> frozenset[str]:
    """Return what methods of dpmc are given, by the names that all share and by their own."""
    modules = [registry.load("method", name) for name in registry.names("method")]
    own = {field.name for module in modules for field in fields(module.Params)}
    return frozenset(own.union(*parameter_names.FIELDS.values()))


def _check_columns(model: Model, rows: Dataset | ShardedRows | Federation) -> None:
    """Refuse rows of another number of columns than the model reads, where it says so."""
    found = rows.num_columns if isinstance(rows, Federation) else num_columns(rows)
    wanted = columns_of(model)
    if wanted not in (None, found):
        raise DpmcError(f"`data` must have {wanted} columns for model {model.name!r}, got {found}")


def columns_of(model: Model) -> int | None:
    """Return the columns of the rows that a model reads, None where it does not say."""
    if isinstance(model, ParametricModel) and model.num_columns is not None:
        return model.num_columns
    return None if model.example_rows is None else int(model.example_rows.shape[1])


def _budget(epsilon: float | None, delta: float | None) -> tuple[float, float]:
    return _epsilon(epsilon), check_delta(delta, "the automatic method")


def _epsilon(epsilon: float | None) -> float:
    """Return an epsilon, refusing what is none."""
    if epsilon is None:
        raise DpmcError("`epsilon` must be positive and finite, got None")
    check_epsilon(epsilon)
    return float(epsilon)


def check_accountant(name: object) -> None:
    """Refuse an accountant whose epsilon is no upper bound: the budget would be exceeded."""
    valid = [one for one in registry.names("accountant") if accounting.load(one).UPPER_BOUND]
    if name not in valid:
        raise DpmcError(registry.refusal("accountant", f"one of {', '.join(valid)}", name, valid))


def _source(data: Any, invalid_rows: InvalidRows) -> Dataset | ShardedRows | Federation:
    """Return the rows of the automatic method: in memory, in files or at several nodes."""
    if isinstance(data, ShardedRows | Federation):
        return data
    if isinstance(data, str | os.PathLike):
        return open_rows(Path(data), invalid_rows=invalid_rows)
    return _rows(data, invalid_rows)


def _rows(data: Any, invalid_rows: InvalidRows) -> Dataset:
    if isinstance(data, Dataset):
        return data
    if isinstance(data, ShardedRows | Federation | str | os.PathLike):
        kind = "a federation" if isinstance(data, Federation) else "a path"
        raise DpmcError(
            f"`data` must be rows in memory for a method of your choice, got {kind}, which the "
            "automatic method reads"
        )
    return Dataset.of("data", data, invalid_rows)


def _numbers(start: Any) -> Array:
    points = checks.real_numbers(start)
    if points.shape != np.shape(start):
        shown = " ".join(repr(start).split())
        raise DpmcError(f"`start` must be numbers, got {shown[:60]}{'...' * (len(shown) > 60)}")
    return points


def _plain(value: Any) -> Any:
    """Return a number of NumPy as one of Python."""
    return value.item() if isinstance(value, np.generic | np.ndarray) and value.ndim == 0 else value
