"""What a fit holds: saved, loaded, pickled, and what it remarks on."""

from __future__ import annotations

import math
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest

import dpmc
from dpmc.fits import Fit
from dpmc.fits.remarks import few, remarks, weak
from dpmc.rng import stream
from dpmc.types import Diagnostic, DpmcError, Guarantee, Plan
from tests import test_bad_input_of_ways_in as ways_in
from tests.support.posteriors import gaussian_model, rows

PRIVATE = Guarantee(1.0, 1e-6, accountant="gaussian")


def made(draws: np.ndarray | None = None, **fields) -> Fit:
    """Return a fit of four chains of independent draws, some fields of it changed."""
    if draws is None:
        draws = stream(0, "fits").standard_normal((4, 1000, 2))
    accepted = np.ones(draws.shape[:2], dtype=bool)
    fit = Fit(
        draws=draws,
        info={"accepted": accepted},
        totals={
            "num_iterations": np.full(len(draws), draws.shape[1]),
            "accepted": accepted.sum(axis=1),
        },
        status="complete",
        ledger=(("gaussian(5.0)", 3),),
        guarantee=PRIVATE,
        plan=Plan(num_iterations=draws.shape[1], num_chains=len(draws), widening=(1.0, math.inf)),
        names=("a", "b"),
    )
    return replace(fit, **fields)


def test_a_saved_fit_is_the_one_that_is_loaded(tmp_path):
    fit = made(diagnostics={"ratio_clipped": Diagnostic(0.1, 0.02)}, remarks=("short",), warm_up=7)
    fit.save(tmp_path / "fit.parquet")
    again = Fit.load(tmp_path / "fit.parquet")
    np.testing.assert_array_equal(again.draws, fit.draws)
    np.testing.assert_array_equal(again.info["accepted"], fit.info["accepted"])
    np.testing.assert_array_equal(again.totals["accepted"], fit.totals["accepted"])
    for name in (
        "status",
        "ledger",
        "guarantee",
        "plan",
        "diagnostics",
        "names",
        "remarks",
        "warm_up",
    ):
        assert getattr(again, name) == getattr(fit, name), name
    assert list(tmp_path.iterdir()) == [tmp_path / "fit.parquet"]


def test_a_saved_fit_keeps_the_code_that_made_it(tmp_path):
    older = made(made_with={"dpmc": "0.0.1", "code": "sha256:0"})
    older.save(tmp_path / "fit.parquet")
    again = Fit.load(tmp_path / "fit.parquet")
    assert again.made_with == again.record()["made_with"] == older.made_with
    assert made().made_with["code"] != "sha256:0"


INDEPENDENT = {
    "automatic": ways_in.doors,
    "linear_regression": lambda: dpmc.linear_regression(
        ways_in.X, ways_in.Y, x_bound=4.0, y_bound=4.0, epsilon=1, delta=1e-5, num_draws=8, seed=1
    ),
    "mixture": ways_in.mixed,
    "network": ways_in.networked,
    "select_statistic": ways_in.selected,
}


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
@pytest.mark.parametrize("way", INDEPENDENT)
def test_no_draw_is_thrown_away_where_none_is_for_warm_up(way):
    fit = INDEPENDENT[way]()
    assert fit.warm_up == 0
    assert fit.kept().shape == fit.draws.shape
    assert fit.to_arviz().posterior["theta"].shape == fit.draws.shape
    np.testing.assert_allclose(fit.summary().values[:, 0], fit.draws.mean(axis=(0, 1)))


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_chains_say_which_states_are_warm_up(tmp_path):
    plain = dpmc.fit(
        gaussian_model(), rows("fit", 50, 2), method="rwmh", num_iterations=9, proposal_sd=1
    )
    assert plain.warm_up == 4
    assert plain.kept().shape == (4, 5, 2)
    assert plain.to_arviz().sample_stats["accepted"].shape == (4, 5)
    np.testing.assert_allclose(plain.summary().values[:, 0], plain.draws[:, 4:].mean(axis=(0, 1)))


