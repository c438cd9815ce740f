"""The yardstick of real tables: exact posteriors, rivals without noise, what reports count."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import statsmodels.api as sm

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MODULES = ("exact_regressions", "measure_tables", "rivals_of_tables", "table_rows")
FAMILIES = ("linear", "student_t", "logistic", "poisson")


@pytest.fixture
def yardstick(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delenv("DPMC_UCI_DIR", raising=False)
    import exact_regressions
    import measure_tables
    import rivals_of_tables
    import table_rows

    yield SimpleNamespace(
        exact=exact_regressions,
        measure=measure_tables,
        rivals=rivals_of_tables,
        rows=table_rows,
    )
    for name in MODULES:
        sys.modules.pop(name, None)


def rows_of(yardstick, family: str):
    return yardstick.rows.drawn(family, True, 500, 3)[0]


@pytest.mark.parametrize("family", ["linear", "logistic", "poisson"])
def test_modes_under_flat_priors_are_those_of_statsmodels(yardstick, family: str) -> None:
    rows = rows_of(yardstick, family)
    flat = yardstick.exact.Prior.fixed(family, 3 + (family == "linear"), 1e6, 1e6)
    mode, root = yardstick.exact.mode(family, rows.design, rows.y, flat)
    families = {
        "linear": sm.families.Gaussian(),
        "logistic": sm.families.Binomial(),
        "poisson": sm.families.Poisson(),
    }
    theirs = sm.GLM(rows.y, rows.design, family=families[family]).fit(tol=1e-12)
    np.testing.assert_allclose(mode[:3], theirs.params, atol=1e-6)
    # Theirs divides by n - p where sigma is unknown.
    unbiased = np.sqrt(497 / 500) if family == "linear" else 1.0
    np.testing.assert_allclose(np.linalg.norm(root, axis=1)[:3], theirs.bse * unbiased, rtol=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_rivals_find_the_mode_without_noise(yardstick, family: str) -> None:
    rows, exact = rows_of(yardstick, family), yardstick.exact
    prior = exact.Prior.in_units(family, rows.x, rows.y)
    posterior = exact.exact(family, rows.design, rows.y, prior)
    low, high = rows.y.min(), rows.y.max()
    public = yardstick.rows.Rows(
        **{**vars(rows), "low": rows.low * 2, "high": rows.high * 3, "responses": (low, high)}
    )
    ascent = yardstick.rivals.NoisyGradient(public, prior, posterior, 1e12)
    setting = (4000, 1e9, 0.3 / np.exp(ascent.steepest.max()))
    found = ascent.run(setting, np.random.default_rng(0))
    assert yardstick.rivals.error(found, posterior) < 0.2


def test_tables_that_judge_are_not_those_that_may_be_tuned_on(yardstick) -> None:
    tables = yardstick.rows.specifications()
    sources = {
        told: {one["source"] for one in tables.values() if one["held_out"] == told}
        for told in (True, False)
    }
    assert len(sources[True]) >= 14
    assert not sources[True] & sources[False]
    assert {one["family"] for one in tables.values() if one["held_out"]} == set(FAMILIES)


def test_fits_are_measured_once_and_read_back(yardstick, tmp_path: Path) -> None:
    measure, output = yardstick.measure, tmp_path / "fits.csv"
    rare = measure.rare_cases([2000], measure.RARE)
    cases = [one for one in rare if one.name.startswith("logistic 0.5")]
    found = measure.run(cases, [4.0], 1, output)
    written = output.read_text()
    assert measure.run(cases, [4.0], 1, output).keys() == found.keys()
    assert output.read_text() == written
    (record,) = found["logistic 0.5, n 2000", 4.0]
    assert not record.failed
    assert len(record.errors) == len(record.own) == len(record.inside) == 2
    assert np.isfinite([record.rms, record.width, record.limit]).all()


def test_causes_are_what_was_done_to_rows(yardstick) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2000, 3))

    def found(family: str, x: np.ndarray, y: np.ndarray, prior_sd: float = 1e4) -> list[str]:
        design = np.column_stack([np.ones(len(x)), x])
        prior = yardstick.exact.Prior.fixed(family, 4 + (family == "linear"), prior_sd)
        posterior = yardstick.exact.exact(family, design, y, prior)
        return yardstick.exact.causes(family, posterior, prior, design, y, 0.1)

    noise = rng.standard_normal(2000)
    ones = (rng.random(2000) < 0.3).astype(float)
    assert found("linear", x, noise) == []
    assert found("linear", x, 1000 + noise, 10) == ["prior"]
    assert found("linear", x, noise * np.exp(x[:, 0])) == ["heavy tails", "variance"]
    assert found("logistic", x, ones) == []
    assert found("logistic", x, (rng.random(2000) < 0.02).astype(float)) == ["rare class"]
    assert found("logistic", np.column_stack([x[:, :2], x[:, 0] + 0.01 * noise]), ones) == [
        "collinear columns"
    ]
    rare = np.column_stack([x[:, :2], rng.random(2000) < 0.01])
    assert found("logistic", rare, ones) == ["rare feature"]
    counts = rng.poisson(3 * rng.exponential(1, 2000)).astype(float)
    assert found("poisson", x, counts) == ["variance"]


@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives_are_those_of_the_log_likelihood(yardstick, family: str) -> None:
    rows = rows_of(yardstick, family)
    design, y, step = rows.design[:40], rows.y[:40], 1e-5
    theta = np.array([0.3, -0.5, 0.2, 0.1])[: 3 + (family in ("linear", "student_t"))]
    exact = yardstick.exact

    def gradients(at: np.ndarray) -> np.ndarray:
        return exact.row_gradients(exact.slopes(family, at, design, y), design)

    for j, away in enumerate(step * np.eye(len(theta))):
        up, down = (exact.values(family, theta + sign * away, design, y) for sign in (1, -1))
        np.testing.assert_allclose(gradients(theta)[:, j], (up - down) / (2 * step), atol=1e-6)
        change = (gradients(theta + away) - gradients(theta - away)).sum(axis=0) / (2 * step)
        precision = exact.precision_of(exact.slopes(family, theta, design, y), design)
        np.testing.assert_allclose(precision[j], -change, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_weak_priors_follow_units(yardstick, family: str) -> None:
    rows = rows_of(yardstick, family)
    exact, scaled = yardstick.exact, family in ("linear", "student_t")
    unit = 1000.0 if scaled else 1.0
    x, y = rows.x * [1e5, 1] + [0, 1900], rows.y * unit
    mean = exact.mode(family, rows.design, rows.y, exact.Prior.in_units(family, rows.x, rows.y))[0]
    prior = exact.Prior.in_units(family, x, y)
    moved = exact.mode(family, np.column_stack([np.ones(len(x)), x]), y, prior)[0]
    np.testing.assert_allclose(moved[1:3], mean[1:3] * unit / [1e5, 1], rtol=1e-4)
    np.testing.assert_allclose(moved[0] + 1900 * moved[2], mean[0] * unit, rtol=1e-4, atol=1e-4)


def test_rows_of_a_table_are_split_and_scaled(yardstick) -> None:
    rows = yardstick.rows.load("anes96")
    assert rows.x.shape == (660, 6)
    assert rows.test_x.shape == (284, 6)
    assert set(rows.y) == {0, 1}
    assert np.abs(rows.x).max() <= 1


def test_a_far_fit_counts_as_silent_without_a_remark_that_is_true(yardstick, capsys) -> None:
    report = yardstick.measure

    def record(error: float, remarks: str) -> object:
        one, told = np.array([error, 0.0]), ("variance", "", remarks)
        return report.Record("case", 1.0, True, "linear", 9, one, one, one, 1, 1, 0, 0, *told)

    fits = [record(4, ""), record(9, "wide"), record(9, "dispersion"), record(0, "wide")]
    report.of_silence({("case", 1.0): [*fits, record(0, "")]})
    told = capsys.readouterr().out
    assert "far off and say so: 2 of 3" in told
    assert "far off and name a cause that is true: 1 of 3" in told
    assert "nothing wrong and no remark: 1 of 2" in told
