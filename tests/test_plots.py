"""Pictures show what the values say: intervals, failures, shares and trade-off curves."""

from __future__ import annotations

import dataclasses
import io

import numpy as np
import pytest
from scipy.stats import norm

import dpmc
from dpmc import plots
from dpmc.comparison import Comparison
from dpmc.privacy import events
from dpmc.privacy.empirical import AuditResult
from dpmc.types import DpmcError, Guarantee, Plan

GUARANTEE = Guarantee(1.0, 1e-6)
PRIOR = {"mean": [0.0, 1.0], "precision": [[1.0, 0.0], [0.0, 4.0]]}


@pytest.fixture
def fit() -> dpmc.Fit:
    draws = np.random.default_rng(1).normal([0.5, 1.0], [0.2, 0.4], size=(2, 2000, 2))
    ledger = (("gaussian(2.0)", 1), ("gaussian(4.0)", 4))
    plan = Plan(widening=(2.0, 1.0), prior=PRIOR)
    return dpmc.Fit(draws, {}, {}, "complete", ledger, GUARANTEE, plan, names=("age", "dose"))


def by_label(axis) -> dict[str, np.ndarray]:
    return {line.get_label(): line.get_xydata() for line in axis.lines}


def test_a_marginal_has_its_interval_its_prior_and_the_width_without_noise(fit):
    figure = fit.plot()
    assert [axis.get_title() for axis in figure.axes] == ["age", "dose"]
    for k, axis in enumerate(figure.axes):
        draws = fit.draws[:, :, k].ravel()
        ends = [line.get_xdata() for line in axis.lines if line.get_linewidth() == 3]
        np.testing.assert_allclose(ends, [np.quantile(draws, [0.05, 0.95])])
        x, density = by_label(axis)["as wide as without privacy"].T
        expected = norm.pdf(x, draws.mean(), draws.std() / fit.plan.widening[k])
        np.testing.assert_allclose(density, expected)
        x, density = by_label(axis)["prior"].T
        sd = 1 / np.sqrt(PRIOR["precision"][k][k])
        np.testing.assert_allclose(density, norm.pdf(x, PRIOR["mean"][k], sd))
    assert [axis.get_title() for axis in fit.plot(["dose"]).axes] == ["dose"]
    with pytest.raises(DpmcError, match=r"^`components` must be among age, dose, got 'x'$"):
        fit.plot(["x"])


def test_dollars_in_a_name_are_no_formula(fit):
    draws = dataclasses.replace(fit, names=("income_$:tax_$", "dose"))
    draws.plot().savefig(io.BytesIO())


def test_a_marginal_of_equal_draws_and_one_without_a_prior_are_drawn(fit):
    same = dataclasses.replace(fit, draws=np.ones((1, 50, 2)), plan=Plan())
    figure = same.plot()
    assert len(figure.axes) == 2
    assert "prior" not in by_label(figure.axes[0])


def test_shares_of_a_budget_are_those_of_its_releases(fit):
    (axis,) = fit.plot_budget().axes
    widths = [bar.get_width() for bar in axis.patches]
    np.testing.assert_allclose(widths, [50, 50])
    named = Plan(stages=({"release": "a", "share": 0.25}, {"release": "b", "share": 0.75}))
    (axis,) = dataclasses.replace(fit, plan=named).plot_budget().axes
    assert [bar.get_width() for bar in axis.patches] == [25, 75]
    batches = ((events.text(events.sampled_gaussian(2.0, 10, 100)), 3),)
    for ledger, words in ((batches, "Gaussian noise on sums over all rows"), ((), "released")):
        with pytest.raises(DpmcError, match=words):
            dataclasses.replace(fit, ledger=ledger).plot_budget()


def test_a_fit_that_failed_is_hollow_and_its_r_hat_is_told(fit):
    apart = fit.draws + np.array([0.0, 5.0])[:, None, None]
    failed = dataclasses.replace(fit, draws=apart, remarks=("They disagree.",))
    figure = Comparison({"good": fit, "bad": failed}, GUARANTEE).plot()
    good, bad = (figure.axes[0].lines[k] for k in (1, 3))
    assert bad.get_markerfacecolor() == "white" != good.get_markerfacecolor()
    first, second = (text.get_text() for text in figure.axes[0].get_yticklabels())
    assert first == "good (ε = 1)"
    assert second.startswith("bad* (ε = 1, R-hat ")
    assert "hollow" in figure.get_suptitle()


def test_trade_off_curves_are_those_of_the_definitions():
    positives = np.linspace(0, 1, 11)
    np.testing.assert_allclose(plots.of_epsilon(0, 0)(positives), 1 - positives)
    half = plots.of_epsilon(np.log(3), 0.2)(positives)
    np.testing.assert_allclose(half, np.maximum.reduce(
        [0 * positives, 0.8 - 3 * positives, (0.8 - positives) / 3]
    ))  # fmt: skip
    np.testing.assert_allclose(
        plots.of_mu(1.5)(positives), norm.cdf(norm.ppf(1 - positives) - 1.5), atol=1e-12
    )


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ({"claim": 0.5}, ["found, epsilon >= 0.86", "claim, epsilon = 0.5"]),
        ({"claim": None}, ["found, epsilon >= 0.86"]),
        ({"mu_lower": 0.7, "claim_mu": 1.0}, ["found, mu >= 0.7", "claim, mu = 1"]),
    ],
)
def test_an_audit_is_drawn_beside_its_claim(given, labels):
    values = {"mu_lower": None, **given}
    result = AuditResult(0.86, values.pop("mu_lower"), 0.0, 0.95, "counts", "x", {}, **values)
    (axis,) = result.plot().axes
    assert [text.get_text() for text in axis.get_legend().get_texts()][:-1] == labels


def test_a_plan_is_drawn_over_budgets_and_rows():
    planned = dpmc.plan("linear", (400, 2), epsilon=1, delta=1e-6)
    figure = planned.plot(epsilon=[1, 2], num_rows=[400])
    labels = [(axis.get_xlabel(), len(axis.lines[0].get_xdata())) for axis in figure.axes]
    assert labels == 2 * [("epsilon", 2), ("rows", 1)]
    assert figure.axes[0].lines[0].get_ydata()[0] == pytest.approx(planned.error)
