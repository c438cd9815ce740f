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
InvalidRows = Literal["refuse", "zero"]
# Columns of `Fit.info` that are functions of released numbers and public randomness alone.
PUBLIC_INFO = ("accepted", "diverged")
# Counts of private rows, which are not, and what a guarantee names them by.
CLIP_COUNTS = ("ratio_clipped", "gradient_clipped")
CLIPS_OUTSIDE = "clip counts in info and totals"
CLIP_FRACTIONS_OUTSIDE = "clip fractions"


class DpmcError(ValueError):
    """Bad input, described in one line: what must be, and what was passed instead.

    Examples
    --------
    >>> try:
    ...     Budget(epsilon=-1, delta=1e-6, accountant="gaussian")
    ... except DpmcError as error:
    ...     print("-1" in str(error))
    True
    """


class MemoryLimitError(DpmcError):
    """What is asked for takes more memory than this machine has; nothing was begun."""


class UnavailableError(DpmcError):
    """Data that are not available on this machine, with what would help, in one line."""


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
    invalid_rows : {"refuse", "zero"}
        What becomes of rows with an entry that is not finite. To refuse them depends on
        private rows, and no guarantee covers it. ``"zero"`` makes all of such a row NaN, in
        a copy: it contributes nothing to any sum.

    Raises
    ------
    DpmcError
        If `x` is not a two-dimensional floating-point array with at least one row, or not
        finite and to be refused; the message names a column, never a row or a value.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Dataset("rows", np.zeros((5, 2)), bounds={"row_norm": 1.0})
    >>> rows.num_rows
    5
    """

    name: str
    x: Array
    bounds: Mapping[str, float] = field(default_factory=dict)
    bounds_source: Literal["public", "data"] = "public"
    truth: Array | None = None
    invalid_rows: InvalidRows = "refuse"

    def __post_init__(self) -> None:
        if np.ma.isMaskedArray(self.x):
            raise DpmcError(
                f"data {self.name!r}: `x` must be an ordinary array (with NaN in masked entries "
                "and invalid_rows='zero'), got a masked one"
            )
        if not isinstance(self.name, str):
            raise DpmcError(f"`name` must be a text, got {self.name!r}")
        x = _real_numbers(self.name, self.x)
        if x.ndim != 2 or 0 in x.shape:
            raise DpmcError(
                f"data {self.name!r}: `x` must have rows and columns, got shape {x.shape}"
            )
        if x is not self.x:
            object.__setattr__(self, "x", x)
        _check_bounds(self.name, self.bounds)
        if self.bounds_source not in ("public", "data"):
            raise DpmcError(
                f"`bounds_source` must be 'public' or 'data', got {self.bounds_source!r}"
            )
        if self.invalid_rows not in ("refuse", "zero"):
            raise DpmcError(f"`invalid_rows` must be 'refuse' or 'zero', got {self.invalid_rows!r}")
        columns = _columns_not_finite(x)
        if columns and self.invalid_rows == "refuse":
            raise DpmcError(
                f"data {self.name!r}: column {columns[0]} must hold finite numbers only, "
                "unless `invalid_rows` is 'zero'"
            )
        if columns:
            x = x.copy(order="K")
            x[~np.isfinite(x).all(axis=1)] = np.nan
            object.__setattr__(self, "x", x)

    @classmethod
    def of(cls, name: str, data: Any, invalid_rows: InvalidRows = "refuse") -> Dataset:
        """Return the data set of an array, nested list or data frame of real numbers.

        Raises
        ------
        DpmcError
            If `data` is no array of real numbers, or its rows are refused.
        """
        return cls(name, data, invalid_rows=invalid_rows)

    @property
    def num_rows(self) -> int:
        """Number of rows, public under the substitution relation."""
        return int(self.x.shape[0])


def _real_numbers(name: str, data: Any) -> Array:
    """Return an array of floating-point numbers of any real numbers.

    Raises
    ------
    DpmcError
        If they are no real numbers or their rows differ in length; nothing is said of a value.
    """
    kind = "None" if data is None else type(data).__name__
    if is_frame(data):
        return frame_numbers(data, f"data {name!r}: ")
    try:
        x = np.asarray(data)
    except ValueError:
        raise DpmcError(f"data {name!r}: must be rows of equal length, got {kind}") from None
    if x.ndim == 0:
        raise DpmcError(f"data {name!r}: must be rows of numbers, got {kind}")
    if x.dtype.kind == "O" and x.ndim == 2:  # columns that differ in type
        columns = [np.array(column.tolist()) for column in x.T]
        if all(column.ndim == 1 and column.dtype.kind in "biuf" for column in columns):
            x = np.stack([column.astype(np.float64) for column in columns], axis=1)
    if x.dtype.kind in "biu":
        x = x.astype(np.float64)
    if x.dtype.kind != "f":
        raise DpmcError(f"data {name!r}: the entries must be real numbers, got {x.dtype}")
    return x


def is_frame(data: object) -> bool:
    """Return whether data are a data frame, of pandas, polars or alike: named columns."""
    return hasattr(data, "columns") and hasattr(data, "to_numpy")


def frame_numbers(frame: Any, told: str) -> Array:
    """Return the numbers of a data frame, shape (n, p); what is missing is NaN.

    Parameters
    ----------
    frame : data frame
    told : str
        Before the message.

    Raises
    ------
    DpmcError
        Naming the first column that does not hold real numbers; nothing is said of a value.
    """
    columns = []
    for k, label in enumerate(frame.columns):
        column = frame.iloc[:, k] if hasattr(frame, "iloc") else frame[label]
        values = np.asarray(column)
        if values.dtype.kind == "O":
            entries = [math.nan if _is_missing(entry) else entry for entry in values]
            if all(is_real(entry) or isinstance(entry, bool | np.bool_) for entry in entries):
                values = np.array(entries, dtype=np.float64)
        if values.dtype.kind not in "biuf":
            raise DpmcError(
                f"{told}column {str(label)!r} must hold real numbers, got dtype {column.dtype}"
            )
        columns.append(values.astype(np.float64, copy=False))
    return np.stack(columns, axis=1) if columns else np.empty((len(frame), 0))


def _is_missing(entry: object) -> bool:
    """Return whether an entry of a data frame says that there is no number."""
    return entry is None or type(entry).__name__ == "NAType"


def _check_bounds(name: str, bounds: Any) -> None:
    if not isinstance(bounds, Mapping):
        raise DpmcError(f"data {name!r}: `bounds` must be a mapping of numbers, got {bounds!r}")
    for key, value in bounds.items():
        if not (is_real(value) and math.isfinite(value)):
            raise DpmcError(f"data {name!r}: bound {key!r} must be a finite number, got {value!r}")


def _columns_not_finite(x: Array) -> list[int]:
    """Return the columns with an entry that is not finite; a finite sum rules out all of them."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(x)):
            return []
    return [k for k, column in enumerate(x.T) if not np.isfinite(column).all()]


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

    Examples
    --------
    >>> Budget(epsilon=4, delta=1e-6, accountant="gaussian").neighbours
    'replace'
    """

    epsilon: float
    delta: float
    accountant: str
    neighbours: Literal["replace"] = "replace"

    def __post_init__(self) -> None:
        check_epsilon_delta(self.epsilon, self.delta)
        if not isinstance(self.accountant, str):
            raise DpmcError(
                f"`accountant` must be the name of an accountant, got {self.accountant!r}"
            )
        if self.neighbours != "replace":
            raise DpmcError(f"`neighbours` must be 'replace', got {self.neighbours!r}")


def is_real(value: object) -> bool:
    """Return whether a value is a real number of Python or NumPy; a flag is none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_integer(value: object) -> bool:
    """Return whether a value is an integer of Python or NumPy; a flag is none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_epsilon_delta(epsilon: float, delta: float) -> None:
    """Refuse an epsilon that is not positive and finite, or a delta outside (0, 1)."""
    check_epsilon(epsilon)
    check_delta(delta)


def check_epsilon(epsilon: float, *, zero: bool = False, infinite: bool = False) -> None:
    """Refuse an epsilon that is not positive and finite.

    Parameters
    ----------
    epsilon : float
    zero : bool
        Whether 0 is allowed too, as it is where delta is asked for at an epsilon.
    infinite : bool
        Whether infinity is allowed too, as it is where it means no noise.

    Raises
    ------
    DpmcError
        Also of what is no number.
    """
    real = is_real(epsilon) and (epsilon > 0 or (zero and epsilon == 0))
    if not (real and (infinite or math.isfinite(epsilon))):
        sign = "at least 0" if zero else "positive"
        raise DpmcError(
            f"`epsilon` must be {sign}{'' if infinite else ' and finite'}, got {epsilon!r}"
        )


def check_delta(delta: float | None, needed_by: str = "") -> float:
    """Return delta, refusing one outside (0, 1) or none at all.

    Parameters
    ----------
    delta : float or None
    needed_by : str
        Name of the mechanism that needs it.

    Raises
    ------
    DpmcError
        Also of what is no number.
    """
    if delta is None or not is_real(delta) or not 0 < delta < 1:
        needed = f" for {needed_by}" if needed_by else ""
        raise DpmcError(f"`delta` must be in (0, 1){needed}, got {delta!r}")
    return float(delta)


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

    Examples
    --------
    >>> print(Guarantee(4.0, 1e-6, accountant="gaussian"))
    (4, 1e-06)-DP, substitution of one row
    >>> Guarantee(float("inf"), 0.0).private
    False
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
class Diagnostic:
    """A share of private rows as it was released.

    Parameters
    ----------
    value : float
        In [0, 1], with noise on it.
    standard_error : float
        Standard deviation of the noise, 0 where there is none.
    """

    value: float
    standard_error: float = 0.0


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
        ``ratio_rows`` and ``gradient_clipped`` of ``gradient_rows``. The clip counts are
        there, and in `info`, with exact diagnostics only.
    status : str
        ``"complete"``, or why the run stopped early.
    ledger : tuple of (str, int)
        Each kind of release and how often it was made, all chains together.
    guarantee : Guarantee
        The privacy that the draws really have.
    plan : mapping
        What the budget bought.
    diagnostics : mapping of str to Diagnostic
        Released shares of clipped rows, ``ratio_clipped`` and ``gradient_clipped``.

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.arange(8.0).reshape(4, 1, 2)
    >>> none = Guarantee(float("inf"), 0.0)
    >>> Fit(draws, {}, {}, "complete", (), none).kept().shape
    (3, 1, 2)
    """

    draws: Array | None
    info: Mapping[str, npt.NDArray[Any]]
    totals: Mapping[str, npt.NDArray[Any]]
    status: str
    ledger: tuple[tuple[str, int], ...]
    guarantee: Guarantee
    plan: Mapping[str, Any] = field(default_factory=dict)
    diagnostics: Mapping[str, Diagnostic] = field(default_factory=dict)

    def kept(self) -> Array:
        """Return the draws after warm-up, shape (kept, chains, d).

        Of the k + 1 states from the start point on, rows int((k - 1) / 2) + 1 to k.

        Raises
        ------
        DpmcError
            If the run has no draws.
        """
        if self.draws is None:
            raise DpmcError(f"the fit must have draws, got none (status {self.status!r})")
        return self.draws[max(0, (len(self.draws) - 1) // 2) :]

    def to_arviz(self) -> Any:
        """Return the draws after warm-up as ``arviz.InferenceData`` with variable ``theta``.

        Of `info` it holds what is a function of released numbers, and clip counts where the
        guarantee names them or there is none; released shares are among the attributes.
        """
        import arviz

        kept = self.kept()
        first = 0 if self.draws is None else len(self.draws) - len(kept)
        stats = {
            name: np.moveaxis(values[first:], 1, 0)
            for name, values in self.info.items()
            if self._may_export(name)
        }
        released = {
            f"diagnostics_{name}{suffix}": value
            for name, one in self.diagnostics.items()
            for suffix, value in (("", one.value), ("_standard_error", one.standard_error))
        }
        return arviz.from_dict(
            posterior={"theta": np.moveaxis(kept, 1, 0)},
            sample_stats=stats or None,
            attrs={"guarantee": str(self.guarantee), "status": self.status, **released},
        )

    def _may_export(self, name: str) -> bool:
        named = {CLIPS_OUTSIDE, CLIP_FRACTIONS_OUTSIDE} & set(self.guarantee.outside)
        if not self.guarantee.private or name in PUBLIC_INFO:
            return True
        return name in CLIP_COUNTS and bool(named)

    def fraction(self, counted: str, of: str) -> float:
        """Return the ratio of two totals over all chains; NaN where the method has none.

        Where the count is not there but its share was released, that share.
        """
        if counted in self.diagnostics:
            return self.diagnostics[counted].value
        if counted not in self.totals or not self.totals[of].sum():
            return math.nan
        return float(self.totals[counted].sum() / self.totals[of].sum())


@dataclass(frozen=True)
class NoParams:
    """Parameters of a method that has none."""
