"""The way in: a model, rows and an epsilon in, a posterior out."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dpmc import callers, checks, progress_bar, registry, tuning
from dpmc.automatic import run as automatic
from dpmc.fits import Fit
from dpmc.fits.remarks import remarks, weak
from dpmc.mcmc import fit as chains
from dpmc.mcmc import own_methods
from dpmc.mcmc.clip_shares import CHOICES
from dpmc.mcmc.own_methods import name_of, resolve
from dpmc.modelling import ParametricModel
from dpmc.privacy import accounting, spending
from dpmc.privacy.ledger import Noise, noise_of
from dpmc.rows.persons import Persons
from dpmc.shards.federation import Federation, num_columns
from dpmc.shards.rows import ShardedRows, open_rows
from dpmc.shards.units import by_person
from dpmc.types import (
    NEIGHBOURS,
    Array,
    Dataset,
    DpmcError,
    InvalidRows,
    Model,
    Neighbours,
    check_delta,
    check_epsilon,
)

AUTOMATIC = "auto"
NUM_DRAWS = 2000
# Why what some ways in have is refused by others.
PROVEN = {"neighbours": "what is done here is proven for substitution of one row alone"}
PERSONS = "`unit` must be None with `neighbours` 'add_remove': the number of persons is public"
# What NumPyro, PyMC and scikit-learn call an argument, and what it is called here.
ELSEWHERE = {
    "chains": "num_chains",
    "cores": "num_threads",
    "draws": "num_draws",
    "family": "likelihood",
    "fit_intercept": "intercept",
    "n_chains": "num_chains",
    "n_jobs": "num_threads",
    "n_samples": "num_draws",
    "num_samples": "num_draws",
    "num_warmup": "warm-up",
    "progress_bar": "progress",
    "progressbar": "progress",
    "random_seed": "seed",
    "random_state": "seed",
    "rng_key": "seed",
    "tune": "warm-up",
    "unit": "persons",
    "verbose": "progress",
}
# What is said of those that a way in has nothing like.
OTHER = {
    "likelihood": "the model says what it is, and dpmc.regression has `likelihood`",
    "intercept": "a model has an intercept or none, and dpmc.regression has `intercept`",
    "num_threads": "chains of a `method` run in `num_threads` threads, all else in one",
    "num_draws": "a budget decides how many draws there are",
    "persons": "dpmc.fit and dpmc.regression protect persons, by the automatic method alone",
    "warm-up": "draws of a warm-up are those that `Fit.kept` leaves out",
}


class PosteriorWarning(UserWarning):
    """The draws of a fit are not what they seem; says why, and what would help.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", PosteriorWarning)
    """


def fit(
    model: Model,
    data: Dataset | Array | ShardedRows | Federation | str | os.PathLike[str],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    method: Any = AUTOMATIC,
    num_chains: int = 4,
    num_draws: int | None = None,
    start: Array | None = None,
    seed: int | None = None,
    noise: Noise | None = None,
    progress: bool = True,
    invalid_rows: InvalidRows = "refuse",
    names: Sequence[str] = (),
    unit: Any = None,
    neighbours: Neighbours = "replace",
    **params: Any,
) -> Fit:
    """Posterior of a model given private rows, under a privacy budget.

    ``fit(model, rows, epsilon=1, delta=1e-6)`` chooses everything else along the way, from what it
    has released: see :mod:`dpmc.automatic`. With a `method` all chains are released together under
    the one budget. Parameters that a private method of dpmc needs and is not given are chosen from
    a search that has a quarter of the budget (:mod:`dpmc.tuning`).

    Parameters
    ----------
    model : Model
        The posterior, written for one row.
    data : Dataset, ndarray of shape (n, p), a data frame of numbers, or a folder
        The private rows. The automatic method also takes the path of a folder of Parquet or .npy
        files, or what `dpmc.open_rows` makes of some, which are read a part at a time: the draws
        are the same, to the last bit, as for these rows in memory. Rows that stay at several
        nodes are those of `dpmc.federation`.
    epsilon, delta : float
        The budget; left out only for a method without privacy.
    method : str or object
        ``"auto"``, the automatic method; another name of `methods`, such as ``"dp_hmc"``; or an
        object with ``Params``, ``releases`` and ``sampler``.
    num_chains : int
        Number of chains.
    num_draws : int, optional
        Draws per chain of the automatic method, 2,000 by default. They cost no privacy. Those of
        another method are its iterations.
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
    invalid_rows : {"refuse", "zero"}
        Of an array: what becomes of rows with an entry that is not finite. A `Dataset` says
        so itself.
    names : sequence of str
        Names of the components of theta, for tables and ArviZ; a model of `dpmc.model` has some.
    unit : str or array_like of shape (n,), optional
        What is protected in the place of a row, by the automatic method: whoever has one or several
        of them. The name of a column of identifiers, which the model does not see, or identifiers
        of persons. Their number is public, that of the rows is not (docs/persons.md).
    neighbours : {"replace", "add_remove"}
        What the budget is for: substitution of one row, the number of rows being public; or, for
        the automatic method and rows in memory, addition or removal of one. Their number is
        private then, and a count of them is released with noise.
    **params
        Parameters of the method, as in its ``Params``, and how its chains run: `accountant`,
        `num_iterations`, `max_iterations`, `num_threads` and `diagnostics`, as of
        :func:`dpmc.mcmc.fit.fit`.

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
    (4, 2000, 2)
    >>> bool(abs(result.kept().mean(axis=(0, 1)) - rows.mean(axis=0)).max() < 0.05)
    True
    """
    checks.instance("model", model, Model, "a dpmc.Model")
    module = chosen(method, params)
    named = check_names(names, model)
    count, seed, noise = checked(
        num_chains, NUM_DRAWS if num_draws is None else num_draws, seed, noise
    )
    checks.flag("progress", progress)
    checks.one_of("neighbours", neighbours, tuple(NEIGHBOURS))
    hidden = neighbours == "add_remove"
    if hidden and unit is not None:
        raise DpmcError(PERSONS)
    if hidden and module is not None:
        raise DpmcError(f"`neighbours` must be 'replace' beside a `method`: {PROVEN['neighbours']}")
    points = None if start is None else _numbers(start)
    if module is None:
        budget = _epsilon(epsilon), check_delta(delta, "the automatic method")
        if unit is not None:
            rows: Any = _units(data, unit, invalid_rows)
        else:
            rows = _rows(data, invalid_rows, hidden=True) if hidden else _source(data, invalid_rows)
        _check_columns(model, rows)
        with progress_bar.shown(progress, "% of the budget") as report:
            fitted = automatic.fit(
                model,
                rows,
                *budget,
                num_chains=count[0],
                num_draws=count[1],
                start=None if points is None else chains.start_points(points, model.dim, 1)[0],
                seed=seed,
                noise=noise,
                names=named,
                neighbours=neighbours,
                progress=report,
            )
        num_rows = fitted.plan.details["num_rows"]
    else:
        refuse_unit(unit)
        if num_draws is not None:
            raise DpmcError(
                "`num_draws` must be left out beside a `method`, whose draws are its iterations"
            )
        dataset = _rows(data, invalid_rows)
        _check_columns(model, dataset)
        num_rows = dataset.num_rows
        result = _chains(
            module,
            model,
            dataset,
            params,
            epsilon=epsilon,
            delta=delta,
            num_chains=count[0],
            start=points,
            seed=seed,
            noise=noise,
            progress=progress,
        )
        fitted = replace(result, names=named, remarks=tuple(remarks(result)))
    with spending.told(fitted.guarantee, lambda: fitted.ledger):
        if isinstance(model, ParametricModel):
            fitted = _bounded(fitted, model)
        fitted = replace(fitted, remarks=(*fitted.remarks, *weak(fitted.guarantee, num_rows)))
        for remark in fitted.remarks:
            warnings.warn(remark, PosteriorWarning, stacklevel=callers.stacklevel())
    return fitted


def methods() -> dict[str, str]:
    """Name and one line of each method that `fit` takes, those of other packages too.

    Examples
    --------
    >>> methods()["dp_penalty"]
    'DP-penalty: Metropolis-Hastings on a noisy log-likelihood ratio.'
    """
    names = (*registry.names("method"), *own_methods.names())
    modules = {AUTOMATIC: automatic, **{name: resolve(name) for name in names}}
    return {
        name: (module.__doc__ or "").strip().partition("\n")[0] for name, module in modules.items()
    }


def checked(
    num_chains: int, num_draws: int, seed: int | None, noise: Noise | None
) -> tuple[tuple[int, int], int | None, Noise]:
    """Numbers of chains and draws, seed and noise as all ways in take them."""
    checks.at_least("num_chains", num_chains, 1)
    checks.at_least("num_draws", num_draws, 1)
    seed = checks.seed(seed)
    return (int(num_chains), int(num_draws)), seed, noise_of(noise, published=seed is not None)


def refuse_unknown(
    way_in: Callable[..., Any], given: Iterable[str], own: Iterable[str] = (), wanted: str = ""
) -> None:
    """Refuse an argument that a way in does not have, with the name that may have been meant.

    Parameters
    ----------
    way_in : callable
    given : iterable of str
        Arguments that are none of its own.
    own : iterable of str
        Those of them that it takes.
    wanted : str
        What an argument must be, if not one of the way in.
    """
    listed = inspect.signature(way_in).parameters.values()
    known = {*own, *(one.name for one in listed if one.kind is inspect.Parameter.KEYWORD_ONLY)}
    for name in given:
        if name in known:
            continue
        if name in PROVEN:
            raise DpmcError(f"`{name}` must be left out: {PROVEN[name]}")
        there = ELSEWHERE.get(name, "")
        if there in known:
            raise DpmcError(
                f"`{name}` must be an argument of dpmc.{way_in.__name__} (did you mean {there}?)"
            )
        if there:
            raise DpmcError(f"`{name}` must be left out: {OTHER.get(there, there)}")
        wanted = wanted or f"an argument of dpmc.{way_in.__name__}"
        raise DpmcError(registry.refusal(name, wanted, None, known))


def chosen(
    method: Any, params: Mapping[str, Any], way_in: Callable[..., Any] | None = None
) -> ModuleType | None:
    """Module of a method, None for the automatic one.

    Parameters
    ----------
    method : str or object
    params : mapping
        What it is given.
    way_in : callable, optional
        What is called; by default `fit`.
    """
    if is_automatic(method):
        refuse_beside_auto(params, way_in)
        return None
    module = resolve(method)
    own = [field.name for field in fields(module.Params)]
    wanted = f"a parameter of {name_of(module)} ({registry.listed(own)})"
    refuse_unknown(way_in or fit, params, [*own, *chains.OPTIONS], wanted)
    return module


def is_automatic(method: Any) -> bool:
    """Whether a method is the automatic one, by its name."""
    return isinstance(method, str) and method == AUTOMATIC


def refuse_beside_auto(params: Iterable[str], way_in: Callable[..., Any] | None = None) -> None:
    """Refuse parameters of methods beside the automatic one, which has none."""
    for name in params:
        if name in _parameters_of_methods():
            raise DpmcError(
                f"`{name}` must be left out for the automatic method, which chooses it, or given "
                "beside a `method`"
            )
    refuse_unknown(way_in or fit, params)


@functools.cache
def _parameters_of_methods() -> frozenset[str]:
    """Parameters and options of the methods of dpmc."""
    modules = [registry.load("method", name) for name in registry.names("method")]
    own = (field.name for module in modules for field in fields(module.Params))
    return frozenset((*own, *chains.OPTIONS))


def _chains(
    module: ModuleType,
    model: Model,
    dataset: Dataset,
    given: Mapping[str, Any],
    *,
    epsilon: float | None,
    delta: float | None,
    start: Array | None,
    **options: Any,
) -> Fit:
    """Chains of one method, with parameters that are missing chosen where they can be."""
    options |= {key: value for key, value in given.items() if key in chains.OPTIONS}
    params = {key: _plain(value) for key, value in given.items() if key not in chains.OPTIONS}
    checks.one_of("diagnostics", options.get("diagnostics", "private"), CHOICES)
    if options.get("accountant") is not None:
        check_accountant(options["accountant"])
    epsilon = None if epsilon is None else _epsilon(epsilon)
    options |= {"epsilon": epsilon, "delta": delta}
    if epsilon is None or not tuning.lacks(module, params):
        return chains.fit(module, model, dataset, start=start, **options, **params)
    delta = check_delta(delta)
    begin = None if start is None else chains.start_points(start, model.dim, 1)[0]
    shared = {key: options[key] for key in tuning.SHARED if key in options}
    tuned, search = tuning.tuned(
        module, params, model, dataset, epsilon, delta, start=begin, **shared
    )
    with spending.told(search.spent, lambda: search.records):
        return chains.fit(module, model, dataset, start=start, search=search, **options, **tuned)


def _bounded(fitted: Fit, model: ParametricModel) -> Fit:
    """Fit whose draws are parameters on their own scale."""
    if fitted.draws is None:
        return fitted
    return replace(fitted, draws=model.bounded(fitted.draws), names=fitted.names or model.names)


def check_names(names: Sequence[str], model: Model) -> tuple[str, ...]:
    """Names of the components, refusing what are not so many different texts."""
    named = (None,) if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    count = len(model.names) if isinstance(model, ParametricModel) else model.dim
    texts = tuple(name for name in named if isinstance(name, str))
    if named and (len(texts) != len(named) or len(named) != count or len({*texts}) != count):
        raise DpmcError(f"`names` must be {count} different names, got {names!r}")
    return texts


def _check_columns(model: Model, rows: Dataset | ShardedRows | Persons | Federation) -> None:
    """Refuse rows of another number of columns than the model reads, where it says so."""
    found = num_columns(rows)
    wanted = columns_of(model)
    if wanted not in (None, found):
        raise DpmcError(f"`data` must have {wanted} columns for model {model.name!r}, got {found}")


def columns_of(model: Model) -> int | None:
    """Columns of the rows that a model reads, None where it does not say."""
    if isinstance(model, ParametricModel) and model.num_columns is not None:
        return model.num_columns
    return None if model.example_rows is None else int(model.example_rows.shape[1])


def _epsilon(epsilon: float | None) -> float:
    """Epsilon, refusing what is none."""
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
    """Rows of the automatic method: in memory, in files or at several nodes."""
    if isinstance(data, ShardedRows | Federation):
        return data
    if isinstance(data, str | os.PathLike):
        return open_rows(Path(data), invalid_rows=invalid_rows)
    return _rows(data, invalid_rows)


def _units(data: Any, unit: Any, invalid_rows: InvalidRows) -> Persons:
    if isinstance(data, Federation):
        raise DpmcError("`unit` must be given to dpmc.federation, whose nodes have the persons")
    return by_person(data, unit, invalid_rows)


def refuse_unit(unit: Any) -> None:
    """Refuse identifiers of persons beside a method, whose sums are over rows."""
    if unit is not None:
        raise DpmcError("`unit` must be None beside a `method`: the automatic method takes it")


def _rows(data: Any, invalid_rows: InvalidRows, hidden: bool = False) -> Dataset:
    """Rows in memory; `hidden` is whether nothing may tell how many they are."""
    if isinstance(data, Dataset):
        return data
    if isinstance(data, ShardedRows | Federation | str | os.PathLike):
        kind = "a federation" if isinstance(data, Federation) else "a path"
        if hidden:
            raise DpmcError(
                f"`data` must be rows in memory beside `neighbours` 'add_remove', got {kind}: "
                "files and nodes tell how many rows they have"
            )
        raise DpmcError(
            f"`data` must be rows in memory for a method of your choice, got {kind}, which the "
            "automatic method reads"
        )
    return Dataset.of("data", data, invalid_rows, hidden)


def _numbers(start: Any) -> Array:
    points = checks.real_numbers(start)
    if points.shape != np.shape(start):
        shown = " ".join(repr(start).split())
        raise DpmcError(f"`start` must be numbers, got {shown[:60]}{'...' * (len(shown) > 60)}")
    return points


def _plain(value: Any) -> Any:
    """Number of NumPy as one of Python."""
    return value.item() if isinstance(value, np.generic | np.ndarray) and value.ndim == 0 else value
