"""Tasks: frozen content, public bounds that hold, and references that the posterior agrees with.

References are checked by identities of Stein, which hold for draws from a density p and in general
for no others: the mean of the gradient of log p is 0, and that of (theta - c) times it is -1 in
each component. Each is a mean over 500 draws; a check fails beyond 5 standard errors. For some 200
of them together a correct reference fails with probability below 2e-4, by the normal approximation.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import dpmc_league
from dpmc.rng import stream
from dpmc.rows import model_checks
from dpmc.types import DpmcError, UnavailableError
from dpmc_league import references
from dpmc_league.catalogue import hierarchical_10_v1
from dpmc_league.references import (
    Candidates,
    LogDensity,
    Proposals,
    Quality,
    Source,
    independence_chains,
)

# The package has a function of the same name.
tasks_module = importlib.import_module("dpmc_league.task")

NUM, LIMIT = 500, 5.0
# Tasks whose references take longest.
LONG = (
    "network-6-v1",
    "mixture-2-v1",
    "logistic-3-v1",
    "student-location-v1",
    "poisson-3-v1",
    "gaussian-30-v1",
)


def found(name: str):
    """Return a task, or skip with the reason why its rows are not here."""
    try:
        return dpmc_league.task(name)
    except UnavailableError as error:
        pytest.skip(str(error))


def stein(density: LogDensity, draws: np.ndarray, centre: np.ndarray) -> float:
    """Return the largest deviation from Stein's identities, in standard errors."""
    slopes = np.array([density.gradient(theta) for theta in draws])
    terms = np.column_stack([slopes, (draws - centre) * slopes + 1])
    return float(np.abs(terms.mean(axis=0) / (terms.std(axis=0) / np.sqrt(len(terms)))).max())


@pytest.mark.parametrize("name", dpmc_league.tasks())
def test_a_task_is_what_it_was_and_its_bounds_hold(name) -> None:
    task = found(name)
    assert len(task.digest) == 64
    assert len(task.names) == task.dim == len(task.start)
    assert np.array_equal(np.round(task.rows, 6), task.rows)
    if task.statistic is not None:
        norms = np.linalg.norm(task.statistic.summaries(task.rows), axis=1)
        assert norms.max() <= task.statistic.bound
    if "row_norm" in task.bounds:
        design = (task.model.features or np.transpose)(task.rows)
        assert np.linalg.norm(design, axis=0).max() <= task.bounds["row_norm"]
    model_checks.check(task.model, task.rows.shape[1], task.bounds, False)


@pytest.mark.parametrize("name", dpmc_league.tasks())
def test_the_digest_of_a_task_does_not_depend_on_the_processor(name, monkeypatch) -> None:
    """Values of its model may differ in their last bits, here by up to 1e-13 of themselves."""
    task = found(name)
    values = np.array(tasks_module._probed(task))
    for seed in range(5):
        errors = np.random.default_rng(seed).uniform(-1e-13, 1e-13, len(values))
        monkeypatch.setattr(tasks_module, "_probed", lambda _, e=errors: list(values * (1 + e)))
        assert tasks_module.content_digest(task) == task.digest


def test_a_digest_of_rounded_values_does(monkeypatch) -> None:
    """One value of this task is half of a sixth digit: -1.312345 or the next float."""
    task = found("gaussian-30-v1")
    values = np.array(tasks_module._probed(task))
    monkeypatch.setattr(tasks_module, "written", lambda value: f"{value:.6g}")
    digests = set()
    for factor in (1 - 1e-13, 1 + 1e-13):
        monkeypatch.setattr(tasks_module, "_probed", lambda _, f=factor: list(values * f))
        digests.add(tasks_module.content_digest(task))
    assert len(digests) == 2


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if n in LONG else ()) for n in dpmc_league.tasks()],
)
def test_the_reference_satisfies_identities_of_stein(name) -> None:
    task = found(name)
    draws, quality = task.reference(), task.quality()
    assert draws.shape == (10_000, task.dim)
    assert quality.rhat < 1.01
    assert quality.lag_1 < 0.05
    density = LogDensity(task.model, task.dataset, task.start)
    assert stein(density, draws[:NUM], draws[NUM:].mean(axis=0)) < LIMIT


def test_draws_of_another_posterior_violate_the_identities() -> None:
    """The node means without their prior, and a spread without its Jacobian's share."""
    task = found("hierarchical-10-v1")
    density = LogDensity(task.model, task.dataset, task.start)
    draws = task.reference()[:NUM].copy()
    centre = task.reference().mean(axis=0)
    assert stein(density, draws, centre) < LIMIT
    draws[:, 1] = centre[1] + 1.3 * (draws[:, 1] - centre[1])
    assert stein(density, draws, centre) > LIMIT


