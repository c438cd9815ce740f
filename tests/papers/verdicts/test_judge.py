"""Verdicts: rules, their error rate, and the file of claims."""

from __future__ import annotations

import copy
import dataclasses
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from dpmc.types import DpmcError
from dpmc_papers.outputs._rules import raisa2021dphmc
from dpmc_papers.verdicts import bootstrap, claim_file, evidence, judge, verdict
from tests.support import synthetic

ROOT = Path(__file__).parents[3]
FILE = ROOT / "config/published/raisa2021dphmc.yaml"


@pytest.fixture(scope="module")
def context():
    config = yaml.safe_load((ROOT / "config/papers/raisa2021dphmc.yaml").read_text())
    return dataclasses.replace(synthetic.context(), config=config)


def one(entry, context, metrics=None, **settings):
    """Return the verdicts of a single entry."""
    base = {
        "paper": "raisa2021dphmc",
        "error_rate": 0.05,
        "printed_variants": ["as_published"],
        "resamples": 300,
        "seed": 1,
        "needs": {},
    }
    base |= settings
    values = {"id": "x", "where": "here", "output": "none", "published": "text"} | entry
    rows = context.metrics if metrics is None else metrics
    return judge.verdicts({**base, "entries": [values]}, rows, pd.DataFrame(), context)


def ratio(**changes):
    rule = {
        "kind": "ratio",
        "metric": "mmd",
        "where": {"experiment": "comparison", "problem": "paper_banana_2d"},
        "numerators": [{"method": "dp_sgld"}],
        "denominators": [{"method": "dp_hmc"}],
        "by": ["epsilon"],
    }
    return rule | changes


def test_ratio_is_that_of_the_medians(context):
    rule = ratio(by=[], where={"epsilon": 8, "problem": "paper_banana_2d"})
    row = one({"rule": rule, "low": 1.3}, context).iloc[0]
    rows = context.metrics.query("epsilon == 8 and problem == 'paper_banana_2d'")
    medians = rows.groupby("label")["mmd"].median()
    assert row["ours"] == medians["dp_sgld-as_published"] / medians["dp_hmc"]
    assert row["verdict"] == "reproduced"
    assert 0 < row["ours_se"] < 0.5
    assert list(one({"rule": ratio(), "low": 1}, context).columns) == list(verdict.COLUMNS)


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [
        ({"low": 1.3}, "reproduced"),
        ({"low": 1.0, "high": 4.0}, "reproduced"),
        ({"high": 1.0}, "contradicted"),
        ({"low": 5.0}, "contradicted"),
    ],
)
def test_verdict_follows_the_limits(limits, outcome, context):
    row = one({"rule": ratio(), **limits}, context).iloc[0]
    assert row["verdict"] == outcome
    held = 7 if outcome == "reproduced" else 0
    assert f"established at {held} of 7 settings" in row["reason"]


def test_an_ordering_that_is_turned_around_is_not_reproduced(context):
    swapped = context.metrics.copy()
    swapped["method"] = swapped["method"].map({"dp_sgld": "dp_hmc", "dp_hmc": "dp_sgld"})
    entry = {"rule": ratio(), "low": 1.3}
    assert one(entry, context).iloc[0]["verdict"] == "reproduced"
    assert one(entry, context, swapped).iloc[0]["verdict"] == "contradicted"


def test_one_failing_setting_is_named(context):
    broken = context.metrics.copy()
    bad = (broken["label"] == "dp_sgld-as_published") & (broken["epsilon"] == 10)
    broken.loc[bad, "mmd"] *= 0.1
    row = one({"rule": ratio(), "low": 1.3}, context, broken).iloc[0]
    assert row["verdict"] == "contradicted"
    assert "established at 6 of 7 settings, contradicted at 1; least margin" in row["reason"]
    assert "epsilon 10" in row["reason"]


