"""Problems built from their settings: rows, posterior, and start points of chains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmc import registry
from dpmc.checks import START_RULES
from dpmc.rng import stream
from dpmc.types import Array, Dataset, DpmcError, Model

Settings = Mapping[str, Any]


def make_model(problem: Settings) -> Model:
    """Return the model that the settings of a problem name.

    Raises
    ------
    DpmcError
        If the model or one of its parameters is unknown or refused.
    """
    module = registry.load("model", problem["model"]["name"])
    model: Model = module.build(registry.parameters(module, dict(problem["model"]["params"])))
    return model


def make_data(problem: Settings, seed: int) -> Dataset:
    """Draw the rows of a problem, keyed by its name and `seed`.

    Raises
    ------
    DpmcError
        If the generator or one of its parameters is unknown or refused.
    """
    module = registry.load("data", problem["data"]["name"])
    params = registry.parameters(module, dict(problem["data"]["params"]))
    dataset: Dataset = module.generate(params, stream(seed, "data", problem["name"]))
    return dataset


def is_here(problem: Settings) -> bool:
    """Return whether the file that the rows of a problem come from is on this machine.

    True for rows that come from no file.
    """
    module = registry.load("data", problem["data"]["name"])
    look = getattr(module, "is_here", None)
    return look is None or bool(look(registry.parameters(module, problem["data"]["params"])))


def make_reference(
    problem: Settings, dataset: Dataset, seed: int, num_draws: int, num_baselines: int
) -> Array:
    """Draw the reference sample and the baselines from the exact posterior.

    Returns
    -------
    ndarray of shape (1 + num_baselines, num_draws, d)
        The reference sample first.

    Raises
    ------
    DpmcError
        If the model has no exact sampler.
    """
    model = make_model(problem)
    if model.reference is None:
        raise DpmcError(f"model {model.name!r}: no exact sampler, allowed a model with one")
    samples = [
        model.reference(dataset, num_draws, stream(seed, "reference", problem["name"], index))
        for index in range(1 + num_baselines)
    ]
    return np.stack(samples)


def start_points(
    problem: Settings,
    truth: Array | None,
    reference: Array,
    seed: int,
    replicates: Iterable[int],
    chains: int,
) -> Array:
    """Return start points by the rule of a problem, the same for all methods and budgets.

    ``around_truth`` and ``around`` draw them about the truth or a given centre. Their
    standard deviation is the mean over components of that of the reference sample
    [raisa2021dphmc, section 4.1], or a number that the problem gives. ``at_truth`` and
    ``at`` start all chains there.

    Parameters
    ----------
    problem : mapping
        Its ``start`` has a ``rule`` and, as the rule needs, ``centre`` and ``scale``.
    truth : ndarray of shape (d,) or None
        The parameter that generated the rows.
    reference : ndarray of shape (1 + baselines, draws, d)
    seed : int
    replicates : iterable of int
    chains : int

    Returns
    -------
    ndarray of shape (replicates, chains, d)

    Raises
    ------
    DpmcError
        If there is no such rule or it lacks what it needs.
    """
    rule, centre = _checked_rule(problem, truth, reference.shape[-1])
    wanted = list(replicates)
    if "scale" not in START_RULES[rule]:
        return np.broadcast_to(centre, (len(wanted), chains, centre.size)).copy()
    scale = problem["start"]["scale"]
    if scale == "reference":
        scale = float(np.mean(np.std(reference[0], axis=0)))
    draws = [
        stream(seed, "init", problem["name"], replicate, chain).standard_normal(centre.size)
        for replicate in wanted
        for chain in range(chains)
    ]
    normal = np.reshape(draws, (len(wanted), chains, centre.size))
    starts: npt.NDArray[np.float64] = centre + scale * normal
    return starts


def _checked_rule(problem: Settings, truth: Array | None, dim: int) -> tuple[str, Array]:
    """Return the rule of the start points and their centre."""
    start, where = problem["start"], f"start of {problem['name']}"
    rule = str(start["rule"])
    if rule not in START_RULES:
        raise DpmcError(f"{where}: rule {rule!r}, allowed {', '.join(START_RULES)}")
    for key in ("centre", "scale"):
        if (start.get(key) is None) == (key in START_RULES[rule]):
            needs = " and ".join(START_RULES[rule]) or "neither centre nor scale"
            raise DpmcError(f"{where}: {key} is {start.get(key)}, allowed with {rule!r}: {needs}")
    centre = truth if rule.endswith("truth") else start["centre"]
    if centre is None:
        raise DpmcError(f"{where}: no truth, allowed rules 'around' and 'at' with a centre")
    point = np.asarray(centre, dtype=np.float64)
    if point.shape != (dim,):
        raise DpmcError(f"{where}: {point.size} components, allowed {dim}")
    return rule, point
