"""Tables and captions of Räisä 2021, from invented runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from dpmc_papers.outputs import _guarantees
from dpmc_papers.outputs import raisa2021thesis as outputs
from dpmc_papers.outputs._facts import Facts
from dpmc_papers.site import captions
from tests.support import synthetic_thesis as synthetic
from tests.support.synthetic_thesis import COMPARISONS

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def text():
    return synthetic.context("text", replicates=4)


@pytest.fixture(scope="module")
def clipping():
    return synthetic.context("clipping", replicates=2)


def test_table5_1_is_that_of_the_thesis(text):
    table = outputs.table5_1(text).set_index("problem")
    assert list(table.index) == list(synthetic.MODELS)
    assert table.loc["tempered_banana_10d", ["dim", "n", "n0"]].tolist() == [10, 200000, 1000]
    assert np.isnan(table.loc["flat_banana_2d", "n0"])
    assert table["dim"].tolist() == [2, 10, 2, 10, 30, 2, 2, 2]
    assert table["start_deviation"].tolist() == [0.02] * 6 + [0.005, 0.1]
    assert table["a"].tolist() == [20, 20, 20, 20, 0, 350, 0, 1e-5]
    assert table["prior_variance"].tolist()[:7] == [1000] * 6 + [100]
    assert np.isnan(table.loc["circle", "prior_variance"])
    assert table.loc["gauss_30d", "row_variances"] == "20 2.5 1 (to the end)"
    assert table.loc["corr_gauss_2d", "row_variances"] == "1 0.999; 0.999 1"
    assert (table["delta"] * table["n"]).to_numpy() == pytest.approx(0.1)


def test_tables_tell_algorithms_of_one_method_apart(text, clipping):
    budget = outputs.budget_table(text)
    assert not budget.duplicated(["problem", "label", "epsilon"]).any()
    shown_names = Facts(text.config, _guarantees.summary(text.metrics)).named(budget)
    assert not shown_names.duplicated(["problem", "method", "epsilon"]).any()
    assert {"DP-penalty", "DP-penalty OCU+GWMH", "DP-Barker, PLD accounting"} < set(
        shown_names["method"]
    )
    compared = outputs.comparison_table(text).set_index(["problem", "label", "epsilon"])
    runs = text.metrics.query("problem == 'circle' and label == 'dp_hmc' and epsilon == 1")
    median = compared.loc[("circle", "dp_hmc", 1), "mean_norm_median"]
    assert median == runs["mean_norm"].median()
    assert set(outputs.clipping_table(clipping)["variant"]) == {"as_published", "corrected"}


CAPTIONS = {
    "text": ("table5_1", "figure6_1", *COMPARISONS, "thesis_budget", "thesis_comparison"),
    "final": COMPARISONS,
    "clipping": ("figure6_2", "figure6_2_published", "thesis_clipping"),
    "trajectory": ("figure4_1", "figure5_1"),
}


@pytest.mark.parametrize("experiment", CAPTIONS)
def test_captions_are_filled_in(experiment):
    context = synthetic.context(experiment, replicates=2, epsilons=(1, 4))
    names = CAPTIONS[experiment]
    entries = {key: {"metrics": [experiment]} for key in names}
    context = dataclasses.replace(context, config={**context.config, "outputs": entries})
    facts = Facts(context.config, _guarantees.summary(context.metrics))
    for name in names:
        text = (ROOT / f"workflow/report/{name}.rst").read_text()
        parts = captions.caption(name, text, facts)
        filled = "\n".join(parts)
        assert "{" not in filled, name
        private = name.startswith(("figure6_3", "figure6_4", "figure_", "thesis_budget"))
        assert ("Not covered by any guarantee" in filled) >= private, name
        version = {"text": "86b58be", "final": "f859f56"}.get(experiment, "")
        if name in ("figure6_3", "figure6_8"):
            assert version in filled
