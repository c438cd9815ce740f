"""What is quoted is what holds: after a search, an error, a forgetful method, a seed used twice."""

from __future__ import annotations

import importlib
import os
from types import SimpleNamespace

import numpy as np
import pytest

import dpmc
from dpmc import command, statsel
from dpmc.ep.mixture.model import MixtureModel
from dpmc.mcmc import fit as chains
from dpmc.mcmc.chains import Run
from dpmc.models import gaussian_mean
from dpmc.privacy import Releases, asserted, compose, gaussian, spending
from dpmc.privacy.nodes import ASSUMED, OWN_SHARE
from dpmc.types import SEED, DpmcError, Guarantee, NoParams

pytestmark = pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")

MODEL = gaussian_mean.build(gaussian_mean.Params(2, [[1, 0], [0, 1]], prior_variance=100.0))
X = np.random.default_rng(0).normal(size=(1500, 2))
BUDGET = {"epsilon": 2.0, "delta": 1e-5}
QUIET = {"progress": False, "num_chains": 2}
PENALTY = {"proposal_sd": 0.1, "ratio_noise_multiplier": 30.0, "ratio_clip_bound": 1.0}


@pytest.mark.parametrize("method", ["dp_penalty", "minibatch_penalty", "dp_sgld"])
def test_after_a_search_the_budget_is_quoted(method):
    """Parameters that outputs chose would choose a smaller number too; two fits say one."""
    fits = [
        dpmc.fit(MODEL, X, method=method, **BUDGET, **QUIET, max_iterations=20) for _ in range(2)
    ]
    for one in fits:
        assert (one.guarantee.epsilon, one.guarantee.delta) == (2.0, 1e-5)
        assert one.guarantee.epsilon == one.plan.epsilon == 2.0
        assert one.plan.audit.epsilon < 1.9  # what happened to be spent
        assert compose([one], 1e-5).epsilon == pytest.approx(2.0, rel=1e-6)


def test_without_a_search_what_is_not_run_is_not_spent():
    one = dpmc.fit(MODEL, X, method="dp_penalty", **BUDGET, **QUIET, **PENALTY, max_iterations=20)
    assert one.guarantee.epsilon < 1.5
    assert compose([one], 1e-5).epsilon == pytest.approx(one.guarantee.epsilon, rel=1e-6)


def of_releases(made, planned=20, status="complete", diverged=None):
    """Return a method that makes so many of the releases that it says."""

    def sampler(posterior, settings):
        def run(start, num_iterations, streams, ledger, progress=None):
            for _ in range(made):
                ledger.release(asserted(0.0, 1.0), 20.0, streams[0].noise)
            totals = {} if diverged is None else {"diverged": np.array([diverged])}
            return Run(np.zeros((num_iterations, len(start), 2)), {}, totals, status)

        return run

    return SimpleNamespace(
        name="forgetful",
        Params=NoParams,
        releases=lambda settings, num_rows: Releases((), ((gaussian(20.0), planned),)),
        sampler=sampler,
    )


def run_own(method):
    given = {"num_chains": 1, "max_iterations": 1, "diagnostics": "none", "progress": False}
    return dpmc.fit(MODEL, X, method=method, epsilon=4.0, delta=1e-6, **given)


def test_a_complete_run_that_forgets_its_ledger_is_refused():
    for made in (0, 1, 19):
        with pytest.raises(DpmcError, match=f"must make all 20 releases of gaussian.*got {made}"):
            run_own(of_releases(made))
    assert run_own(of_releases(20)).status == "complete"
    assert run_own(of_releases(3, status="stopped")).status == "stopped"


def test_only_moves_that_diverged_may_release_less():
    result = SimpleNamespace(totals={"diverged": np.array([3, 1])})
    plan = SimpleNamespace(num_iterations=5, num_chains=2, counts={gaussian(2.0): 40})
    chains._check_releases(plan, None, {gaussian(2.0): 24}, result)
    with pytest.raises(DpmcError, match="got 23"):
        chains._check_releases(plan, None, {gaussian(2.0): 23}, result)


def test_what_a_method_of_ones_own_does_besides_is_named():
    fitted = run_own(of_releases(20))
    assert "what forgetful does besides its ledger" in fitted.guarantee.outside
    ours = dpmc.fit(MODEL, X, method="dp_penalty", **BUDGET, **QUIET, **PENALTY, max_iterations=2)
    assert ours.guarantee.outside == ()


def failing(after, error):
    """Return a model that fails once rows have been read so many times."""
    calls = iter(range(10**9))

    def progress(done, total, info=""):
        if next(calls) >= after:
            raise error

    return progress


@pytest.mark.parametrize("error", [KeyboardInterrupt(), DpmcError("x"), RuntimeError("y")])
def test_an_error_after_a_release_carries_what_is_spent(error, monkeypatch):
    from dpmc.automatic import run as automatic

    with pytest.raises(type(error)) as caught:
        automatic.fit(MODEL, dpmc.Dataset.of("x", X), 1.0, 1e-6, progress=failing(0, error))
    assert (caught.value.spent.epsilon, caught.value.spent.delta) == (1.0, 1e-6)
    assert caught.value.ledger
    told = [str(caught.value), *getattr(caught.value, "__notes__", [])]
    assert "(1, 1e-06) of privacy is spent" in " ".join(told)


