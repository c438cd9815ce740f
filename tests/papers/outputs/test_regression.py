"""Tables and figures of Alparslan 2023, from invented runs whose means are known."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy import stats

from dpmc.types import UNAVAILABLE
from dpmc_papers.outputs import alparslan2023thesis as outputs
from dpmc_papers.outputs._regression import METHODS, PROFILES
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import style
from dpmc_papers.studies import _tables, regression, regression_convergence
from dpmc_papers.verdicts import claim_file
from tests.support.figures import crossed, shown

ROOT = Path(__file__).parents[3]
NODES = (1, 5, 10)
PROBLEMS = ("power_plant", "bike_sharing", "road_3d")
MULTIPLIER = {"authors": 2.3, "final": 2.4, "thesis": 1.0, "correct": 0.9}
CELLS = [(p, m) for p in PROFILES for m in METHODS if (p, m) != ("final", "adassp")]


@pytest.fixture(scope="module")
def config():
    return yaml.safe_load((ROOT / "config/papers/alparslan2023thesis.yaml").read_text())


def table(rows, columns):
    return _tables.typed(({"status": "complete", **row} for row in rows), columns)


def level(problem, method, variant, nodes):
    """Return the test error that runs scatter around, another one in every cell."""
    place = METHODS.index(method) + 10 * PROFILES.index(variant) + 100 * PROBLEMS.index(problem)
    return 0.01 * (1 + place) * nodes**0.3


@pytest.fixture(scope="module")
def real(config):
    rows = []
    for here in crossed(problem=PROBLEMS, num_nodes=NODES):
        gone = here["problem"] == "road_3d"
        here |= {"epsilon": 1.0, "delta": 1e-4}
        here |= {"status": f"{UNAVAILABLE}: no file"} if gone else {}
        ols = {"method": "ols", "variant": "correct", "mse": 0.005, "epsilon_replace": np.inf}
        rows.append({**here, **ols})
        for (variant, method), replicate in itertools.product(CELLS, range(5)):
            nodes, factor = here["num_nodes"], 1 + 0.1 * replicate
            mse = level(here["problem"], method, variant, nodes) * factor
            rows.append({
                **here, "method": method, "variant": variant, "replicate": replicate,
                "label": f"{method}-{variant}",
                "mse": math.nan if gone else mse,
                "rhat": 1 + 0.01 * nodes + 0.001 * replicate, "iac": 2.0 * nodes + replicate,
                "epsilon_replace": MULTIPLIER[variant],
                "epsilon_add_remove": MULTIPLIER[variant] / 2,
            })  # fmt: skip
    return Context(config, table(rows, regression.COLUMNS))


def test_a_cell_is_the_mean_of_its_runs_and_of_no_others(real):
    found = outputs.table7_1(real)
    assert found["problem"].unique().tolist() == list(PROBLEMS)  # the order of the document
    assert len(found) == len(PROBLEMS) * len(NODES) * len(PROFILES)
    assert found["profile"].tolist()[:4] == ["authors", "final", "thesis", "correct"]
    for row in found[found["problem"] != "road_3d"].to_dict("records"):
        for method in METHODS:
            expected = 1.2 * level(row["problem"], method, row["profile"], row["num_nodes"])
            if (row["profile"], method) not in CELLS:
                expected = math.nan
            assert row[method] == pytest.approx(expected, nan_ok=True)
        assert row["ols"] == 0.005
        assert row["status"] == "complete"


def test_intervals_are_those_of_student(real):
    found = outputs.table7_2(real)
    runs = level("bike_sharing", "adassp", "thesis", 5) * (1 + 0.1 * np.arange(5))
    low, high = stats.t.interval(0.9, 4, loc=runs.mean(), scale=stats.sem(runs))
    row = found[
        (found["problem"] == "bike_sharing")
        & (found["profile"] == "thesis")
        & (found["num_nodes"] == 5)
    ]
    assert row["adassp_lower"].item() == pytest.approx(low)
    assert row["adassp_upper"].item() == pytest.approx(high)


def test_a_problem_without_data_says_so_and_has_no_numbers(real):
    for function in (outputs.table7_1, outputs.table7_2):
        found = function(real)
        rows = found[found["problem"] == "road_3d"]
        assert (rows["status"] == UNAVAILABLE).all()
        numbers = [name for name in found if name.startswith(METHODS)]
        assert len(numbers) >= len(METHODS)
        assert rows[numbers].isna().all(axis=None)


def test_runs_that_stopped_are_counted(real):
    metrics = real.metrics.copy()
    chosen = (metrics["problem"] == "power_plant") & (metrics["num_nodes"] == 5)
    chosen &= (metrics["method"] == "mcmc_bs") & (metrics["variant"] == "correct")
    metrics.loc[chosen & (metrics["replicate"] < 2), "status"] = "stopped: overflow"
    found = outputs.table7_1(Context(real.config, metrics))
    # Least squares, one run, stands under the profile `correct`.
    broken = found[found["status"] == "2 of 26 runs stopped"]
    assert broken[["problem", "num_nodes", "profile"]].to_numpy().tolist() == [
        ["power_plant", 5, "correct"]
    ]


def test_profiles_show_what_was_asked_for_beside_what_holds(real):
    found = outputs.table_profiles(real)
    assert len(found) == len(PROBLEMS) * len(CELLS)
    for row in found.to_dict("records"):
        assert row["epsilon"] == 1
        assert row["epsilon_replace"] == MULTIPLIER[row["variant"]]
        assert row["epsilon_add_remove"] == MULTIPLIER[row["variant"]] / 2
        assert [row[f"rhat_J{n}"] for n in NODES] == pytest.approx([1.014, 1.054, 1.104])
        assert [row[f"iac_J{n}"] for n in NODES] == [2 * n + 4 for n in NODES]


def test_profiles_are_drawn_where_data_are(real):
    axes = shown(outputs.figure_profiles(real))
    assert len(axes) == 2 * len(NODES)
    marked = [line for line in axes[0].lines if line.get_marker() != "None"]
    points = [float(line.get_xdata()[0]) for line in marked if line.get_label() != "printed"]
    expected = [1.2 * level("power_plant", m, p, 1) for p, m in CELLS]
    assert sorted(points) == pytest.approx(sorted(expected))
    gone = real.metrics[real.metrics["problem"] == "road_3d"]
    figure = outputs.figure_profiles(Context(real.config, gone))
    assert any("not available" in text.get_text() for text in figure.texts) or any(
        "not available" in text.get_text() for axis in figure.axes for text in axis.texts
    )


@pytest.fixture(scope="module")
def simulated(config):
    """Return five runs of every cell with errors 1, 2, 4, 8 and 16 times a base."""
    rows = []
    for cell in crossed(
        dim=(2, 5), num_nodes=NODES, epsilon=(0.1, 1.0, 10.0), method=METHODS, replicate=range(5)
    ):
        base = cell["dim"] * cell["num_nodes"] / cell["epsilon"] * 2 ** cell["replicate"]
        rows.append({
            **cell, "problem": f"simulated_{cell['dim']}d", "prediction": base,
            "prediction_over_draws": 3 * base, "estimation": base / 7, "mmd_squared": base / 100,
            "mmd_squared_median": base / 200, "mmd_squared_printed": base / 300,
        })  # fmt: skip
    return Context(config, table(rows, regression.COLUMNS))


def curves(axis):
    """Return the vertical values of every line that has one point per epsilon."""
    return [np.asarray(line.get_ydata()) for line in axis.lines if len(line.get_ydata()) == 3]


@pytest.fixture(scope="module")
def claims():
    return claim_file.load(ROOT / "config/published/alparslan2023thesis.yaml")


def test_slopes_join_printed_numbers_with_ours(real, claims):
    figure = outputs.figure_slopes(dataclasses.replace(real, published=claims))
    axes = shown(figure)
    assert len(axes) == 2 * len(NODES)  # none for data that could not be had
    assert figure.get_supxlabel() == "Data not available: 3D road"
    look = style.look("mcmc_normal_x")
    found = next(k.get_ydata() for k in axes[0].lines if k.get_marker() == look.marker)
    printed = 0.0129  # Table 7.1, power plant, one node
    ours = [1.2 * level("power_plant", "mcmc_normal_x", p, 1) for p in ("authors", "correct")]
    assert list(found) == pytest.approx([printed, *ours])
    words = [text.get_text() for text in axes[0].get_xticklabels()]
    assert words == ["printed\nε 1", "rerun\nε 2.3", "valid\nε 0.9"]


def test_one_data_set_is_drawn_by_means_and_the_loss_of_the_public_code(simulated):
    axes = shown(outputs.figure7_1(simulated))
    assert len(axes) == 4 * len(NODES)
    means = np.array([10.0, 1.0, 0.1]) * 2 * 6.2  # d = 2, J = 1
    found = curves(axes[0])
    assert len(found) == len(METHODS)
    chains = [values for values in found if values == pytest.approx(3 * means)]
    points = [values for values in found if values == pytest.approx(means)]
    assert (len(chains), len(points)) == (3, 2)
    assert all(values == pytest.approx(means / 7) for values in curves(axes[len(NODES)]))


def test_several_data_sets_are_drawn_by_medians_and_quartiles_of_runs(simulated):
    axes = shown(outputs.figure7_1_draws(simulated))
    # Errors relative to one method on the same data sets, which are all equal here.
    marks = [line for line in axes[0].lines if line.get_marker() not in ("None", "")]
    assert len(marks) == len(METHODS) - 1
    for place, line in enumerate(marks):
        assert line.get_ydata() == pytest.approx([1, 1, 1])
        # Side by side at a grid point, and none nearer to another.
        assert np.round(line.get_xdata()).tolist() == [0, 1, 2]
        assert place == 0 or (line.get_xdata() > marks[place - 1].get_xdata()).all()
    rows = simulated.metrics.copy()
    rows.loc[rows["method"] == "adassp", "prediction"] *= 3
    axes = shown(outputs.figure7_1_draws(dataclasses.replace(simulated, metrics=rows)))
    heights = [line.get_ydata().tolist() for line in axes[0].lines if len(line.get_xdata()) == 3]
    assert sorted(heights)[-1] == pytest.approx([3, 3, 3])


@pytest.mark.parametrize(("name", "centre"), [("figure7_3", 6.2), ("figure7_3_draws", 4.0)])
def test_discrepancies_are_drawn_in_two_dimensions_for_each_kernel(simulated, name, centre):
    axes = shown(getattr(outputs, name)(simulated))
    assert len(axes) == 3 * len(NODES)
    expected = np.array([10.0, 1.0, 0.1]) * 2 * centre
    for place, scale in ((0, 100), (3, 200), (6, 300)):
        found = curves(axes[place])
        assert len(found) == len(METHODS) - 1  # adaSSP has no posterior
        assert all(values == pytest.approx(expected / scale) for values in found)


@pytest.fixture(scope="module")
def convergence(config):
    known = {
        "dim": 4, "epsilon": 1.0, "method": "mcmc_normal_x", "rhat_node": 1.05,
        "rhat_pooled": 1.0, "ess_bulk": 100.0, "separation": 8.0, "mse_pooled": 0.5,
        "mse_zero": 2.0, "status": "complete",
    }  # fmt: skip
    rows = [
        {
            **known,
            **cell,
            "rhat": (1 + cell["num_nodes"] if cell["variant"] == "authors" else 1)
            + 0.01 * cell["replicate"],
            "iac": 7.0 + cell["replicate"],
            "mse_node": 3.0 * cell["num_nodes"],
        }
        for cell in crossed(
            problem=PROBLEMS, num_nodes=NODES, variant=("authors", "correct"), replicate=range(3)
        )
    ]
    return Context(config, table(rows, regression_convergence.COLUMNS))


def test_convergence_is_drawn_and_tabled_by_medians(convergence):
    axes = shown(outputs.figure_convergence(convergence))
    assert len(axes) == 2 * len(PROBLEMS)
    found = sorted(values.tolist() for values in curves(axes[0]))
    assert [2.01, 6.01, 11.01] in [pytest.approx(values) for values in found]
    below = sorted(values.tolist() for values in curves(axes[len(PROBLEMS)]))
    assert below == [[0.25] * 3, [0.25] * 3, [1.5, 7.5, 15.0], [1.5, 7.5, 15.0]]
    found = outputs.table_convergence(convergence)
    assert len(found) == len(PROBLEMS) * len(NODES) * 2
    row = found[(found["num_nodes"] == 10) & (found["profile"] == "authors")].iloc[0]
    assert row["rhat"] == pytest.approx(11.01)
    assert row["mse_node"] == 30
    assert row["iac"] == 8
    assert row["status"] == "complete"
