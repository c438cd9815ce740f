"""Figures and tables of statistic selection, from invented rows whose means are known."""

from __future__ import annotations

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
from tests.support.figures import shown

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
    "squared_error": "float64",
    "reference_mean": "float64",
    "reference_sd": "float64",
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


def crossing_rows(experiment="information_normal_variance"):
    """Return curves 8 and theta^3 for two statistics, which cross at 2, and without noise none."""
    return [
        {
            "experiment": experiment,
            "problem": "normal_variance",
            "method": "gaussian_clt",
            "label": f"gaussian_clt-{label}",
            "statistic": name,
            "epsilon": epsilon,
            "theta": theta,
            "information": value(theta),
        }
        for epsilon, label in ((1.0, "as_published"), (math.inf, "noiseless"))
        for theta in np.linspace(0.5, 6, 12)
        for name, value in (
            ("abs_1", lambda t: 8.0),
            ("abs_2", lambda t: t**3 if epsilon == 1 else 1000.0 + t),  # noqa: B023
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
    rows = [
        {
            "experiment": "information_bernoulli",
            "problem": "bernoulli",
            "method": method,
            "variant": variant,
            "statistic": "bit",
            "epsilon": epsilon,
            "theta": theta,
            "information": level * epsilon * theta * (1 if variant == "corrected" else 7),
            "published_formula": level if method.startswith("noisy") else math.nan,
        }
        for method, level in levels.items()
        for variant in (("corrected", "matched") if method.startswith("noisy") else ("corrected",))
        for epsilon in (0.1, 1.0, 10.0)
        for theta in (0.1, 0.3, 0.5)
    ]
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
    # The exact mixture; formulas as printed, of two releases, over theirs times epsilon theta.
    found = sorted(values.tolist() for values in lines(axes[8], 3))
    assert found == [pytest.approx([0.9] * 3), *[pytest.approx([20, 2, 0.2])] * 2]


EPSILONS = (0.5, 2.0, 5.0, 20.0)


def posterior_rows(theta=2.0, spread=(0.5, 1.0, 1.5)):
    """Return chains whose estimates are 0.1 posterior sd above the reference on average."""
    rows = []
    for name, level in (("abs_1", 0.1), ("abs_2", 0.4)):
        for epsilon in EPSILONS:
            base = {
                "experiment": "posterior_gaussian",
                "problem": "normal_variance",
                "statistic": name,
                "epsilon": epsilon,
                "theta": theta,
                "guarantee_epsilon": epsilon,
                "guarantee_delta": 0.01 * epsilon,
                "guarantee_accountant": "gaussian",
                "point": f"eps={epsilon:g}",
            }
            for replicate, factor in enumerate(spread):
                exact = {
                    **base,
                    "replicate": replicate,
                    "reference_mean": 2.0,
                    "reference_sd": 0.5,
                    "reference_squared_error": level / epsilon * factor,
                }
                rows.append(
                    {
                        **exact,
                        "method": "mh",
                        "label": "mh-as_published",
                        "algorithm": "mh",
                        "variant": "as_published",
                        "estimate": 2.0 + 0.05 * (1 + 0.2 * (factor - 1)),
                        "squared_error": 1.1 * level / epsilon * factor,
                        "acceptance_rate": 0.3,
                        "iac": 8.0,
                        "num_iterations": 1000,
                    }
                )
            for replicate, factor in enumerate(np.linspace(0.5, 1.5, 11)):
                rows.append(
                    {
                        **base,
                        "replicate": replicate,
                        "method": "quadrature",
                        "label": "quadrature-as_published",
                        "algorithm": "quadrature",
                        "variant": "as_published",
                        "reference_mean": 2.0,
                        "reference_sd": 0.5,
                        "reference_squared_error": level / epsilon * factor,
                    }
                )
    return rows


def known_rows():
    return [
        {
            "experiment": "information_gaussian",
            "problem": "normal_variance",
            "method": "gaussian_clt",
            "statistic": name,
            "epsilon": epsilon,
            "theta": 2.0,
            "information": value,
        }
        for epsilon in EPSILONS
        for name, value in (("abs_1", 10.0), ("abs_2", epsilon))
    ]


@pytest.fixture(scope="module")
def posterior(config):
    both = [table(posterior_rows(), POSTERIOR), table(known_rows(), INFORMATION)]
    return Context(config, pd.concat(both, ignore_index=True))


def test_errors_are_drawn_with_quadrature_and_the_crossing_of_informations(posterior):
    axes = drawn(outputs.figure6_1(posterior))
    errors, informations, gaps = axes
    assert {axis.get_xscale() for axis in axes} == {"log"}
    assert errors.get_yscale() == informations.get_yscale() == "log"
    levels = np.array([0.1, 0.4])[:, None] / np.array(EPSILONS)
    found = lines(errors, len(EPSILONS))
    for level in levels:
        # A band of quadrature, its dashes on the same releases, and the markers of chains.
        assert sum(values == pytest.approx(level) for values in found) == 2
        assert sum(values == pytest.approx(1.1 * level) for values in found) == 1
    assert len(errors.collections) == 2 * 2  # two bands, two sets of bars
    assert [text.get_text() for text in informations.texts] == ["10.0"]
    assert [text.get_text() for text in errors.texts] == ["10.0"]
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
    assert (chain["runs"], chain["guarantee_epsilon"]) == (3, 5)
    assert chain["guarantee_delta"] == pytest.approx(0.05)
    exact = found.loc["abs_2", "quadrature"]
    assert exact["mse"] == pytest.approx(0.08)
    assert exact["runs"] == 11
    assert math.isnan(exact["gap_in_sd"])


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
    rows = [
        {
            "experiment": "autocorrelation_particles",
            "problem": "normal_variance",
            "label": f"{method}-corrected",
            "method": method,
            "variant": "corrected",
            "statistic": "abs_1",
            "epsilon": 5.0,
            "theta": 2.0,
            "num_particles": count,
            "replicate": replicate,
            "iac_sokal": base / count + replicate,
            "iac_geyer": base,
            "reliable": replicate > 0,
            "acceptance_rate": 0.1,
            "guarantee_epsilon": 5.0,
            "guarantee_delta": 0.0,
            "guarantee_accountant": "laplace",
        }
        for method, base in (("pmmh", 88.0), ("mhaar", 36.0))
        for count in (2, 10)
        for replicate in range(4)
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
    known = [
        {
            "experiment": "information_smooth",
            "problem": "normal_variance",
            "method": method,
            "statistic": name,
            "epsilon": 5.0,
            "theta": theta,
            "information": level / theta,
            "information_se": 0.05 * level,
        }
        for name, level in (("median", 16.0), ("max", 0.2))
        for theta in (0.5, 1.0, 2.0)
        for method in ("smooth", "smooth_monte_carlo")
    ]
    lags = [
        {
            "experiment": "autocorrelation_smooth",
            "problem": "normal_variance",
            "method": "exact",
            "statistic": name,
            "epsilon": 5.0,
            "theta": 2.0,
            "lag": lag,
            "replicate": replicate,
            "autocorrelation": rate**lag + 0.01 * (replicate - 2),
        }
        for name, rate in (("median", 0.7), ("max", 0.9))
        for lag in range(21)
        for replicate in range(5)
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
    rows = []
    levels = {
        "selected-as_published": 1.0,
        "selected-mean_log": 0.9,
        "second_only-as_published": 1.2,
        "fixed_split": 2.0,
        "fixed_all": 0.8,
    }
    for problem, epsilon in (("uniform_1", 1.0), ("uniform_1", 5.0), ("uniform_10", 1.0)):
        for theta in np.round(np.arange(0.1, 1.05, 0.1), 1):
            for label, level in levels.items():
                for chunk, runs in enumerate((100, 300)):
                    counts = {f"{a / 10:g}": 10 * (20 - a) for a in range(1, 21)}
                    rows.append(
                        {
                            "experiment": "selection",
                            "problem": problem,
                            "method": label.partition("-")[0],
                            "label": label,
                            "epsilon": epsilon,
                            "theta": theta,
                            "replicate": chunk,
                            "num_runs": runs,
                            "mse": level * theta**2 * (1 + 0.4 * chunk),
                            "mse_se": 0.1 * theta**2,
                            "selected_counts": json.dumps(counts) if "selected" in label else "",
                        }
                    )
    return rows


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
