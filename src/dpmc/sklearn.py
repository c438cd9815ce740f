"""Regressions of `dpmc.regression` as estimators of scikit-learn, under its names.

Each ``fit`` spends the whole budget, and that of a clone spends it again: cross-validation with k
folds costs k budgets. What would read private rows without noise is refused (``score``), and what
rows would tell is declared (``classes``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from dpmc import checks
from dpmc.families.regression import regression
from dpmc.fits.predictive import LINEAR, LOGISTIC, MEAN, POISSON
from dpmc.types import Array, DpmcError, as_numbers

checks.require_extra("sklearn", "dpmc.sklearn", "sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402

# Of intervals that `predict` leaves out: it needs means alone, in bounded memory.
INTERVAL = 0.9


@contextlib.contextmanager
def _no_entries() -> Iterator[None]:
    """Have refusals of scikit-learn end before the rows that it quotes from the second line on."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise DpmcError(str(error).partition("\n")[0].rstrip(": ")) from None


class _NoScoreError(DpmcError, AttributeError):
    """An attribute that is refused."""


class _Regression:
    """What all estimators share, before the mixins of scikit-learn."""

    likelihood: ClassVar[str]
    epsilon: float
    delta: float
    fit_intercept: bool
    prior_sd: float | Sequence[float] | None
    random_state: Any
    coef_: Array
    intercept_: Any

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Posterior of the coefficients under the budget.

        Parameters
        ----------
        X : array_like of shape (n, p) or data frame
            Private features.
        y : array_like of shape (n,)
            Private responses.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        ValueError
            If rows are refused, in the words of scikit-learn, or an argument is, in those of dpmc.
        """
        for name, given in (("X", X), ("y", y)):
            if np.ma.isMaskedArray(given):
                raise DpmcError(f"`{name}` must be an ordinary array, got a masked one")
        with _no_entries():
            rows, y = validate_data(self, X, y, dtype=None, ensure_min_samples=2)
        rows, responses = as_numbers("`X`", rows, "refuse"), self._responses(y)
        self.posterior_ = regression(
            rows,
            responses,
            epsilon=self.epsilon,
            delta=self.delta,
            likelihood=self.likelihood,
            intercept=self.fit_intercept,
            prior_sd=self.prior_sd,
            seed=self._seed(),
            progress=False,
        )
        mean = self.posterior_.kept().mean(axis=(0, 1))
        first = int(self.fit_intercept)
        self.intercept_ = float(mean[0]) if first else 0.0
        self.coef_ = mean[first : first + rows.shape[1]]
        return self

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Posterior means of the expected responses of new rows, shape (m,).

        Parameters
        ----------
        X : array_like of shape (m, p) or data frame
            Features, not private.
        """
        return self._means(X)

    @property
    def score(self) -> NoReturn:
        """Refused: of private rows it would be a release without noise.

        As an attribute that is not there, so that searches and cross-validation fit nothing first.
        """
        raise _NoScoreError(
            "`score` must be left to `sklearn.metrics`, on public rows: of private ones it would "
            "be a release without noise"
        )

    def __sklearn_tags__(self) -> Any:
        """Tags of scikit-learn: predictions from few rows are poor, as noise hides them."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.positive_only = self.likelihood == POISSON
        if tags.regressor_tags is not None:
            tags.regressor_tags.poor_score = True
        if tags.classifier_tags is not None:
            tags.classifier_tags.poor_score = True
            tags.classifier_tags.multi_class = False
        return tags

    def _responses(self, y: Any) -> Array:
        return as_numbers("`y`", y, "refuse")

    def _means(self, x: Any) -> Array:
        check_is_fitted(self)
        rows = validate_data(self, x, dtype=None, reset=False)
        rows = as_numbers("`X`", rows, "refuse")
        return self.posterior_.predict(rows, kind=MEAN, interval=INTERVAL).mean

    def _seed(self) -> int | None:
        state = self.random_state
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31))
        seed: int | None = state
        return seed


class LinearRegression(_Regression, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression with unknown variance.

    Parameters
    ----------
    epsilon, delta : float
        The budget of each fit.
    fit_intercept : bool
    prior_sd
        As of `dpmc.regression`.
    random_state : int, RandomState or None
        Leave it out for private rows: whoever knows it can subtract the noise.

    Attributes
    ----------
    coef_, intercept_
        Posterior means.
    posterior_ : Fit
        Draws, guarantee and remarks.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> y = 1.0 + X @ [0.5, -1.0] + rng.normal(size=20_000)
    >>> model = LinearRegression(epsilon=1, delta=1e-6, random_state=1).fit(X, y)
    >>> model.coef_.round(1).tolist(), model.posterior_.guarantee.epsilon
    ([0.5, -1.0], 1.0)
    """

    likelihood = LINEAR

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        fit_intercept: bool = True,
        prior_sd: float | Sequence[float] | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.fit_intercept = fit_intercept
        self.prior_sd = prior_sd
        self.random_state = random_state


class PoissonRegressor(LinearRegression):
    """Poisson regression with the logarithm as link.

    Parameters and attributes are those of `LinearRegression`.
    """

    likelihood = POISSON


class LogisticRegression(_Regression, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression.

    Parameters
    ----------
    epsilon, delta, fit_intercept, prior_sd, random_state
        As of `LinearRegression`.
    classes : pair of labels
        What responses are, the second one counting as 1. They are public: rows do not tell which
        labels there are.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    coef_ : ndarray of shape (1, p)
    intercept_ : ndarray of shape (1,)
        Posterior means.
    posterior_ : Fit
        Draws, guarantee and remarks.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> y = np.where(rng.random(20_000) < 1 / (1 + np.exp(X[:, 0])), "well", "ill")
    >>> model = LogisticRegression(epsilon=1, delta=1e-6, classes=("ill", "well"), random_state=1)
    >>> model.fit(X, y).predict([[3.0, 0.0], [-3.0, 0.0]]).tolist()
    ['ill', 'well']
    """

    likelihood = LOGISTIC

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        classes: Sequence[Any] = (0, 1),
        fit_intercept: bool = True,
        prior_sd: float | Sequence[float] | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.prior_sd = prior_sd
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """See `LinearRegression.fit`."""
        super().fit(X, y)
        self.coef_, self.intercept_ = self.coef_[None], np.array([self.intercept_])
        return self

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Posterior means of the probabilities of both classes, shape (m, 2)."""
        second = self._means(X)
        return np.column_stack([1 - second, second])

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Likelier class of each row, shape (m,)."""
        second = self._means(X) > 0.5
        return self.classes_[second.astype(int)]

    def _responses(self, y: Any) -> Array:
        with _no_entries():
            check_classification_targets(y)
        self.classes_ = np.asarray(self.classes)
        if self.classes_.shape != (2,) or self.classes_[0] == self.classes_[1]:
            raise DpmcError(f"`classes` must be two different labels, got {self.classes!r}")
        second = y == self.classes_[1]
        if not (second | (y == self.classes_[0])).all():
            raise DpmcError(f"`y` must have the labels {self.classes!r} alone, got others")
        return np.asarray(second, dtype=np.float64)
