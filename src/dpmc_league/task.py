"""Tasks: rows, a model, public bounds and exact draws, frozen under a name with a version."""

from __future__ import annotations

import functools
import hashlib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from dpmc.checks import at_least
from dpmc.numerics.compiled import compile_once
from dpmc.numerics.source_digest import module_names
from dpmc.registry import listed, refusal
from dpmc.types import Array, Dataset, DpmcError, Model
from dpmc_league import references
from dpmc_league.references import Quality

CATALOGUE = "dpmc_league.catalogue"
# Far more than the last bits of a float, far less than a sixth digit.
AWAY_FROM_ZERO = 1 + 1e-9


@dataclass(frozen=True)
class Statistic:
    """A mean over rows that holds all that they say of theta, where there is one.

    Parameters
    ----------
    summaries : callable ``(rows) -> ndarray of shape (n, q)``
        What each row contributes, about a public centre.
    bound : float
        Public bound on the Euclidean norm of a summary.
    draw : callable ``(mean, variance, size, rng) -> ndarray of shape (size, d)``
        Exact draws given a mean of summaries that has independent normal errors of this
        variance; with variance 0, those of the posterior given all rows.
    exact_spread : float, optional
        Standard deviation s such that the posterior is that of a mean known up to N(0, s^2) in each
        entry, the prior aside; where it is normal in the space of the mean.
    transform : callable ``(means) -> thetas``, optional
        From the space of the mean to theta, for a posterior that is normal in the former.
    """

    summaries: Callable[[Array], Array]
    bound: float
    draw: Callable[[Array, float, int, np.random.Generator], Array]
    exact_spread: float | None = None
    transform: Callable[[Array], Array] | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """A private posterior to be sampled.

    Parameters
    ----------
    name : str
        Such as ``"gaussian-10-v1"``; what it names never changes.
    title : str
        In a few words.
    model : Model
    rows : ndarray of shape (n, p)
        The private rows.
    names : tuple of str
        Of the components of theta.
    bounds : mapping of str to float
        Public constants that bound a row.
    start : ndarray of shape (d,)
        A public point to begin at.
    delta : float
    modes : ndarray of shape (m, d), optional
        Where the search for modes of the reference begins; public start by default.
    fresh : ndarray of shape (m, p), optional
        Rows of the same law, not private, for predictive scores; none where `model` is no density.
    statistic : Statistic, optional
    shape : ndarray of shape (d, d), optional
        A basis that whitens the posterior, where that is public: ``shape @ shape.T`` is its
        covariance.
    sample : callable ``(rows, size, rng) -> ndarray of shape (size, d)``, optional
        Exact draws; without it long chains that are checked (:mod:`dpmc_league.references`).
    """

    name: str
    title: str
    model: Model
    rows: Array
    names: tuple[str, ...]
    bounds: Mapping[str, float]
    start: Array
    delta: float = 1e-6
    modes: Array | None = None
    fresh: Array | None = None
    statistic: Statistic | None = None
    shape: Array | None = None
    sample: Callable[[Array, int, np.random.Generator], Array] | None = field(default=None)

    @property
    def num_rows(self) -> int:
        """Number of rows, public."""
        return len(self.rows)

    @property
    def dim(self) -> int:
        """Dimension d of theta."""
        return self.model.dim

    @property
    def dataset(self) -> Dataset:
        """The rows as a data set with public bounds."""
        return Dataset(self.name, self.rows, self.bounds)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of rows, bounds, names and what the model says of a few of the rows."""
        return content_digest(self)

    def first(self, num_rows: int) -> Task:
        """Same problem with the first of its rows alone."""
        at_least("num_rows", num_rows, 1)
        if num_rows > self.num_rows:
            raise DpmcError(f"`num_rows` must be at most {self.num_rows}, got {num_rows}")
        if self.sample is not None or self.statistic is not None or self.shape is not None:
            raise DpmcError(f"`num_rows` must be left out: {self.name} has closed forms")
        return replace(self, name=f"{self.name}-first-{num_rows}", rows=self.rows[:num_rows])

    def rounded(self, rows: Array) -> Task:
        """Same task with rows that differ in their last digits.

        Its digest and its reference are those of its own rows.
        """
        if rows.shape != self.rows.shape or not np.allclose(rows, self.rows, rtol=1e-12, atol=0):
            raise DpmcError(f"`rows` must be those of {self.name} but for their last digits")
        self.reference()  # kept by the digest, so that it is never made from other rows
        other = replace(self, rows=rows)
        other.__dict__["digest"] = self.digest
        return other

    def reference(self, num_draws: int = references.NUM_DRAWS) -> Array:
        """Draws from the posterior without privacy, shape (num_draws, d).

        They are computed once and kept in the user's cache.
        """
        return self._draws(num_draws)[0]

    def quality(self) -> Quality:
        """How the reference draws were made, and what was checked of them."""
        return self._draws(1)[1]

    def _draws(self, num_draws: int) -> tuple[Array, Quality]:
        at_least("num_draws", num_draws, 1)
        if num_draws > references.NUM_DRAWS:
            raise DpmcError(f"`num_draws` must be at most {references.NUM_DRAWS}, got {num_draws}")
        source = references.Source(self.model, self.dataset, self.start, self.modes, self.sample)
        draws, quality = references.cached(self.name, self.digest, source)
        return draws[:num_draws], quality


def content_digest(task: Task) -> str:
    """SHA-256 of what a task consists of.

    Values of the model are taken to six digits, as functions of the machine's mathematical library
    may differ in the last: see :func:`written`.
    """
    digest = hashlib.sha256()
    parts = [task.rows, *([] if task.fresh is None else [task.fresh])]
    for part in parts:
        digest.update(repr(part.shape).encode())
        digest.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
    model = task.model
    text = [
        task.name,
        model.dim,
        model.tempering,
        task.names,
        sorted(task.bounds.items()),
        task.delta,
        [written(value) for value in _probed(task)],
    ]
    digest.update(repr(text).encode())
    return digest.hexdigest()


def written(value: float) -> str:
    """Number to six digits, the same whatever its last bits are.

    Rows of six decimals have values that lie halfway between two numbers of six digits. There
    the last bit of a float would decide, which depends on the processor: such a value goes away
    from zero.
    """
    return f"{value * AWAY_FROM_ZERO:.6g}"


def _probed(task: Task) -> list[float]:
    model = task.model
    x = task.rows[:5]
    features = np.asarray((model.features or np.transpose)(x), dtype=np.float64)
    values: list[float] = []
    coefficients = None if model.coefficients is None else compile_once(model.coefficients)
    likelihood, gradient = compile_once(model.log_likelihood), compile_once(model.gradient)
    for shift in (0.0, 0.1):
        theta = task.start + shift
        c = tuple(map(float, theta if coefficients is None else coefficients(theta)))
        values.append(float(model.log_prior(theta)) - float(model.log_prior(task.start)))
        for row in map(tuple, features.T.tolist()):
            values.append(float(likelihood(c, row)))
            values += map(float, gradient(c, row))
    return values


def described(name: str) -> str:
    """What a task is, in a line, without making its rows."""
    module = importlib.import_module(f"{CATALOGUE}.{name.replace('-', '_')}")
    return (module.__doc__ or "").partition("\n")[0]


def task(name: str) -> Task:
    """Task by its name, checked against the digest that it was frozen with.

    Parameters
    ----------
    name : str
        One of `tasks`.

    Returns
    -------
    Task
        With ``rows``, ``model``, ``bounds``, ``delta``, ``names`` and ``reference(num_draws)``.

    Raises
    ------
    DpmcError
        If there is no such task, or its content is not what it was.
    UnavailableError
        If its rows are not on this machine.

    Examples
    --------
    >>> one = task("circle-v1")
    >>> one.rows.shape, one.names
    ((100000, 1), ('theta_1', 'theta_2'))
    >>> one.reference(1000).shape
    (1000, 2)
    """
    return _built(known(name))


def known(name: str) -> str:
    """Name of a task, refusing what is none."""
    if name not in tasks():
        raise DpmcError(refusal("tasks", f"one of {listed(tasks())}", name, tasks()))
    return name


@functools.lru_cache(maxsize=4)
def _built(name: str) -> Task:
    module = importlib.import_module(f"{CATALOGUE}.{name.replace('-', '_')}")
    found: Task = module.build()
    if found.digest != module.DIGEST:
        raise DpmcError(
            f"task {name!r}: the digest of its content must be {module.DIGEST[:16]}..., got "
            f"{found.digest[:16]}..."
        )
    return found


def tasks() -> tuple[str, ...]:
    """Names of all tasks.

    Examples
    --------
    >>> "gaussian-10-v1" in tasks()
    True
    """
    return tuple(name.replace("_", "-") for name in sorted(module_names(CATALOGUE)))