def test_responses_are_those_of_the_draws_that_are_kept():
    draws = np.arange(6.0).reshape(2, 3, 1)
    likelihood = {"name": "logistic", "intercept": False}
    fit = made(800 * draws - 1200, plan=Plan(likelihood=likelihood), warm_up=1)
    assert fit.predict([[1.0]]).ravel().tolist() == [0, 1, 1, 1]
    assert replace(fit, warm_up=0).predict([[1.0]]).ravel().tolist() == [0, 0, 1, 1, 1, 1]


def test_a_saved_fit_may_be_read_by_whom_other_files_may(tmp_path):
    """As a file that is opened for writing, whatever the mask is."""
    for mask in (0o022, 0o077):
        before = os.umask(mask)
        try:
            (tmp_path / "other").write_text("")
            made().save(tmp_path / "fit.parquet")
        finally:
            os.umask(before)
        modes = {(tmp_path / name).stat().st_mode for name in ("other", "fit.parquet")}
        assert len(modes) == 1
        (tmp_path / "other").unlink()


def test_what_is_no_fit_is_refused_in_one_line(tmp_path):
    (tmp_path / "text").write_text("text")
    for name in ("text", "missing"):
        with pytest.raises(DpmcError, match=r"must be a file that `Fit\.save` wrote"):
            Fit.load(tmp_path / name)
    with pytest.raises(DpmcError, match="must have draws"):
        replace(made(), draws=None).save(tmp_path / "none")
    with pytest.raises(DpmcError, match="got none"):
        replace(made(), draws=made().draws[:, :0]).save(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_fit_pickles_and_compares_by_identity():
    fit = made()
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.draws, fit.draws)
    assert fit == fit
    assert fit != again


def test_an_epsilon_that_protects_nobody_is_remarked_on():
    (told,) = weak(replace(PRIVATE, epsilon=100.0), 1000)
    assert told.startswith("An epsilon of 100 lets the odds of a guess about a row grow 10^43-fold")
    assert list(weak(replace(PRIVATE, epsilon=20.0), 1000)) == []
    assert len(list(weak(replace(PRIVATE, epsilon=1e6, delta=0.5), 1000))) == 2


@pytest.mark.parametrize("way", ["automatic", "mixture", "network"])
def test_a_few_draws_are_remarked_on(way):
    doors = {"automatic": ways_in.doors, "mixture": ways_in.mixed, "network": ways_in.networked}
    with pytest.warns(dpmc.PosteriorWarning):
        fit = doors[way](num_chains=1, num_draws=1)
    assert any(remark.startswith("Draws in all: 1, too few") for remark in fit.remarks)


def walk(scale: float) -> np.ndarray:
    steps = stream(0, "walk").standard_normal((4, 1000, 2))
    return np.cumsum(scale * steps, axis=1)


