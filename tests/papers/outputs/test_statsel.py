"""Figures and tables of statistic selection, from invented rows whose means are known."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from dpmc_papers.outputs import _statsel as parts
from dpmc_papers.outputs import _statsel_information
from dpmc_papers.outputs import alparslan2023thesis as outputs
from dpmc_papers.pipeline.results import Context
from dpmc_papers.studies import _tables
from tests.support.figures import crossed, shown

ROOT = Path(__file__).parents[3]

INFORMATION = {
    **_tables.COLUMNS,
    "statistic": "str",
    "theta": "float64",
    "num_rows": "int64",
    "bound": "float64",
    "information": "float64",
    "information_se": "float64",
    "published_formula": "float64",
    "num_outer": "float64",
    "num_inner": "float64",
}
POSTERIOR = {
    **_tables.COLUMNS,
    "statistic": "str",
    "theta": "float64",
    "estimate": "float64",
    "estimate_sd": "float64",
    "estimate_high": "float64",
    "squared_error": "float64",
    "reference_mean": "float64",
    "reference_sd": "float64",
    "reference_high": "float64",
    "reference_sd_error": "float64",
    "reference_squared_error": "float64",
    "acceptance_rate": "float64",
    "iac": "float64",
    "num_iterations": "int64",
    "num_particles": "int64",
}
AUTOCORRELATION = {
    **_tables.COLUMNS,
    "statistic": "str",
    "theta": "float64",
    "num_particles": "int64",
    "iac_sokal": "float64",
    "iac_geyer": "float64",
    "reliable": "bool",
    "acceptance_rate": "float64",
}
LAGS = {**_tables.COLUMNS, "statistic": "str", "theta": "float64", "lag": "float64",
        "autocorrelation": "float64"}  # fmt: skip
SELECTION = {
    **_tables.COLUMNS,
    "theta": "float64",
    "num_runs": "int64",
    "mse": "float64",
    "mse_se": "float64",
    "selected_counts": "str",
}


@pytest.fixture(scope="module")
def config():
    return yaml.safe_load((ROOT / "config/papers/alparslan2023thesis.yaml").read_text())


def table(rows, columns):
    kept = {name: kind for name, kind in columns.items() if kind != "bool"}
    found = _tables.typed(({"status": "complete", **row} for row in rows), kept)
    for name in set(columns) - set(kept):
        found[name] = [row[name] for row in rows]
    return found


def drawn(figure):
    axes = shown(figure)
    renderer = figure.canvas.get_renderer()
    for axis in axes:  # nothing is cut off at the edges of the page
        box = axis.get_tightbbox(renderer)
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.x1
    for legend in figure.legends:
        box = legend.get_window_extent(renderer)
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert not any(box.overlaps(axis.get_window_extent(renderer)) for axis in axes)
    return axes


def lines(axis, points):
    """Return the vertical values of every line with so many points."""
    return [np.asarray(line.get_ydata()) for line in axis.lines if len(line.get_ydata()) == points]


VARIANCE = {"problem": "normal_variance"}


def crossing_rows():
    """Return curves 8 and theta^3 for two statistics, which cross at 2, and without noise none."""
    labels = {1.0: "gaussian_clt-as_published", math.inf: "gaussian_clt-noiseless"}
    known = VARIANCE | {"experiment": "information_normal_variance", "method": "gaussian_clt"}

    def information(epsilon, theta, statistic):
        return 8.0 if statistic == "abs_1" else theta**3 if epsilon == 1 else 1000.0 + theta

    return [
        {**known, **cell, "label": labels[cell["epsilon"]], "information": information(**cell)}
        for cell in crossed(
            epsilon=tuple(labels), theta=np.linspace(0.5, 6, 12), statistic=("abs_1", "abs_2")
        )
    ]


def test_informations_are_drawn_with_the_place_where_another_statistic_leads(config):
    axes = drawn(outputs.figure4_2(Context(config, table(crossing_rows(), INFORMATION))))
    assert [axis.get_title() for axis in axes] == ["ε = 1", "no noise (ε = ∞)", "", ""]
    assert [axis.get_yscale() for axis in axes] == ["log", "log", "log", "log"]
    private, exact, share, _ = axes
    assert [max(values) for values in lines(share, 12)] == [1, 1]  # each leads somewhere
    assert min(lines(share, 12)[0]) == pytest.approx(8 / 6**3)
    assert [text.get_text() for text in private.texts] == ["2.00"]
    assert len(exact.texts) == 0  # one statistic leads everywhere
    found = sorted(values[0] for values in lines(private, 12))
    assert found == pytest.approx([0.125, 8])


def test_a_lead_changes_at_the_crossing_of_the_curves_that_lead():
    places = np.geomspace(0.1, 100, 40)
    curves = {"a": 10 / places, "b": np.full(40, 2.0), "c": places / 20, "d": np.full(40, 1.9)}
    rows = pd.DataFrame(
        [
            {"epsilon": x, "statistic": name, "information": values[k]}
            for name, values in curves.items()
            for k, x in enumerate(places)
        ]
    )
    found = parts.leads(rows, "epsilon")
    assert [(lead.before, lead.after) for lead in found] == [("a", "b"), ("b", "c")]
    assert [lead.place for lead in found] == pytest.approx([5, 40])


@pytest.fixture(scope="module")
def bits(config):
    levels = {"randomised_response": 3, "noisy_bits": 2, "noisy_mean": 5, "binomial_mean": 4.5}
    known = {"experiment": "information_bernoulli", "problem": "bernoulli", "statistic": "bit"}
    rows = []
    for cell in crossed(
        method=tuple(levels),
        variant=("corrected", "matched"),
        epsilon=(0.1, 1.0, 10.0),
        theta=(0.1, 0.3, 0.5),
    ):
        noisy, level = cell["method"].startswith("noisy"), levels[cell["method"]]
        right = cell["variant"] == "corrected"
        value = level * cell["epsilon"] * cell["theta"] * (1 if right else 7)
        if noisy or right:
            printed = level if noisy else math.nan
            rows.append({**known, **cell, "information": value, "published_formula": printed})
    return Context(config, table(rows, INFORMATION))


def test_bits_are_drawn_at_equal_numbers_and_at_matched_privacy(bits):
    axes = drawn(outputs.figure4_4(bits))
    assert len(axes) == 9
    # The chance of telling neighbours apart at equal error rates is that of Gaussians at mu.
    epsilons = np.array([0.1, 1, 10])
    mu = _statsel_information.matched_mu(pd.Series(epsilons))
    assert stats.norm.cdf(mu / 2) == pytest.approx(1 / (1 + np.exp(-epsilons)))
    assert axes[1].lines[0].get_xdata() == pytest.approx(epsilons)
    # Of two informations that are proportional to epsilon, at the same number and the same mu.
    _, number, privacy = axes[4].lines  # theta 0.3
    ratio = number.get_ydata()[0]
    assert number.get_ydata() == pytest.approx([ratio] * 3)
    inside = (mu >= 0.1) & (mu <= 10)
    assert privacy.get_ydata() == pytest.approx(ratio * (epsilons / mu)[inside])
    # The exact mixture; formulas as printed, of two releases, over theirs times epsilon theta: %.
    found = sorted(values.tolist() for values in lines(axes[8], 3))
    assert found == [pytest.approx([-10] * 3), *[pytest.approx([1900, 100, -80])] * 2]


EPSILONS = (0.5, 2.0, 5.0, 20.0)


def posterior_rows():
    """Return chains whose estimates are 0.1 posterior sd above the reference on average."""
    rows = []
    for name, epsilon in itertools.product(("abs_1", "abs_2"), EPSILONS):
        level = {"abs_1": 0.1, "abs_2": 0.4}[name] / epsilon
        base = VARIANCE | {
            "experiment": "posterior_gaussian", "variant": "as_published", "statistic": name,
            "epsilon": epsilon, "theta": 2.0, "guarantee_epsilon": epsilon,
            "guarantee_delta": 0.01 * epsilon, "guarantee_accountant": "gaussian",
            "point": f"eps={epsilon:g}", "reference_mean": 2.0, "reference_sd": 0.5,
            "reference_high": 4.0, "reference_sd_error": 0.01,
        }  # fmt: skip
        chain = {"acceptance_rate": 0.3, "iac": 8.0, "num_iterations": 1000}
        for method, factors in (("mh", (0.5, 1.0, 1.5)), ("quadrature", np.linspace(0.5, 1.5, 11))):
            named = {"method": method, "algorithm": method, "label": f"{method}-as_published"}
            for replicate, factor in enumerate(factors):
                exact = {"replicate": replicate, "reference_squared_error": level * factor}
                found = {
                    "estimate": 2.0 + 0.05 * (1 + 0.2 * (factor - 1)),
                    "squared_error": 1.1 * level * factor,
                    "estimate_sd": 0.4 * factor,
                    "estimate_high": 3.0 * factor,
                    **chain,
                }
                rows.append({**base, **named, **exact, **(found if method == "mh" else {})})
    return rows


def known_rows():
    known = VARIANCE | {"experiment": "information_gaussian", "method": "gaussian_clt"}
    return [
        {**known, **cell, "theta": 2.0, "information": value}
        for cell in crossed(epsilon=EPSILONS, statistic=("abs_1", "abs_2"))
        for value in [10.0 if cell["statistic"] == "abs_1" else cell["epsilon"]]
    ]


@pytest.fixture(scope="module")
def posterior(config):
    both = [table(posterior_rows(), POSTERIOR), table(known_rows(), INFORMATION)]
    return Context(config, pd.concat(both, ignore_index=True))


def test_errors_are_drawn_with_quadrature_and_the_crossing_of_informations(posterior):
    axes = drawn(outputs.figure6_1(posterior))
    errors, informations, gaps = axes
    assert errors.get_xscale() == informations.get_xscale() == "log"
    assert errors.get_yscale() == informations.get_yscale() == "log"
    levels = np.array([0.1, 0.4])[:, None] / np.array(EPSILONS)
    found = lines(errors, len(EPSILONS))
    for level in levels:
        # A band of quadrature, and the markers of chains, which stand at their epsilon.
        assert sum(values == pytest.approx(level) for values in found) == 1
        assert sum(values == pytest.approx(1.1 * level) for values in found) == 1
    assert len(errors.collections) == 2 * 2  # two bands, two sets of bars
    assert [text.get_text() for text in informations.texts] == ["10.0"]
    assert [text.get_text() for text in errors.texts] == ["10.0"]
    places = [line for line in errors.lines if line.get_marker() in "os"]
    assert all(line.get_xdata() == pytest.approx(EPSILONS) for line in places)
    assert all(v == pytest.approx(np.full(4, 0.1)) for v in lines(gaps, len(EPSILONS)))


def test_intervals_are_those_of_student_and_stay_positive():
    values = [1.0, 2.0, 6.0]
    low, high = stats.t.interval(0.9, 2, loc=3, scale=stats.sem(values))
    assert parts.interval(values) == pytest.approx((3, low, high))
    mean, below, above = parts.positive_interval(values)
    assert low < 0 < below < mean == 3 < above
    assert above == pytest.approx(3 * math.exp((high - 3) / 3))
    assert math.isnan(parts.interval([1.0]).low)
    # What it is for: the interval covers where squared errors are those of a normal estimate.
    # 400 draws, coverage 0.9 within four binomial standard errors: error rate below 1e-4.
    rng = np.random.default_rng(5)
    runs = [parts.positive_interval(rng.normal(size=100) ** 2) for _ in range(400)]
    covered = np.mean([low <= 1 <= high for _, low, high in runs])
    assert abs(covered - 0.9) < 4 * math.sqrt(0.09 / 400)


def test_table_of_errors_keeps_chains_and_quadrature_apart(posterior):
    rows = posterior.metrics[posterior.metrics["experiment"] == "posterior_gaussian"]
    rows = rows[rows["epsilon"] == 5]
    found = outputs.table6_2(Context(posterior.config, rows)).set_index(["statistic", "method"])
    assert len(found) == 4
    chain = found.loc["abs_2", "mh"]
    assert chain["mse"] == pytest.approx(1.1 * 0.08)
    assert chain["mse_quadrature"] == pytest.approx(0.08)
    assert chain["gap_in_sd"] == pytest.approx(0.1, rel=0.02)
    assert chain["sd_ratio"] == pytest.approx(0.4 / 0.5)
    assert chain["high_ratio"] == pytest.approx(3.0 / 4.0)
    assert chain["sd_error"] == pytest.approx(0.02)
    # Runs of before have no error of a quantile.
    assert math.isnan(chain["high_error"])
    assert (chain["runs"], chain["guarantee_epsilon"]) == (3, 5)
    assert chain["guarantee_delta"] == pytest.approx(0.05)
    exact = found.loc["abs_2", "quadrature"]
    assert exact["mse"] == pytest.approx(0.08)
    assert exact["runs"] == 11
    assert math.isnan(exact["gap_in_sd"])
    assert math.isnan(exact["sd_ratio"])


def test_tables_behind_figures_tell_errors_and_leads(posterior):
    found = outputs.table_errors(posterior)
    assert len(found) == 2 * 2 * len(EPSILONS)
    assert set(found["experiment"]) == {"posterior_gaussian"}
    rows = pd.concat([table(crossing_rows(), INFORMATION), table(known_rows(), INFORMATION)])
    leads = outputs.table_leads(Context(posterior.config, rows)).set_index("label")
    assert leads.loc["gaussian_clt-as_published", "place"] == pytest.approx(2)
    assert leads.loc["gaussian_clt-as_published", "along"] == "theta"
    assert leads.loc["gaussian_clt-noiseless", "before"] == "abs_2"
    assert math.isnan(leads.loc["gaussian_clt-noiseless", "place"])
    crossing = leads.loc[""]  # known rows have no label
    assert (crossing["along"], crossing["after"]) == ("epsilon", "abs_2")
    assert crossing["place"] == pytest.approx(10)


def test_table_of_autocorrelation_times(config):
    bases = {"pmmh": 88.0, "mhaar": 36.0}
    known = VARIANCE | {
        "experiment": "autocorrelation_particles", "variant": "corrected", "statistic": "abs_1",
        "epsilon": 5.0, "theta": 2.0, "acceptance_rate": 0.1, "guarantee_epsilon": 5.0,
        "guarantee_delta": 0.0, "guarantee_accountant": "laplace",
    }  # fmt: skip
    rows = [
        {
            **known,
            **cell,
            "label": f"{cell['method']}-corrected",
            "iac_sokal": bases[cell["method"]] / cell["num_particles"] + cell["replicate"],
            "iac_geyer": bases[cell["method"]],
            "reliable": cell["replicate"] > 0,
        }
        for cell in crossed(method=tuple(bases), num_particles=(2, 10), replicate=range(4))
    ]
    found = outputs.table6_1(Context(config, table(rows, AUTOCORRELATION)))
    assert found["num_particles"].tolist() == [2, 2, 10, 10]
    row = found[(found["method"] == "pmmh") & (found["num_particles"] == 2)].iloc[0]
    assert row["algorithm"] == "Algorithm 10"
    assert row["iac"] == pytest.approx(45.5)
    _, high = stats.t.interval(0.9, 3, loc=0, scale=stats.sem(range(4)))
    factor = math.exp(high / 45.5)
    assert (row["iac_low"], row["iac_high"]) == pytest.approx((45.5 / factor, 45.5 * factor))
    assert (row["iac_geyer"], row["reliable"], row["runs"]) == (88, 0.75, 4)
    assert row["guarantee_epsilon"] == 5


def test_median_and_maximum_are_drawn_with_their_autocorrelation(config):
    levels, rates = {"median": 16.0, "max": 0.2}, {"median": 0.7, "max": 0.9}
    here = VARIANCE | {"epsilon": 5.0}
    known = [
        {
            **here,
            **cell,
            "experiment": "information_smooth",
            "information": levels[cell["statistic"]] / cell["theta"],
            "information_se": 0.05 * levels[cell["statistic"]],
        }
        for cell in crossed(
            statistic=tuple(levels), theta=(0.5, 1.0, 2.0), method=("smooth", "smooth_monte_carlo")
        )
    ]
    lags = [
        {
            **here,
            **cell,
            "experiment": "autocorrelation_smooth",
            "method": "exact",
            "theta": 2.0,
            "autocorrelation": rates[cell["statistic"]] ** cell["lag"]
            + 0.01 * (cell["replicate"] - 2),
        }
        for cell in crossed(statistic=tuple(rates), lag=range(21), replicate=range(5))
    ]
    both = [table(known, INFORMATION), table(lags, LAGS)]
    left, right = drawn(outputs.figure6_3(Context(config, pd.concat(both, ignore_index=True))))
    assert sum(values == pytest.approx([32, 16, 8]) for values in lines(left, 3)) == 1
    hollow = [line for line in left.lines if line.get_markerfacecolor() == "none"]
    assert hollow  # every run by itself, no bars
    assert not left.containers
    decays = lines(right, 21)
    assert sorted(values[1] for values in decays) == pytest.approx([0.7, 0.9])
    assert right.get_title() == "autocorrelation, θ = 2"


def selection_rows():
    levels = {
        "selected-as_published": 1.0, "selected-mean_log": 0.9, "second_only-as_published": 1.2,
        "fixed_split": 2.0, "fixed_all": 0.8,
    }  # fmt: skip
    counts = json.dumps({f"{a / 10:g}": 10 * (20 - a) for a in range(1, 21)})
    return [
        {
            "experiment": "selection",
            "problem": problem,
            "method": label.partition("-")[0],
            "epsilon": epsilon,
            "num_runs": (100, 300)[chunk],
            "mse": levels[label] * theta**2 * (1 + 0.4 * chunk),
            "mse_se": 0.1 * theta**2,
            "selected_counts": counts if "selected" in label else "",
            **{"label": label, "theta": theta, "replicate": chunk},
        }
        for problem, epsilon in (("uniform_1", 1.0), ("uniform_1", 5.0), ("uniform_10", 1.0))
        for theta in np.round(np.arange(0.1, 1.05, 0.1), 1)
        for label in levels
        for chunk in (0, 1)
    ]


def test_selection_is_drawn_for_every_setting_with_three_baselines(config):
    axes = drawn(outputs.figure6_5(Context(config, table(selection_rows(), SELECTION))))
    assert len(axes) == 9  # three settings by three panels
    ratios = sorted(values[0] for values in lines(axes[1], 10))
    assert ratios == pytest.approx(np.array([0.8, 0.9, 1, 1.2, 2]) / 0.8)
    places = np.round(np.arange(0.1, 1.05, 0.1), 1)
    found = lines(axes[0], 10)
    assert len(found) == 5
    # Chunks of 100 and 300 runs with means 1 and 1.4 have the mean 1.3.
    assert any(values == pytest.approx(1.3 * places**2) for values in found)
    assert all(axis.get_ylim()[0] == 0 for axis in axes[2::3])
    assert axes[3].get_ylabel().endswith("ε = 5")
    assert {len(axis.patches) for axis in axes[2::3]} <= {10, 20}  # one or two ways select


def test_boxes_are_those_of_the_selected_powers():
    texts = ['{"0.5": 1, "1": 2}', '{"1": 2, "1.5": 2, "9": 1}']
    counts = parts.powers(texts)
    values = np.repeat(counts.index.to_numpy(), counts.to_numpy(dtype=int))
    assert values.tolist() == [0.5, 1, 1, 1, 1, 1.5, 1.5, 9]
    box = parts.box(counts)
    assert (box["q1"], box["med"], box["q3"]) == (1, 1, 1.5)
    assert (box["whislo"], box["whishi"]) == (0.5, 1.5)  # 9 is outside
    assert box["fliers"] == []
