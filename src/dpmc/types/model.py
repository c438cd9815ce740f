"""A posterior over private rows, written once for one row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpmc.types.dataset import Dataset
from dpmc.types.errors import DpmcError
from dpmc.types.numbers import Array, is_integer, is_real


@dataclass(frozen=True)
class Model:
    """A posterior over private rows, written once for one row.

    Every function may be plain Python that ``numba.njit`` can compile, or already
    compiled. The two row functions take tuples of scalars: the coefficients of a
    parameter, then the features of a row. The library fuses them into reductions
    over all rows (:mod:`dpmc.rows.sums`).

    Parameters
    ----------
    name : str
        Name used in messages.
    dim : int
        Dimension d of theta.
    log_likelihood : function ``(c, x) -> float``
        Log-likelihood of one row, up to terms free of theta.
    gradient : function ``(c, x) -> tuple of d floats``
        Gradient of `log_likelihood` with respect to theta.
    log_prior : callable ``(theta) -> float``
        Log-density of the prior up to a constant.
    log_prior_gradient : callable ``(theta) -> ndarray of shape (d,)``
        Its gradient.
    coefficients : callable ``(theta) -> ndarray of shape (m,)``, optional
        What the row functions receive in place of theta; theta itself by default.
    features : callable ``(ndarray of shape (m, p)) -> ndarray of shape (q, m)``, optional
        What the row functions read of each of m rows; their columns by default.
    linear : bool
        Whether `log_likelihood` is linear in the coefficients. One evaluation at
        their difference then replaces two at the coefficients themselves.
    affine : bool
        Whether `log_likelihood` and `gradient` are also affine in the features. A move
        that changes the weight of one feature only then costs O(log n), see
        :mod:`dpmc.rows.sorted`.
    slope : function ``(s, x) -> float``, optional
        Where a row enters by the inner product s of theta and its last d features alone: the
        derivative of `log_likelihood` with respect to s, given the tuple of the features before
        these. `gradient` is then that number times the last d features. Models with many
        coefficients compile faster by it, see :mod:`dpmc.rows.wide_gradients`.
    tempering : float
        Exponent T in (0, 1] of the likelihood.
    lipschitz : float, optional
        A bound on the Euclidean norm of `gradient` for every admissible row and
        theta. A clip bound at or above it never clips.
    reference : callable ``(Dataset, size, Generator) -> ndarray of shape (size, d)``, optional
        Exact posterior draws, where they can be had.
    example_rows : ndarray of shape (k, p), optional
        Public rows, made up, for models whose functions exist for some rows only, such as
        counts or labels. What the model declares is checked on them and on mixtures of them,
        instead of on normal ones.
    example_thetas : ndarray of shape (k, d), optional
        Public parameters, for the same purpose.

    Notes
    -----
    `affine` and row-wise `features` are promises that a guarantee rests on. They are checked
    on public probes (:mod:`dpmc.rows.model_checks`), which finds mistakes and proves nothing.

    Examples
    --------
    >>> model = Model(
    ...     "mean", 1,
    ...     log_likelihood=lambda theta, z: -0.5 * (z[0] - theta[0]) ** 2,
    ...     gradient=lambda theta, z: (z[0] - theta[0],),
    ...     log_prior=lambda theta: -0.5 * theta[0] ** 2,
    ...     log_prior_gradient=lambda theta: -theta,
    ... )
    >>> model.gradient((1.0,), (3.0,))
    (2.0,)
    """

    name: str
    dim: int
    log_likelihood: Callable[..., Any]
    gradient: Callable[..., Any]
    log_prior: Callable[[Array], float]
    log_prior_gradient: Callable[[Array], Array]
    coefficients: Callable[[Array], Array] | None = None
    features: Callable[[Array], Array] | None = None
    linear: bool = False
    affine: bool = False
    slope: Callable[..., Any] | None = None
    tempering: float = 1.0
    lipschitz: float | None = None
    reference: Callable[[Dataset, int, np.random.Generator], Array] | None = None
    example_rows: Array | None = field(default=None, compare=False)
    example_thetas: Array | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("example_rows", "example_thetas"):
            examples = getattr(self, name)
            if examples is not None:
                _check_examples(self.name, name, np.asarray(examples))
                object.__setattr__(self, name, np.array(examples, dtype=np.float64))
        _check_functions(self)
        if not (is_integer(self.dim) and self.dim >= 1):
            raise DpmcError(
                f"model {self.name!r}: `dim` must be an integer of at least 1, got {self.dim!r}"
            )
        object.__setattr__(self, "dim", int(self.dim))
        if self.affine and not self.linear:
            raise DpmcError(f"model {self.name!r}: `linear` must be True with affine True")
        if not (is_real(self.tempering) and 0 < self.tempering <= 1):
            raise DpmcError(
                f"model {self.name!r}: `tempering` must be in (0, 1], got {self.tempering!r}"
            )
        if self.lipschitz is not None and not (is_real(self.lipschitz) and self.lipschitz > 0):
            raise DpmcError(
                f"model {self.name!r}: `lipschitz` must be positive, got {self.lipschitz!r}"
            )


def _check_functions(model: Model) -> None:
    if not isinstance(model.name, str):
        raise DpmcError(f"`name` of a model must be a text, got {model.name!r}")
    for name in ("log_likelihood", "gradient", "log_prior", "log_prior_gradient"):
        if not callable(getattr(model, name)):
            raise DpmcError(
                f"model {model.name!r}: `{name}` must be a function, got {getattr(model, name)!r}"
            )
    for name in ("coefficients", "features", "reference"):
        value = getattr(model, name)
        if value is not None and not callable(value):
            raise DpmcError(
                f"model {model.name!r}: `{name}` must be a function or None, got {value!r}"
            )


def _check_examples(model: str, name: str, examples: Array) -> None:
    numbers = examples.ndim == 2 and examples.size and examples.dtype.kind in "biuf"
    if not (numbers and np.isfinite(examples).all()):
        raise DpmcError(
            f"model {model!r}: `{name}` must hold finite real numbers in at least one row, got "
            f"shape {examples.shape} and dtype {examples.dtype}"
        )


@dataclass(frozen=True)
class NoParams:
    """Parameters of a method that has none."""