BAD = {
    "disagree": (made(walk(1.0)), "Chains or their halves disagree"),
    "few independent": (made(walk(1.0)), "too few for its width"),
    "nothing moves": (
        made(totals={"num_iterations": np.full(4, 1000), "accepted": np.full(4, 1)}),
        "of the moves was accepted",
    ),
    "clipped": (
        made(diagnostics={"ratio_clipped": Diagnostic(0.6, 0.01)}),
        "had its ratio clipped",
    ),
    "few iterations": (made(plan=Plan(num_iterations=14)), "too few for any sampler"),
    "stopped": (made(status="stopped by its user"), "stopped early"),
    "gradients clipped": (
        made(diagnostics={"gradient_clipped": Diagnostic(1.0, 0.01)}),
        "had its gradient clipped",
    ),
    "chains that stand still apart": (
        made(np.broadcast_to(np.arange(4.0)[:, None, None], (4, 1000, 2)).copy()),
        "Chains or their halves disagree (R-hat inf",
    ),
    "chains that stand still together": (
        made(
            np.zeros((4, 1000, 2)),
            totals={"num_iterations": np.full(4, 1000), "accepted": np.zeros(4, dtype=int)},
        ),
        "A share of 0 of the moves was accepted",
    ),
    "not finite": (made(np.full((2, 200, 2), np.nan)), "not finite"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_in_words(name):
    """Each remark ends with what would help."""
    fit, message = BAD[name]
    told = list(remarks(fit))
    assert any(message in remark for remark in told)
    for remark in told:
        assert any(
            word in remark
            for word in ("would help", "chooses by itself", "would need", "clips less")
        )


@pytest.mark.parametrize("free", [False, True])
def test_draws_that_cost_no_privacy_are_not_said_to_need_a_budget(free):
    """Chains given what was released once: a larger epsilon would not make them longer."""
    fit = made(walk(1.0), plan=Plan(num_iterations=40))
    told = list(remarks(fit, free))
    assert len(told) == 3
    for remark in told:
        assert ("which cost no privacy" in remark) == free
        assert ("epsilon" in remark or "start nearer" in remark) != free


def groups_of(data):
    """Names of groups, which are a method in ArviZ 0.23 and paths in ArviZ 1."""
    groups = data.groups() if callable(data.groups) else data.groups
    return {str(name).lstrip("/") for name in groups}


def test_responses_of_new_rows_are_a_group_of_arviz():
    """Chain and draw of a response are those of the parameters that it was drawn with."""
    levels = 1e6 * np.arange(30)[None, :] + 1e3 * np.arange(2)[:, None]
    draws = np.stack([levels, np.zeros((2, 30)), np.full((2, 30), -9.0)], axis=2)
    likelihood = {"name": "linear", "intercept": True}
    fit = made(draws, plan=Plan(likelihood=likelihood), names=("a", "b", "log_sigma"))
    data = fit.to_arviz([[0.0], [1.0], [5.0]], seed=1)
    response = data.posterior_predictive["response"]
    assert response.shape == (2, 30, 3)
    np.testing.assert_allclose(response.to_numpy(), np.repeat(levels[:, :, None], 3, 2), atol=1)
    assert list(data.posterior.parameter.to_numpy()) == ["a", "b", "log_sigma"]
    assert "posterior_predictive" not in groups_of(fit.to_arviz())


def test_no_log_likelihood_of_private_rows_is_given_to_arviz():
    with pytest.raises(DpmcError, match="`log_likelihood` must be left out: LOO and WAIC would"):
        made().to_arviz(log_likelihood=True)
    assert "log_likelihood" not in groups_of(made().to_arviz())


def test_a_summary_says_what_was_accepted_and_clipped():
    """From counts of chains, or from the plan of draws that have none."""
    fit = made(diagnostics={"ratio_clipped": Diagnostic(0.125, 0.02)})
    text = str(fit.summary())
    assert "Share of moves accepted: 1." in text
    assert "Share of rows with ratio clipped: 0.125 (standard error 0.02" in text
    drawn = made(totals={}, plan=Plan(statement="Privacy displaces.", acceptance=0.9375))
    facts = drawn.summary().facts
    assert facts[1:] == ("Privacy displaces.", "Share of proposals accepted: 0.938.")


def test_a_guarantee_that_is_none_is_saved_too(tmp_path):
    fit = made(guarantee=Guarantee(float("inf"), 0.0, outside=("all",)))
    fit.save(tmp_path / "fit.parquet")
    assert Fit.load(tmp_path / "fit.parquet").guarantee == fit.guarantee


def test_good_draws_are_not_remarked_on():
    assert list(remarks(made())) == []
    assert list(few(made().draws)) == []
    assert list(weak(PRIVATE, 1000)) == []


def test_summary_of_one_draw_has_no_spread():
    text = str(made(np.zeros((1, 2, 2))).summary())
    assert "nan" in text or "-" in text
