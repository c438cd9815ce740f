"""The values that the parts of the library exchange: frozen, and checked when they are made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
# How the status of a result begins whose data cannot be had.
UNAVAILABLE = "data not available here"
Neighbours = Literal["replace", "add_remove"]
# Each neighbouring relation, and how neighbours differ.
NEIGHBOURS: Mapping[Neighbours, str] = {
    "replace": "substitution of one row",
    "add_remove": "addition or removal of one row",
}


class DpmcError(ValueError):
    """Bad input, told in one line: what was given, its value, and what is allowed."""


class MemoryLimitError(DpmcError):
    """What is asked for takes more memory than this machine has; nothing was begun."""


class UnavailableError(DpmcError):
    """Data that cannot be had on this machine, told in one line with what would help."""


@dataclass(frozen=True)
class Dataset:
    """Private rows together with what is public about them.

    Parameters
    ----------
    name : str
        Name used in messages and file names.
    x : ndarray of shape (n, p)
        One row per individual.
    bounds : mapping of str to float, optional
        Constants that bound every row, such as ``{"row_norm": 8.0}``.
    bounds_source : {"public", "data"}
        ``"data"`` says that the bounds were taken from the private rows; a
        guarantee then lists them as outside of it.
    truth : ndarray of shape (d,), optional
        The parameter that generated synthetic rows.

    Raises
    ------
    DpmcError
        If `x` is not a finite two-dimensional array with at least one row.
    """

    name: str
    x: Array
    bounds: Mapping[str, float] = field(default_factory=dict)
    bounds_source: Literal["public", "data"] = "public"
    truth: Array | None = None

    def __post_init__(self) -> None:
        x = np.asarray(self.x)
        if x.ndim != 2 or 0 in x.shape:
            raise DpmcError(
                f"data {self.name!r}: shape {x.shape}, allowed (>= 1 rows, >= 1 columns)"
            )
        if not np.issubdtype(x.dtype, np.floating):
            raise DpmcError(f"data {self.name!r}: dtype {x.dtype}, allowed a floating-point type")
        if not np.isfinite(np.sum(x)):
            row, column = np.argwhere(~np.isfinite(x))[0]
            where = f"data {self.name!r}: row {row}, column {column}"
            raise DpmcError(f"{where} is {x[row, column]}, allowed a finite number")
        if self.bounds_source not in ("public", "data"):
            raise DpmcError(f"bounds_source: {self.bounds_source!r}, allowed 'public' or 'data'")

    @property
    def num_rows(self) -> int:
        """Number of rows, public under the substitution relation."""
        return int(self.x.shape[0])


@dataclass(frozen=True)
class Model:
    """A posterior over private rows, written once for one row.

    Every function may be plain Python that ``numba.njit`` can compile, or already
    compiled. The two row functions take tuples of scalars: the coefficients of a
    parameter, then the features of a row. The library fuses them into reductions
    over all rows (:mod:`dpmc.rows`).

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
        :mod:`dpmc.sorted_sums`.
    tempering : float
        Exponent T in (0, 1] of the likelihood.
    lipschitz : float, optional
        A bound on the Euclidean norm of `gradient` for every admissible row and
        theta. A clip bound at or above it never clips.
    reference : callable ``(Dataset, size, Generator) -> ndarray of shape (size, d)``, optional
        Exact posterior draws, where they can be had.
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
    tempering: float = 1.0
    lipschitz: float | None = None
    reference: Callable[[Dataset, int, np.random.Generator], Array] | None = None

    def __post_init__(self) -> None:
        if self.dim < 1:
            raise DpmcError(f"model {self.name!r}: dim {self.dim}, allowed an integer >= 1")
        if self.affine and not self.linear:
            raise DpmcError(f"model {self.name!r}: affine True, allowed with linear True only")
        if not 0 < self.tempering <= 1:
            raise DpmcError(f"model {self.name!r}: tempering {self.tempering}, allowed (0, 1]")
        if self.lipschitz is not None and not self.lipschitz > 0:
            raise DpmcError(f"model {self.name!r}: lipschitz {self.lipschitz}, allowed > 0")