def test_missing_runs_are_not_run(context):
    entry = {"rule": ratio(where={"experiment": "comparison", "epsilon": 99}), "low": 1}
    row = one(entry, context).iloc[0]
    assert row["verdict"] == "not run"
    assert "not in this run: DP-SGLD" in row["reason"]
    assert math.isnan(row["ours"])
    single = context.metrics[context.metrics["replicate"] == 0]
    row = one({"rule": ratio(), "high": 1}, context, single).iloc[0]
    assert row["verdict"] == "undecided"
    assert "from a single run" in row["reason"]


def test_a_run_that_was_cut_down_is_not_run(context):
    path = "experiments.comparison.replicates"
    entry = {"rule": ratio(), "low": 1}
    for wanted, outcome in ((10, "reproduced"), (11, "not run")):
        row = one(entry, context, needs={"comparison": {path: wanted}}).iloc[0]
        assert row["verdict"] == outcome
    assert row["reason"] == f"this run is cut down: {path} is 10, not 11"
    assert one(entry, context, needs={"clipping": {path: 11}}).iloc[0]["verdict"] == "reproduced"


def test_variants_are_judged_on_their_own_rows(context):
    changed = context.metrics.copy()
    changed.loc[changed["variant"] == "corrected", "mmd"] *= 0.01
    entry = {"rule": ratio(), "low": 1.3, "variants": ["as_published", "corrected", "unknown"]}
    verdicts = one(entry, context, changed).set_index("variant")["verdict"]
    assert dict(verdicts) == {
        "as_published": "reproduced",
        "corrected": "fails",
        "unknown": "not run",
    }