def test_a_reference_of_student_agrees_with_quadrature_on_a_grid() -> None:
    """By another likelihood, SciPy's: means within 5 standard errors of 10,000 draws, sds 5 %."""
    from scipy.stats import t

    task = found("student-location-v1")
    draws = task.reference()
    axes = [
        m + s * np.linspace(-6, 6, 41) for m, s in zip(draws.mean(0), draws.std(0), strict=True)
    ]
    rows = task.rows[:, 0]
    values = np.array(
        [[t.logpdf(rows, 4.0, a, np.exp(b)).sum() - a * a / 200 - b * b / 18 for b in axes[1]]
         for a in axes[0]]
    )  # fmt: skip
    weights = np.exp(values - values.max())
    for axis, marginal in ((0, weights.sum(1)), (1, weights.sum(0))):
        marginal = marginal / marginal.sum()
        mean = marginal @ axes[axis]
        sd = np.sqrt(marginal @ (axes[axis] - mean) ** 2)
        assert abs(draws[:, axis].mean() - mean) < 5 * sd / 100
        assert draws[:, axis].std() == pytest.approx(sd, rel=0.05)


def test_proposals_without_their_density_sample_another_target() -> None:
    """Independence Metropolis on N(0, I) from proposals that are too wide and off the centre."""
    rng = stream(1, "test", "independence")
    proposals = Proposals(np.array([[0.7]]), np.array([[[1.5]]]))

    def log_density(theta):
        return -0.5 * float(theta @ theta)

    chains, acceptance = independence_chains(Candidates(log_density, proposals, rng), 2)
    assert abs(chains.mean()) < 0.06
    assert chains.std() == pytest.approx(1, abs=0.05)
    assert 0.4 < acceptance < 0.9

    class Broken(Proposals):
        def log_density(self, thetas):
            return np.zeros(len(thetas))

    broken = Broken(proposals.modes, proposals.roots)
    chains, _ = independence_chains(Candidates(log_density, broken, stream(1, "test", "broken")), 2)
    assert abs(chains.mean()) > 0.1


def test_both_modes_of_the_mixture_are_there() -> None:
    """Half of the draws in each, within 5 standard errors of a share."""
    draws = found("mixture-2-v1").reference()
    assert abs(np.mean(draws[:, 0] > 0) - 0.5) < 0.025


def test_references_are_kept_and_those_that_were_altered_are_made_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(references.user_cache, "folder", lambda: tmp_path)
    task = found("circle-v1")
    source = Source(task.model, task.dataset, task.start, None, task.sample)
    first, quality = references.cached("circle-v1", task.digest, source)
    (path,) = (tmp_path / "league").iterdir()
    assert quality == Quality(references.CLOSED)
    broken = Source(task.model, task.dataset, task.start, None, lambda x, n, rng: 1 / 0)
    again, _ = references.cached("circle-v1", task.digest, broken)
    assert np.array_equal(first, again)
    with np.load(path) as kept:
        np.savez(path, draws=kept["draws"] + 1, quality=kept["quality"])
    renewed, _ = references.cached("circle-v1", task.digest, source)
    assert np.array_equal(first, renewed)
    path.write_bytes(b"half")
    renewed, _ = references.cached("circle-v1", task.digest, source)
    assert np.array_equal(first, renewed)


def test_chains_that_miss_the_criteria_are_refused(monkeypatch) -> None:
    task = found("student-location-v1")
    monkeypatch.setattr(references, "MOST_THIN", 2)
    monkeypatch.setattr(references, "MOST_LAG_1", 0.0)
    monkeypatch.setattr(references, "NUM_DRAWS", 40)
    source = Source(task.model, task.dataset, task.start, None, None)
    with pytest.raises(DpmcError, match=r"lag-1 autocorrelation below 0\.0, got"):
        references.make(source, stream(1, "test"))


def test_a_task_whose_content_has_changed_is_refused(monkeypatch) -> None:
    module = importlib.import_module("dpmc_league.catalogue.circle_v1")
    monkeypatch.setattr(module, "SCALE", 2e-5)
    tasks_module._built.cache_clear()
    with pytest.raises(DpmcError, match="task 'circle-v1': the digest of its content must be"):
        dpmc_league.task("circle-v1")
    tasks_module._built.cache_clear()


def test_rows_that_are_not_here_are_named(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("DPMC_UCI_DIR", str(tmp_path))
    monkeypatch.setattr(references.user_cache, "folder", lambda: tmp_path)
    tasks_module._built.cache_clear()
    with pytest.raises(UnavailableError, match="logistic-wine-v1 needs wine_red"):
        dpmc_league.task("logistic-wine-v1")


def test_node_means_follow_their_rows() -> None:
    """With many rows a node's mean is that of its rows, within 6 posterior deviations."""
    task = found("hierarchical-10-v1")
    draws = hierarchical_10_v1.sample(task.rows, 2000, stream(1, "test", "nodes"))
    for node in range(8):
        rows = task.rows[task.rows[:, 0] == node, 1]
        assert abs(draws[:, 2 + node].mean() - rows.mean()) < 6 / np.sqrt(len(rows) * 1.0)
