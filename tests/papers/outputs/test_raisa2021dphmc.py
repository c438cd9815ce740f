"""Figures and tables, from invented runs."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib.figure import Figure

from dpmc import registry
from dpmc.types import DpmcError
from dpmc_papers.outputs import _guarantees, _tables
from dpmc_papers.outputs import raisa2021dphmc as outputs
from dpmc_papers.outputs._facts import Facts
from dpmc_papers.plots import drawn, style
from dpmc_papers.site import captions
from tests.support import synthetic
from tests.support.figures import shown

ROOT = Path(__file__).parents[3]
PAPERS = ("raisa2021dphmc", "raisa2021thesis", "alparslan2023thesis", "vinaroz2022dpsep")
FIGURES = ("figure1", "figure1_variants", "figure2", "figure3", "figure_claimed")


@pytest.fixture(scope="module")
def context():
    config = yaml.safe_load((ROOT / "config/papers/raisa2021dphmc.yaml").read_text())
    return dataclasses.replace(synthetic.context(), config=config)


def test_figure3_fills_the_page_when_all_or_no_runs_exceed_the_limits(context):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    for factor in (0.01, 100):
        metrics = context.metrics.assign(mmd=factor * context.metrics["mmd"])
        figure = outputs.figure3(dataclasses.replace(context, metrics=metrics))
        FigureCanvasAgg(figure).draw()
        for axis in figure.axes:
            box = axis.get_position()
            assert box.width > 0.35
            assert box.height > 0.25


@pytest.mark.parametrize("name", FIGURES)
def test_figures_draw_and_their_labels_do_not_overlap(name, context):
    shown(getattr(outputs, name)(context))


def test_figure1_shows_every_epsilon_and_only_published_runs(context):
    figure = outputs.figure1(context)
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == [
        "Banana: MMD", "Banana: Mean error", "Gaussian: MMD", "Gaussian: Mean error",
    ]  # fmt: skip
    for axis in figure.axes:
        ticks = [label.get_text() for label in axis.get_xticklabels()]
        assert ticks == [str(value) for value in synthetic.EPSILONS]
        assert len(axis.patches) == 4 * len(synthetic.EPSILONS) + 1  # the band of exact samples


def test_figure2_takes_the_best_median_and_worst_runs(context):
    rows = context.experiment("comparison")
    samples = outputs._ranked_samples(context, rows)["dp_hmc"]
    here = rows[(rows["problem"] == "paper_banana_2d") & (rows["label"] == "dp_hmc")]
    mmds = np.sort(here.loc[here["epsilon"] == 15, "mmd"])
    assert [samples[k][2] for k in ("best", "median", "worst")] == [mmds[0], mmds[5], mmds[9]]
    kept = {r: fit.kept().reshape(-1, 2) for r, fit in context.fits["paper_banana_2d", "dp_hmc"]}
    worst = int(here.loc[here["mmd"] == mmds[9], "replicate"].iloc[0])
    assert sorted(map(tuple, samples["worst"][0])) == sorted(map(tuple, kept[worst]))


def test_figure2_shows_all_of_every_marginal(context):
    figure = outputs.figure2(context)
    table = drawn.table(figure)
    for axis in figure.axes[:8]:
        lines = [line.get_ydata() for line in axis.lines]
        exact = axis.collections[0].get_paths()[0].vertices[:, 1]
        assert max(map(max, [*lines, exact])) < axis.get_ylim()[1]
    series = set(table.loc[table["y_label"] == "density of θ₁", "series"])
    assert series == {"exact sample", "best run", "median run", "worst run"}


def test_regions_of_figure2_enclose_the_stated_mass():
    """Error rate below 1e-4: shares of 40,000 points, sd 0.25 %, plus smoothing."""
    rng = np.random.default_rng(0)
    grid = np.linspace(-4, 4, 121)
    points, weights = rng.normal(size=(2000, 2)), np.ones(2000)
    axis = Figure().subplots()
    outputs._joint(axis, points, weights, points, (grid, grid), style.look("dp_hmc"))
    fresh = rng.normal(size=(40_000, 2))
    for drawing in axis.collections:
        for path, mass in zip(drawing.get_paths(), outputs.MASSES, strict=True):
            if drawing is axis.collections[1]:
                assert path.contains_points(fresh).mean() == pytest.approx(mass, abs=0.05)
    assert len(axis.collections) == 2


def test_budget_table_tells_the_real_guarantee(context):
    table = outputs.budget_table(context)
    row = table[(table["label"] == "dp_sgld-as_published") & (table["epsilon"] == 4)].iloc[0]
    assert row["guarantee_epsilon"] == 2
    assert row["total_iterations"] == 4 * row["num_iterations"]
    assert not table.duplicated(["problem", "label", "epsilon"]).any()
    assert list(table["problem"].unique())[:2] == ["paper_banana_2d", "paper_gauss_10d"]


def test_tables_hold_the_quartiles(context):
    table = outputs.comparison_table(context)
    chosen = (table["problem"] == "paper_gauss_10d") & (table["label"] == "dp_hmc")
    row = table[chosen & (table["epsilon"] == 8)].iloc[0]
    runs = context.metrics.query(
        "experiment == 'comparison' and problem == 'paper_gauss_10d' and label == 'dp_hmc' "
        "and epsilon == 8"
    )["mmd"]
    assert row["mmd_median"] == np.median(runs)
    assert row["mmd_q3"] == np.quantile(runs, 0.75)
    assert row["runs"] == 10
    clipping = outputs.clipping_table(context)
    assert (clipping["guarantee_epsilon"] == math.inf).all()
    assert set(outputs.dimension_table(context)["dim"]) == {5, 10, 20}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_output_of_the_configuration_exists(paper):
    config = yaml.safe_load((ROOT / f"config/papers/{paper}.yaml").read_text())
    module = registry.load("output", paper)
    for name, entry in config["outputs"].items():
        assert callable(getattr(module, entry["function"])), name
        assert (ROOT / "workflow/report" / entry["caption"]).is_file()


def test_guarantees_are_the_largest_of_each_row(context):
    table = _guarantees.summary(context.metrics)
    keys = _guarantees.KEYS
    assert not table.duplicated(keys).any()
    runs = context.metrics.groupby(keys, dropna=False)["guarantee_epsilon"].max()
    assert len(table) == len(runs)
    chosen = table[(table["label"] == "dp_sgld-as_published") & (table["epsilon"] == 4)]
    assert set(chosen["guarantee_epsilon"]) == {2}
    assert set(chosen["guarantee_neighbours"]) == {"replace"}
    clipping = table[table["experiment"] == "clipping"]
    assert np.isinf(clipping["guarantee_epsilon"]).all()
    assert set(clipping["guarantee_neighbours"]) == {""}
    assert table["runs"].max() == context.metrics["replicate"].nunique()


def test_one_run_without_noise_leaves_no_guarantee(context):
    metrics = context.metrics[context.metrics["label"] == "dp_hmc"].copy()
    assert np.isfinite(_guarantees.summary(metrics)["guarantee_epsilon"]).any()
    first = metrics["replicate"] == metrics["replicate"].min()
    metrics.loc[first, "guarantee_epsilon"] = np.inf
    assert np.isinf(_guarantees.summary(metrics)["guarantee_epsilon"]).all()


def test_guarantees_are_read_as_they_were_written(context, tmp_path):
    table = _guarantees.summary(context.metrics)
    _tables.write(table, tmp_path / "a.csv")
    back = _guarantees.read(tmp_path / "a.csv")
    pd.testing.assert_frame_equal(back, table, check_dtype=False, rtol=1e-5)
    (tmp_path / "b.csv").write_text("problem\nbanana\n")
    with pytest.raises(DpmcError, match=r"b.csv: columns must be experiment, .*, got problem"):
        _guarantees.read(tmp_path / "b.csv")


@pytest.mark.parametrize("paper", PAPERS)
def test_every_caption_of_the_repository_can_be_filled_in(paper):
    config = yaml.safe_load((ROOT / f"config/papers/{paper}.yaml").read_text())
    table = _guarantees.read(ROOT / f"results/published/{paper}/guarantees.csv")
    facts = Facts({"studies": {}, "experiments": {}, **config}, table)
    for name, output in config["outputs"].items():
        text = (ROOT / "workflow/report" / output["caption"]).read_text(encoding="utf-8")
        assert captions.caption(name, text, facts)
