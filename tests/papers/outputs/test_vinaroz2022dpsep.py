"""Tables and figures of the DP-SEP paper, from invented runs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import yaml

from dpmc.types import UNAVAILABLE
from dpmc_papers.config import problems
from dpmc_papers.config.setups import ProblemSetup
from dpmc_papers.outputs import vinaroz2022dpsep as outputs
from dpmc_papers.pipeline.results import Context
from dpmc_papers.studies import _tables, mixture, networks, perturbation
from dpmc_papers.verdicts import claim_file
from tests.support.figures import crossed, shown

ROOT = Path(__file__).parents[3]
LABELS = {"ep": 0.2, "sep": 0.3, "clipped_sep": 0.25, "dp_sep": 0.6}


@pytest.fixture(scope="module")
def config():
    return yaml.safe_load((ROOT / "config/papers/vinaroz2022dpsep.yaml").read_text())


def table(rows, columns):
    return _tables.typed(({"status": "complete", **row} for row in rows), columns)


@pytest.fixture(scope="module")
def mixtures(config):
    """Return two runs of every panel, each posterior at the origin with another variance."""
    rows = []
    cases = [("ep", "as_published", math.nan), ("sep", "as_published", math.nan)]
    cases += [("dp_sep", v, e) for v in ("as_published", "dp_valid") for e in (50.0, 5.0, 1.0)]
    for k, (method, variant, epsilon) in enumerate(cases):
        for replicate in range(2):
            held = {"as_published": 12.7, "dp_valid": epsilon}[variant]
            held = held if method == "dp_sep" else math.inf
            covariances = [((k + 1) * np.eye(4)).tolist()] * 4
            rows.append(
                {
                    "experiment": "mixture",
                    "problem": "mixture",
                    "label": f"{method}-{variant}",
                    "method": method,
                    "variant": variant,
                    "epsilon": epsilon,
                    "replicate": replicate,
                    "f_published": k + replicate,
                    "guarantee_epsilon": held,
                    "posterior": json.dumps(
                        {"means": np.zeros((4, 4)).tolist(), "covariances": covariances}
                    ),
                }
            )
    spec = ProblemSetup.read("mixture", config["problems"]["mixture"])
    data = {"mixture": problems.make_data(spec, 0)}
    return Context(config, table(rows, mixture.COLUMNS), datasets=data)


def test_rings_hold_98_per_cent_of_the_posterior(mixtures):
    axes = shown(outputs.figure1(mixtures))
    assert len(axes) == 9
    assert [len(axis.patches) for axis in axes] == [0] + [4] * 8
    ring = axes[2].patches[0]  # SEP: variance 2
    assert ring.width == pytest.approx(2 * math.sqrt(2) * 2.797, rel=1e-3)
    rng = np.random.default_rng(0)
    inside = np.sum(rng.standard_normal((100_000, 2)) ** 2, axis=1) <= outputs.RADIUS**2
    # Five standard errors of 98 % are 0.0022.
    assert inside.mean() == pytest.approx(0.98, abs=0.0022)


def test_table1_has_means_of_runs_and_what_they_spent(mixtures):
    found = outputs.table1(mixtures)
    assert len(found) == 8
    assert found["f_published"].tolist() == [k + 0.5 for k in range(8)]
    assert found["runs"].eq(2).all()
    assert found["epsilon_really"].tolist() == [math.inf, math.inf, *[12.7] * 3, 50, 5, 1]


@pytest.fixture(scope="module")
def nets(config):
    rows = []
    for cell in crossed(
        suffix=("", "_public"), problem=("power", "wine", "year"), label=LABELS, replicate=range(3)
    ):
        suffix, problem, label = cell.pop("suffix"), cell["problem"], cell["label"]
        gone, level = problem == "year", LABELS[label]
        rows.append({
            **cell, "experiment": f"networks{suffix}", "problem": problem + suffix,
            "label": f"{label}-as_published", "method": label, "variant": "as_published",
            "epsilon": 1.0 if label == "dp_sep" else math.nan,
            "table_rows": 0 if gone else 1000, "num_rows": 0 if gone else 900,
            "num_inputs": 4, "hidden": 50,
            "rmse": math.nan if gone else 10 * level + cell["replicate"] - 1,
            "loglik": math.nan if gone else -level, "rmse_of_mean": 10.0,
            "guarantee_epsilon": math.inf,
            "status": f"{UNAVAILABLE}: no file" if gone else "complete",
        })  # fmt: skip
    return Context(config, table(rows, networks.COLUMNS))


def test_tables_of_networks_have_means_deviations_and_no_numbers_without_data(nets):
    found = outputs.table2(nets)
    row = found[(found["problem"] == "wine") & (found["method"] == "dp_sep")].iloc[0]
    assert row["rmse"] == pytest.approx(6)
    assert row["sd"] == pytest.approx(1)
    assert row["se"] == pytest.approx(1 / math.sqrt(3))
    assert row["rmse_of_centre"] == pytest.approx(nets.metrics["rmse_of_mean"].dropna().iloc[0])
    assert row["epsilon_really"] == math.inf
    gone = found[found["problem"] == "year"]
    assert gone["status"].eq(UNAVAILABLE).all()
    assert gone["rmse"].isna().all()
    assert outputs.table3(nets)["loglik"].dropna().between(-1, 0).all()


def test_networks_are_drawn_relative_to_the_centre(nets):
    figure = outputs.figure_networks(nets)
    axes = shown(figure)
    assert [axis.get_title() for axis in axes] == ["power", "wine"]
    names = [text.get_text() for text in axes[0].get_yticklabels()]
    assert len(names) == 2 * len(LABELS)
    assert any("really ∞" in name for name in names)
    assert any("public ranges" in name for name in names)
    places = sorted(
        float(line.get_xdata()[0])
        for line in axes[0].lines
        if line.get_marker() == "o" and line.get_label() != "printed"
    )
    assert places == pytest.approx(sorted([*LABELS.values(), *LABELS.values()]))
    gone = nets.metrics[nets.metrics["problem"].str.startswith("year")]
    note = outputs.figure_networks(Context(nets.config, gone))
    assert any("not available" in text.get_text() for axis in note.axes for text in axis.texts)


def test_slopes_join_printed_numbers_with_ours(nets):
    claims = claim_file.load(ROOT / "config/published/vinaroz2022dpsep.yaml")
    figure = outputs.figure_slopes(Context(nets.config, nets.metrics, published=claims))
    axes = shown(figure)
    power = next(axis for axis in axes if axis.get_title() == "Table 2: power")
    ends = [list(line.get_ydata()) for line in power.lines]
    assert any(values[0] == 4.032 for values in ends)  # DP-SEP as printed
    assert not any("year" in axis.get_title() for axis in axes)
    assert figure.get_supxlabel() == "Data not available: year"


def test_a_bound_below_the_truth_is_ringed(config):
    rows = [
        {
            "method": "moments", "dim": 2, "noise_sd": 0.3, "threshold": a, "probability": 0.1,
            "published_bound": 1 / a, "corrected_bound": 2 / a, "simulated_bound": 1.5 / a,
        }
        for a in (1.0, 100.0)
    ]  # fmt: skip
    (axis,) = shown(outputs.figure_bound(Context(config, table(rows, perturbation.COLUMNS))))
    rings = [line for line in axis.lines if line.get_markersize() == 7]
    assert [list(line.get_xdata()) for line in rings] == [[100.0]]


def test_bounds_are_drawn_with_the_truth_below(config):
    rows = []
    for cell in crossed(
        method=("moments", "natural"), dim=(2, 3), noise_sd=(0.02, 0.08), threshold=(0.1, 1.0)
    ):
        a, bounded = cell["threshold"], cell["method"] == "moments"
        names = {"published_bound": 1, "corrected_bound": 2, "simulated_bound": 1.5}
        bounds = {name: x / a if bounded else math.nan for name, x in names.items()}
        rows.append({**cell, "probability": 0.01 / a, **bounds})
    axes = shown(outputs.figure_bound(Context(config, table(rows, perturbation.COLUMNS))))
    assert len(axes) == 4
    curves = {line.get_label(): list(line.get_ydata()) for line in axes[0].lines}
    assert curves["published bound"] == [10, 1]
    assert curves["truth (simulated)"] == pytest.approx([0.1, 0.01])