def test_bootstrap_standard_error_of_a_mean():
    """Error rate below 1e-6: the bootstrap with 4,000 resamples errs by about 1 %."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"replicate": range(40), "mmd": rng.normal(size=40)})
    copies = bootstrap.resample([table], "mmd", "mean", rng, 4000)[0]
    entry = bootstrap.measured("s", copies, table)
    assert entry.estimate == table["mmd"].mean()
    assert entry.se == pytest.approx(table["mmd"].std(ddof=1) / math.sqrt(40), rel=0.08)


def test_replicates_are_resampled_together():
    rng = np.random.default_rng(2)
    values = rng.normal(size=30)
    tables = [pd.DataFrame({"replicate": range(30), "mmd": values + k}) for k in range(2)]
    low, high = bootstrap.resample(tables, "mmd", "median", rng, 100)
    np.testing.assert_allclose(high - low, 1)
    shuffled = tables[1].sample(frac=1, random_state=0)
    low, high = bootstrap.resample([tables[0], shuffled], "mmd", "median", rng, 100)
    np.testing.assert_allclose(high - low, 1)


@pytest.mark.parametrize("name", ["median", "mean", "max", "sd"])
def test_statistics_leave_out_missing_runs(name):
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"replicate": [0, 0, 1, 2, 3], "mmd": rng.normal(size=5)})
    table.loc[3, "mmd"] = math.nan
    first = bootstrap.resample([table], "mmd", name, rng, 10)[0][0]
    expected = {"median": "median", "mean": "mean", "max": "max", "sd": "std"}[name]
    assert first == pytest.approx(getattr(table["mmd"], expected)())


def test_of_median_run_takes_the_rank_of_figure_2():
    table = pd.DataFrame({"replicate": range(4), "mmd": [0.3, 0.1, 0.4, 0.2], "tail": [3, 1, 4, 2]})
    rng = np.random.default_rng(4)
    assert bootstrap.resample([table], "tail", "of_median_run", rng, 5)[0][0] == 3


def test_a_count_is_exact(context):
    rule = {"kind": "count", "metric": "clip_bound", "between": [1, 5],
            "where": {"experiment": "clipping", "problem": "paper_gauss_10d"}}  # fmt: skip
    row = one({"rule": rule, "high": 0}, context).iloc[0]
    assert (row["verdict"], row["ours"], row["ours_se"]) == ("reproduced", 0, 0)
    row = one({"rule": {**rule, "between": [0.5, 5]}, "high": 0}, context).iloc[0]
    assert (row["verdict"], row["ours"]) == ("contradicted", 20)


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_run_without_a_finite_value_is_beyond_a_number(context, value):
    rows = context.metrics.copy()
    of_one = (rows["experiment"] == "clipping") & (rows["problem"] == "paper_gauss_10d")
    rows.loc[of_one, "rhat"] = 1.01
    rule = {"kind": "beyond", "metric": "rhat", "above": 1.05,
            "where": {"experiment": "clipping", "problem": "paper_gauss_10d"}}  # fmt: skip
    row = one({"rule": rule, "high": 0}, context, rows).iloc[0]
    assert (row["verdict"], row["ours"]) == ("reproduced", 0)
    rows.loc[rows.index[of_one][0], "rhat"] = value
    row = one({"rule": rule, "high": 0}, context, rows).iloc[0]
    assert (row["verdict"], row["ours"]) == ("contradicted", 1)
    rows.loc[of_one, "rhat"] = math.nan
    assert one({"rule": rule, "high": 0}, context, rows).iloc[0]["verdict"] == "not run"


def test_regret_compares_the_worst_problem(context):
    rule = {"kind": "regret", "metric": "mmd", "where": {"experiment": "comparison"},
            "method": "dp_hmc", "others": ["dp_sgld"], "by": ["epsilon"]}  # fmt: skip
    rows = raisa2021dphmc.regret(
        rule, evidence.Evidence(context.metrics, {}, np.random.default_rng(0), 50), "as_published"
    )
    medians = (
        context.metrics.query("epsilon == 2 and variant == 'as_published'")
        .groupby(["problem", "method"])["mmd"]
        .median()
    )
    hmc = [
        medians[p, "dp_hmc"] / min(medians[p, m] for m in ("dp_hmc", "dp_sgld"))
        for p in synthetic.PROBLEMS
    ]
    sgld = [
        medians[p, "dp_sgld"] / min(medians[p, m] for m in ("dp_hmc", "dp_sgld"))
        for p in synthetic.PROBLEMS
    ]
    assert rows[0].estimate == pytest.approx(max(hmc) / max(sgld))


def test_every_claim_of_the_paper_is_judged(context):
    claimed = claim_file.load(FILE)
    table = judge.verdicts(
        {**claimed, "resamples": 100}, context.metrics, context.baselines, context
    )
    assert not table.duplicated(["id", "variant"]).any()
    assert len(table) == sum(len(e.get("variants", [1])) for e in claimed["entries"])
    assert set(table["verdict"]) | {"fails"} == set(verdict.VERDICTS) - {"beside print"}
    assert set(table.loc[table["variant"] != "as_published", "verdict"]) <= {
        "holds",
        "fails",
        "undecided",
        "not run",
    }
    assert table["reason"].str.len().min() > 0
    lacking = set(table.loc[table["verdict"] == "not run", "id"])
    # Only what the invented runs do not hold.
    absent = {"P-4.1-starts", "P-5-minibatch", "P-5-minibatch-results", "P-5-more-rows"}
    assert absent <= lacking
    assert all(
        name in absent or name.endswith("-draws") or "consistent" in name for name in lacking
    )


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda v: v["entries"][0].update(limit=3), "a key must be one of .* got 'limit'"),
        (lambda v: v["entries"][0].pop("where"), "`where` is missing"),
        (
            lambda v: v["entries"][0]["rule"].update(kind="magic"),
            "must be one of beyond, count, .* got 'magic'",
        ),
        (
            lambda v: v["entries"][0].pop("low") and v["entries"][0].pop("high"),
            "`low` or `high` is missing",
        ),
        (lambda v: v["entries"].append(v["entries"][0]), "given twice"),
        (lambda v: v.pop("error_rate"), "`error_rate` is missing"),
        (lambda v: v.update(shares=1), "a key must be one of .* got 'shares'"),
        (lambda v: v["entries"][0].pop("output"), "`output` is missing"),
        (
            lambda v: v["entries"][0].update(output=None),
            "`output` must be a figure or table, .* got None",
        ),
        (lambda v: v["entries"][0].update(output=["none"]), "must list figures and tables alone"),
    ],
)
def test_bad_files_are_refused(change, match, tmp_path):
    values = copy.deepcopy(claim_file.load(FILE))
    change(values)
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump(values))
    with pytest.raises(DpmcError, match=match):
        claim_file.load(path)