@dataclass(frozen=True)
class Budget:
    """What may be spent: (epsilon, delta) under a neighbouring relation.

    Parameters
    ----------
    epsilon : float
        Privacy budget, positive and finite.
    delta : float
        In the open interval (0, 1).
    accountant : str
        Name of the accountant that turns the budget into iterations.
    neighbours : {"replace"}
        Neighbouring relation: data sets of equal, public size that differ in one row, to
        which all accountants refer.
    """

    epsilon: float
    delta: float
    accountant: str
    neighbours: Literal["replace"] = "replace"

    def __post_init__(self) -> None:
        check_epsilon_delta(self.epsilon, self.delta)
        if self.neighbours != "replace":
            raise DpmcError(f"neighbours: {self.neighbours!r}, allowed replace")


def check_epsilon_delta(epsilon: float, delta: float) -> None:
    """Refuse an epsilon that is not positive and finite, or a delta outside (0, 1)."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise DpmcError(f"epsilon: {epsilon}, allowed a finite number > 0")
    if not 0 < delta < 1:
        raise DpmcError(f"delta: {delta}, allowed a number in (0, 1)")


@dataclass(frozen=True)
class Guarantee:
    """The privacy that a result really has.

    Parameters
    ----------
    epsilon : float
        ``inf`` where there is none.
    delta : float
        The delta at which `epsilon` holds.
    neighbours : {"replace", "add_remove"}
        Neighbouring relation: one row is substituted, or one is added or removed.
    accountant : str
        Accountant that proves it; empty where there is nothing to prove.
    outside : tuple of str
        Uses of the private data that the guarantee does not cover.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours = "replace"
    accountant: str = ""
    outside: tuple[str, ...] = ()

    @property
    def private(self) -> bool:
        """Whether there is a finite epsilon."""
        return math.isfinite(self.epsilon)

    def __str__(self) -> str:
        if not self.private:
            return "no privacy guarantee (epsilon = inf)"
        text = f"({self.epsilon:.4g}, {self.delta:.3g})-DP, {NEIGHBOURS[self.neighbours]}"
        return text + (f", outside: {', '.join(self.outside)}" if self.outside else "")


# Of what reads the private rows and adds no noise.
NO_GUARANTEE = Guarantee(math.inf, 0.0)


@dataclass(frozen=True)
class Fit:
    """What a run of a method produced.

    Parameters
    ----------
    draws : ndarray of shape (iterations, chains, d) or None
        Stored states, the start point not among them.
    info : mapping of str to ndarray of shape (iterations, chains)
        What was recorded with each stored state.
    totals : mapping of str to ndarray of shape (chains,)
        Counts over all iterations, stored or not: ``num_iterations``, and, where
        the method has them, ``accepted``, ``diverged``, ``ratio_clipped`` of
        ``ratio_rows`` and ``gradient_clipped`` of ``gradient_rows``.
    status : str
        ``"complete"``, or why the run stopped early.
    ledger : tuple of (str, int)
        Each kind of release and how often it was made, all chains together.
    guarantee : Guarantee
        The privacy that the draws really have.
    plan : mapping
        What the budget bought.
    """

    draws: Array | None
    info: Mapping[str, npt.NDArray[Any]]
    totals: Mapping[str, npt.NDArray[Any]]
    status: str
    ledger: tuple[tuple[str, int], ...]
    guarantee: Guarantee
    plan: Mapping[str, Any] = field(default_factory=dict)

    def kept(self) -> Array:
        """Return the draws after warm-up, shape (kept, chains, d).

        Of the k + 1 states from the start point on, rows int((k - 1) / 2) + 1 to k.

        Raises
        ------
        DpmcError
            If the run has no draws.
        """
        if self.draws is None:
            raise DpmcError(f"fit: no draws (status {self.status!r}), allowed a fit with draws")
        return self.draws[max(0, (len(self.draws) - 1) // 2) :]

    def to_arviz(self) -> Any:
        """Return the draws after warm-up as ``arviz.InferenceData`` with variable ``theta``."""
        import arviz

        kept = self.kept()
        first = 0 if self.draws is None else len(self.draws) - len(kept)
        stats = {name: np.moveaxis(values[first:], 1, 0) for name, values in self.info.items()}
        return arviz.from_dict(
            posterior={"theta": np.moveaxis(kept, 1, 0)},
            sample_stats=stats or None,
            attrs={"guarantee": str(self.guarantee), "status": self.status},
        )

    def fraction(self, counted: str, of: str) -> float:
        """Return the ratio of two totals over all chains; NaN where the method has none."""
        if counted not in self.totals or not self.totals[of].sum():
            return math.nan
        return float(self.totals[counted].sum() / self.totals[of].sum())