MEANS = MixtureModel.isotropic(1.0, [[-1.0, 0.0], [1.0, 0.0]], precision=0.1)
POPULATION = statsel.population("normal_variance", bound=10.0)
WAYS = {
    "fit": lambda **more: dpmc.fit(MODEL, X, **BUDGET, **QUIET, **more),
    "mixture": lambda **more: dpmc.mixture(X, MEANS, **BUDGET, **QUIET, num_passes=1, **more),
    "network": lambda **more: dpmc.network(
        X, X[:, 0], **BUDGET, **QUIET, x_range=(-3, 3), y_range=(-3, 3), hidden=2, num_passes=1,
        **more,
    ),
    "linear_regression": lambda **more: dpmc.linear_regression(
        X, X[:, 0], **BUDGET, **QUIET, x_bound=3.0, y_bound=3.0, **more
    ),
    "select_statistic": lambda **more: dpmc.select_statistic(
        X[:, 0], POPULATION, [statsel.statistic("abs_1")], statsel.mechanism("laplace"), **BUDGET,
        **QUIET, theta=2.0, prior=(0.1, 20.0), **more,
    ),
}  # fmt: skip


@pytest.mark.parametrize("number", [10**15, 10**400])
@pytest.mark.parametrize("way", WAYS)
def test_more_draws_than_there_is_room_for_are_refused_before(way, number):
    with pytest.raises(DpmcError, match="`num_draws` must be fewer") as told:
        WAYS[way](num_draws=number)
    assert told.value.spent is None


@pytest.mark.parametrize("way", ["mixture", "network"])
def test_an_error_after_the_last_release_carries_what_is_spent(way, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module(f"dpmc.families.{way}"), "_draws", stop)
    with pytest.raises(KeyboardInterrupt) as told:
        WAYS[way](num_draws=2)
    assert (told.value.spent.epsilon, told.value.spent.delta) == (2.0, 1e-5)
    assert told.value.ledger


@pytest.mark.parametrize("error", [KeyboardInterrupt, DpmcError, np.linalg.LinAlgError])
@pytest.mark.parametrize(
    ("likelihood", "step"),
    [("gamma", "dpmc.families.general.run.fit"), ("linear", "dpmc.automatic.glm.run.posterior")],
)
def test_an_error_between_units_and_draws_tells_of_the_budget(likelihood, step, error, monkeypatch):
    """What fails stands between the releases of a regression and its draws."""

    def stop(*arguments, **more):
        raise error("x")

    monkeypatch.setattr(step, stop)
    with pytest.raises(error) as told:
        dpmc.regression(X, np.exp(X[:, 0]), likelihood=likelihood, **BUDGET, **QUIET)
    assert (told.value.spent.epsilon, told.value.spent.delta) == (2.0, 1e-5)
    assert told.value.ledger


def test_an_error_between_search_and_chains_tells_of_the_search(monkeypatch):
    """The search has a third of both; an error before its first release says nothing."""

    def refuse(*arguments, **more):
        raise DpmcError("no")

    with monkeypatch.context() as patch:
        patch.setattr(chains, "allocate", refuse)
        with pytest.raises(
            DpmcError, match=r"no; \(0.6667, 3.33e-06\) of privacy is spent"
        ) as told:
            dpmc.fit(MODEL, X, method="dp_sgld", **BUDGET, **QUIET)
    assert told.value.spent.delta == pytest.approx(1e-5 / 3)
    assert sum(count for _, count in told.value.ledger) > 10
    with pytest.raises(DpmcError) as early:
        dpmc.fit(MODEL, X, method="dp_sgld", **BUDGET, **QUIET, start=[0.0])
    assert early.value.spent is None


def test_an_error_in_a_chain_tells_of_all():
    def sampler(posterior, settings):
        def run(start, num_iterations, streams, ledger, progress=None):
            ledger.release(asserted(0.0, 1.0), 20.0, streams[0].noise)
            raise RuntimeError("gone")

        return run

    method = of_releases(20)
    method.sampler = sampler
    with pytest.raises(RuntimeError) as caught:
        run_own(method)
    assert caught.value.spent.epsilon == run_own(of_releases(20)).guarantee.epsilon
    assert caught.value.ledger == (("gaussian(20.0)", 1),)
    assert "is spent" in caught.value.__notes__[0]


def test_nothing_is_told_where_nothing_was_released():
    guarantee = Guarantee(1.0, 1e-6)
    with pytest.raises(DpmcError) as caught, spending.told(guarantee, lambda: ()):
        raise DpmcError("before")
    assert str(caught.value) == "before"
    assert caught.value.spent is None


