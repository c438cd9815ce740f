"""Problems built from their settings: rows, posterior, and start points of chains."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpmc import registry
from dpmc.checks import START_RULES
from dpmc.rng import stream
from dpmc.types import Array, Dataset, DpmcError, Model
from dpmc_papers.config.setups import ProblemSetup


def make_model(problem: ProblemSetup) -> Model:
    """Model that the settings of a problem name."""
    if problem.model is None:
        raise DpmcError(f"`model` of {problem.name} must be given")
    module = registry.load("model", problem.model.name)
    model: Model = module.build(registry.parameters(module, problem.model.params))
    return model


def make_data(problem: ProblemSetup, seed: int, path: Path | None = None) -> Dataset:
    """Draw the rows of a problem, keyed by its name and `seed`, or read them from a raw file.

    By default the file at `path`, of rows that come from one, is found or downloaded.
    """
    module = registry.load("data", problem.data.name)
    params = registry.parameters(module, problem.data.params)
    given = () if path is None else (path,)
    dataset: Dataset = module.generate(params, stream(seed, "data", problem.name), *given)
    return dataset


def raw_file(problem: ProblemSetup) -> str | None:
    """Key of the raw file that the rows of a problem come from, None if from none."""
    module = registry.load("data", problem.data.name)
    look = getattr(module, "raw_file", None)
    return None if look is None else str(look(registry.parameters(module, problem.data.params)))


def is_here(problem: ProblemSetup) -> bool:
    """Whether the file that the rows of a problem come from is on this machine.

    True for rows that come from no file.
    """
    name = raw_file(problem)
    return name is None or registry.load("data", "uci").find(name) is not None


def make_reference(
    problem: ProblemSetup, dataset: Dataset, seed: int, num_draws: int, num_baselines: int
) -> Array:
    """Draw the reference sample and the baselines from the exact posterior.

    Returns
    -------
    ndarray of shape (1 + num_baselines, num_draws, d)
        The reference sample first.
    """
    model = make_model(problem)
    if model.reference is None:
        raise DpmcError(f"`model` must be one with an exact sampler, got {model.name!r}")
    samples = [
        model.reference(dataset, num_draws, stream(seed, "reference", problem.name, index))
        for index in range(1 + num_baselines)
    ]
    return np.stack(samples)


def start_points(
    problem: ProblemSetup,
    truth: Array | None,
    reference: Array,
    seed: int,
    replicates: Iterable[int],
    chains: int,
) -> Array:
    """Start points by the rule of a problem, the same for all methods and budgets.

    ``around_truth`` and ``around`` draw them about the truth or a given centre. Their
    standard deviation is the mean over components of that of the reference sample
    [raisa2021dphmc, section 4.1], or a number that the problem gives. ``at_truth`` and
    ``at`` start all chains there.

    Parameters
    ----------
    problem : ProblemSetup
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
    """
    rule, centre = _checked_rule(problem, truth, reference.shape[-1])
    wanted = list(replicates)
    if "scale" not in START_RULES[rule]:
        return np.broadcast_to(centre, (len(wanted), chains, centre.size)).copy()
    scale = problem.start.scale if problem.start else None
    if scale == "reference":
        scale = float(np.mean(np.std(reference[0], axis=0)))
    assert isinstance(scale, int | float)
    draws = [
        stream(seed, "init", problem.name, replicate, chain).standard_normal(centre.size)
        for replicate in wanted
        for chain in range(chains)
    ]
    normal = np.reshape(draws, (len(wanted), chains, centre.size))
    starts: npt.NDArray[np.float64] = centre + scale * normal
    return starts


def _checked_rule(problem: ProblemSetup, truth: Array | None, dim: int) -> tuple[str, Array]:
    """Rule of the start points and their centre."""
    start, where = problem.start, f"start of {problem.name}"
    if start is None:
        raise DpmcError(f"`{where}` must be given")
    rule = start.rule
    if rule not in START_RULES:
        known = ", ".join(START_RULES)
        raise DpmcError(f"`rule` of {where} must be one of {known}, got {rule!r}")
    for key in ("centre", "scale"):
        value = getattr(start, key)
        if (value is None) == (key in START_RULES[rule]):
            wanted = "given" if value is None else "left out"
            raise DpmcError(f"`{key}` of {where} must be {wanted} with rule {rule}, got {value}")
    centre = truth if rule.endswith("truth") else start.centre
    if centre is None:
        raise DpmcError(f"`rule` of {where} must be around or at without a truth, got {rule}")
    point = np.asarray(centre, dtype=np.float64)
    if point.shape != (dim,):
        raise DpmcError(f"`centre` of {where} must have {dim} components, got {point.size}")
    return rule, point
