"""Estimators pass the checks of scikit-learn, but for what privacy forbids."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.multiclass import check_classification_targets

import dpmc
from dpmc.sklearn import LinearRegression, LogisticRegression, PoissonRegressor
from dpmc.types import DpmcError

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SCORE = "`score` of private rows would be a release without noise"
FORBIDDEN = {
    "check_fit_score_takes_y": SCORE,
    "check_pipeline_consistency": SCORE,
    "check_n_features_in_after_fitting": SCORE,
    "check_dtype_object": "a message must not tell what a private value is",
}
LABELS = "labels are declared: rows do not tell which there are"
OF_LABELS = dict.fromkeys(
    [
        "check_estimators_dtypes",
        "check_classifier_data_not_an_array",
        "check_classifiers_classes",
        "check_classifiers_one_label",
        "check_classifier_not_supporting_multiclass",
        "check_fit2d_1feature",
    ],
    LABELS,
)


class ReadsLabels(LogisticRegression):
    """Takes its labels from private rows, for checks that know of no declared ones."""

    def _responses(self, y):
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2:
            raise ValueError("Only binary classification is supported: not one class")
        return (y == self.classes_[1]) * 1.0


def failed(estimator, allowed) -> set[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(estimator, on_fail=None, on_skip=None)
    assert len(found) > 40
    return {one["check_name"] for one in found if one["status"] == "failed"} - set(allowed)


def rows(num=4000):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(num, 2))
    return x, 1.0 + x @ [0.5, -1.0], rng


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [LinearRegression, PoissonRegressor])
def test_regressors_pass_all_checks_but_those_that_privacy_forbids(estimator):
    assert failed(estimator(**BUDGET), FORBIDDEN) == set()


@pytest.mark.slow
def test_the_classifier_passes_all_checks_but_those_that_privacy_forbids():
    assert failed(LogisticRegression(**BUDGET), FORBIDDEN | OF_LABELS) == set()


@pytest.mark.parametrize("estimator", [LinearRegression, LogisticRegression, PoissonRegressor])
def test_an_estimator_is_the_fit_of_its_family(estimator):
    x, predictor, rng = rows()
    y = {
        "linear": predictor + rng.normal(size=len(x)),
        "logistic": rng.random(len(x)) < 1 / (1 + np.exp(-predictor)),
        "poisson": rng.poisson(np.exp(predictor)),
    }[estimator.likelihood]
    model = estimator(**BUDGET, random_state=3).fit(x, y)
    fit = dpmc.regression(x, y, likelihood=estimator.likelihood, **BUDGET, seed=3, progress=False)
    mean = fit.kept().mean(axis=(0, 1))
    np.testing.assert_array_equal(np.ravel(model.coef_), mean[1:3])
    np.testing.assert_array_equal(np.ravel(model.intercept_), mean[:1])
    expected = fit.predict(x[:5], kind="mean", interval=0.9).mean
    if estimator is LogisticRegression:
        np.testing.assert_array_equal(model.predict_proba(x[:5])[:, 1], expected)
        np.testing.assert_array_equal(model.predict(x[:5]), (expected > 0.5).astype(int))
    else:
        np.testing.assert_array_equal(model.predict(x[:5]), expected)
    assert model.posterior_.guarantee == fit.guarantee
    assert clone(model).get_params() == model.get_params()


def test_a_score_of_private_rows_is_refused_before_any_fit(monkeypatch):
    x, y, _ = rows(400)
    model = make_pipeline(FunctionTransformer(), LinearRegression(**BUDGET, random_state=1))
    with pytest.raises(DpmcError, match=r"^`score` must be left to"):
        LinearRegression(**BUDGET).score(x, y)
    fits = []
    monkeypatch.setattr(LinearRegression, "fit", lambda self, *rows: fits.append(rows))
    with pytest.raises(TypeError, match="should have a 'score' method"):
        cross_val_score(model, x, y, cv=2)
    with pytest.raises(TypeError, match="should have a 'score' method"):
        GridSearchCV(model, {"linearregression__fit_intercept": [True]}, cv=2).fit(x, y)
    assert not fits


@pytest.mark.parametrize(
    ("classes", "y", "words"),
    [
        (("no", "yes"), ["no", "yes", "maybe"], "`y` must have the labels .* alone, got others"),
        ((0, 1), ["secret", "no", "no"], "`y` must have the labels .* alone, got others"),
        ((1, 1), [1, 1, 0], "`classes` must be two different labels"),
        ((0, 1, 2), [0, 1, 1], "`classes` must be two different labels"),
    ],
)
def test_labels_are_those_that_were_declared(classes, y, words):
    with pytest.raises(DpmcError, match=words) as caught:
        LogisticRegression(**BUDGET, classes=classes).fit(np.eye(3), y)
    assert not {"maybe", "secret"} & set(str(caught.value).split("'"))


def test_no_message_tells_a_private_value():
    for x in ([["secret", "1"]] * 3, np.array([["secret", 1.0]] * 3, dtype=object)):
        with pytest.raises(ValueError, match="real numbers") as caught:
            LinearRegression(**BUDGET).fit(x, [1.0, 2.0, 3.0])
        assert "secret" not in str(caught.value)
    with pytest.raises(ValueError, match="real numbers") as caught:
        LinearRegression(**BUDGET).fit(np.eye(3), ["secret", "2", "3"])
    assert "secret" not in str(caught.value)


LISTED = [[1.0, 41.75], [2.0, 3.0], [0.5, 1.0]]


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.array([41.75, 1.0, 2.0]), [1.0, 2.0, 3.0]),
        ([{"age": 41.75}, {"age": 2.0}], [1.0, 2.0]),
        (np.array(LISTED) + 1j, [1.0, 2.0, 3.0]),
        (LISTED, np.array([41.75, 1.0, 2.0]) + 1j),
        (LISTED, np.array([[41.75], [1.0, 2.0], None], dtype=object)),
        (LISTED, [None, 41.75, 1.0]),
        (np.ma.masked_greater(LISTED, 3.0), [1.0, 2.0, 3.0]),
        (LISTED, np.ma.masked_greater([41.75, 1.0, 0.0], 3.0)),
    ],
)
@pytest.mark.parametrize("estimator", [LinearRegression, LogisticRegression])
def test_refusals_of_scikit_learn_quote_no_row(estimator, x, y):
    with pytest.raises(DpmcError) as caught:
        estimator(**BUDGET).fit(x, y)
    assert "41" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.slow
def test_a_classifier_that_reads_labels_fails_no_check_of_labels():
    """So that the checks above fail for their reasons, and for no other."""
    assert failed(ReadsLabels(**BUDGET), FORBIDDEN) == set()