def test_a_budget_for_no_iteration_is_refused_before_a_search(monkeypatch):
    from dpmc import tuning

    def used(*arguments, **more):
        raise AssertionError("a row was used")

    monkeypatch.setattr(tuning, "locate", used)
    with pytest.raises(
        DpmcError, match=r"`epsilon` must be at least 5\.\d+ for one .*got 2$"
    ) as no:
        dpmc.fit(MODEL, X[:300], method="dp_barker", **BUDGET, progress=False)
    least = float(str(no.value).split("at least ")[1].split(" ")[0])
    with pytest.raises(AssertionError, match="a row was used"):
        dpmc.fit(MODEL, X[:300], method="dp_barker", epsilon=least, delta=1e-5, progress=False)


def test_two_parts_with_a_seed_are_not_composed():
    """With one seed the noise of both is the same: the difference of two releases has none."""
    seeded = Guarantee(1.0, 1e-6, accountant="gaussian", outside=(SEED,))
    plain = Guarantee(1.0, 1e-6, accountant="gaussian")
    assert compose([seeded, plain], 1e-6).outside == (SEED,)
    with pytest.raises(DpmcError, match="part 2 must have no seed, as part 0 has one"):
        compose([seeded, plain, seeded], 1e-6)


def test_a_comparison_quotes_the_honest_sum():
    methods = ["dp_sgld", "minibatch_penalty"]
    both = dpmc.compare(MODEL, X, methods, **BUDGET, **QUIET, max_iterations=5)
    assert both.guarantee.epsilon == pytest.approx(4.0)
    assert both.guarantee.delta == pytest.approx(2e-5)
    assert "no privacy" not in str(both).rpartition("All fits together")[2]
    exact = dpmc.compare(MODEL, X, ["auto", "dp_penalty"], **BUDGET, progress=False)
    assert 2.5 < exact.guarantee.epsilon < 3.5  # as Gaussian releases, at the delta of one
    assert exact.guarantee.delta == 1e-5


def test_a_method_that_runs_twice_with_a_seed_has_no_guarantee():
    given = {"method": "dp_penalty", **PENALTY, "max_iterations": 3}
    labels = {"a": given, "b": given}
    assert not dpmc.compare(MODEL, X, labels, **BUDGET, **QUIET, seed=1).guarantee.private
    assert dpmc.compare(MODEL, X, labels, **BUDGET, **QUIET).guarantee.private


@pytest.mark.parametrize("number", [2, 5])
def test_the_default_of_nodes_holds_against_one_of_them(number):
    """What a node cannot take off again is the noise that a release needs; with 0 it is less."""
    parts = np.array_split(X, number)
    noise = dpmc.federation(parts).node_noise(None, "test")
    assert noise.share**2 * (number - 1) == pytest.approx(1.0)
    assert noise.outside == (ASSUMED,)
    broken = dpmc.federation(parts, colluding=0).node_noise(None, "test")
    assert broken.share**2 * (number - 1) == pytest.approx(1 - 1 / number)
    assert broken.outside == (ASSUMED, OWN_SHARE)
    assert dpmc.federation(parts, sharing="local").colluding == 0
    assert dpmc.federation(parts[:1]).colluding == 0


def settings(folder, output="fit.parquet"):
    np.savetxt(folder / "rows.csv", X[:400], delimiter=",", header="x,y", comments="")
    text = "rows: rows.csv\nresponse: y\nlikelihood: linear\nepsilon: 1\ndelta: 1.0e-6\n"
    (folder / "fit.yaml").write_text(f"{text}num_draws: 20\noutput: {output}\n")
    return folder / "fit.yaml"


@pytest.fixture
def no_row_is_used(monkeypatch):
    def used(*arguments, **more):
        raise AssertionError("a row was used")

    monkeypatch.setattr(command, "_rows", used)


def test_an_output_that_is_a_folder_is_refused_before_a_row_is_used(tmp_path, no_row_is_used):
    (tmp_path / "there").mkdir()
    with pytest.raises(DpmcError, match="`output` must be a file, got the folder"):
        command.fit_file(settings(tmp_path, "there"))


def test_an_output_that_cannot_be_written_is_refused_before(tmp_path, no_row_is_used):
    with pytest.raises(DpmcError, match=r"`output` must be a file that can be written, got"):
        command.fit_file(settings(tmp_path, "n" * 240))
    if os.geteuid() != 0:  # whom no folder keeps out
        path = settings(tmp_path)
        tmp_path.chmod(0o555)
        with pytest.raises(DpmcError, match="Permission denied"):
            command.fit_file(path)
        tmp_path.chmod(0o755)
    assert not list(tmp_path.glob("*.part"))


def test_a_fit_that_cannot_be_saved_is_still_told(tmp_path, monkeypatch, capsys):
    def full(self, path):
        raise DpmcError(f"{path}: must be a file that can be written, got No space left on device")

    monkeypatch.setattr(dpmc.Fit, "save", full)
    with pytest.raises(DpmcError, match=r"No space .*; \(1, 1e-06\) of privacy is spent"):
        command.fit_file(settings(tmp_path))
    printed = capsys.readouterr().out
    assert "intercept" in printed
    assert "Privacy: (1, 1e-06)-DP" in printed
    assert "Noise: discrete." in printed
