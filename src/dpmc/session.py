"""One budget for many analyses, on disk.

Every part of a session is a budget of Gaussian releases (:mod:`dpmc.privacy.budgets`) that is paid
for as a whole before the first of them. So all releases of all parts are one adaptive sequence
whose sum of 1 / z^2 stays within the mu^2 of the session, and are mu-GDP together.
"""

from __future__ import annotations

import functools
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from dpmc import checks
from dpmc.families.regression import regression
from dpmc.fits import Fit
from dpmc.fitting import fit
from dpmc.journals import Journal
from dpmc.privacy import events
from dpmc.privacy.budgets import GaussianBudget, paid_by
from dpmc.privacy.clipped import Clipped, V, check_value, number
from dpmc.privacy.ledger import Ledger
from dpmc.random_bits import cryptographic
from dpmc.shards.federation import Federation
from dpmc.shards.units import PERSON
from dpmc.types import (
    NEIGHBOURS,
    ROW,
    Dataset,
    DpmcError,
    Guarantee,
    Model,
    Neighbours,
    check_epsilon,
    check_epsilon_delta,
    collected,
    frames,
    gaussian_curve,
    is_frame,
    is_integer,
    is_real,
    labels,
)

FORMAT = 1
# Shares that floating point made a little larger than meant still add up to one.
LESS = 1 - Fraction(1, 2**40)
WIDEST = 60
# What a guarantee names as outside of it, of a column that a session was split by.
PUBLIC = "the column %r, which is public"
Level = tuple[str, str | int]
# What an entry of such a column is at most; others are of no level.
PLAIN = str, bytes, int, float
# Why a part is not given what `dpmc.fit` and `dpmc.regression` are.
OTHERWISE = {
    "delta": "a part has the delta of its session",
    "method": "a session counts Gaussian releases from all rows alone, as the automatic method's",
    "neighbours": "a session has one relation, that it was made with",
    "noise": "that of a session is discrete",
    "seed": "nobody is to know the noise of a session",
}


class Part(NamedTuple):
    """A part of a session that was paid for, all of its budget.

    Parameters
    ----------
    when : str
        Date and time in UTC.
    what : str
    epsilon : float
        Of the part alone, at the delta of the session.
    share : float
        Of the mu^2 of the session.
    """

    when: str
    what: str
    epsilon: float
    share: float


class Session:
    """One budget for many analyses of the same rows, kept in a file.

    Parts are asked for by `epsilon`, which a part alone would have at the delta of the session, or
    by their `share` of its mu^2: the squares of mu add up. Before a part releases anything, all of
    it is on the disk as spent, also if the computer then fails. What is refused before costs
    nothing. Threads may share a session; it is neither copied nor pickled.

    Parameters
    ----------
    epsilon, delta : float
        Budget of all parts together.
    path : path of a file
        Journal of the session: made where there is none, otherwise opened with what is left. One
        process may have it open at a time. It holds no private value.
    neighbours : {"replace", "add_remove"}
        What the budget is for, in all parts, as of `dpmc.fit`.

    Raises
    ------
    DpmcError
        If an argument is refused; or if the journal is open elsewhere, is that of another budget,
        is a copy, or was changed or shortened.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dpmc.privacy import asserted
    >>> ages = np.random.default_rng(0).uniform(18, 80, 10_000)
    >>> mean = asserted(float(ages.mean()), sensitivity=(80 - 18) / 10_000)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     session = Session(epsilon=2, delta=1e-6, path=f"{folder}/study.budget")
    ...     noisy = session.release(mean, epsilon=0.5, label="mean age")
    ...     session.close()
    >>> bool(abs(noisy - ages.mean()) < 1)
    True
    >>> [part.what for part in session.parts], 1.9 < session.remaining < 2
    (['mean age'], True)
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        path: str | os.PathLike[str],
        neighbours: Neighbours = "replace",
    ) -> None:
        check_epsilon_delta(epsilon, delta)
        try:
            usable = isinstance(os.fspath(path), str) and b"\0" not in os.fsencode(path)
        except (TypeError, UnicodeError):
            usable = False
        if not usable:
            raise DpmcError(f"`path` must be the path of a file, got {path!r}")
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.mu = GaussianBudget.of(epsilon, delta).mu
        checks.one_of("neighbours", neighbours, tuple(NEIGHBOURS))
        self.neighbours = neighbours
        # What all parts have.
        self._terms: dict[str, Any] = {"delta": self.delta, "neighbours": neighbours}
        terms: dict[str, Any] = {"session": FORMAT, "epsilon": self.epsilon, "delta": self.delta}
        terms |= {} if neighbours == "replace" else {"neighbours": neighbours}
        self._journal = Journal(Path(path), terms)
        # Column and level that this is the part of, as of `split`.
        self._level: Level | None = None
        # By level. Exact, and as short as its terms: these are squares of floats.
        self._spent: defaultdict[Level | None, Fraction] = defaultdict(Fraction)
        for one in self._journal.entries:
            self._spent[_level_of(one)] += Fraction(one["mu"]) ** 2

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of all parts together, spent or not."""
        levels = [level for level in (*self._spent, self._level) if level is not None]
        outside = dict.fromkeys(PUBLIC % column for column, _ in levels)
        return Guarantee(
            self.epsilon,
            self.delta,
            self.neighbours,
            "gaussian",
            outside=tuple(outside),
            unit=self._unit() or ROW,
            noise="discrete",
        )

    @property
    def parts(self) -> tuple[Part, ...]:
        """Parts that were paid for so far."""
        found = []
        for entry in tuple(self._journal.entries):
            square = Fraction(entry["mu"]) ** 2
            epsilon = gaussian_curve.epsilon_of_loss(float(square) / 2, self.delta)
            share = float(square / Fraction(self.mu) ** 2)
            level = _level_of(entry)
            what = entry["what"] + ("" if level is None else f" ({level[0]} = {level[1]})")
            found.append(Part(entry["when"], what, epsilon, share))
        return tuple(found)

    @property
    def remaining(self) -> float:
        """Largest epsilon that one more part may have, rounded down; 0 where there is none."""
        left = self._left()
        return self.epsilon if left == Fraction(self.mu) ** 2 else self._affordable(left)

    def split(self, column: str, levels: Sequence[str | int]) -> dict[str | int, Session]:
        """Sessions of the rows of each level of a public column, which share one budget.

        A row has one level, so that of parts of several levels the dearest counts. Who is at which
        level is taken for public: the guarantee says so.

        Parameters
        ----------
        column : str
            Of the tables of all parts; a model sees the other columns.
        levels : sequence of str or int
            Known beforehand. Rows of other levels are in none.

        Returns
        -------
        dict of Session by level
            `fit` and `regression`, of a formula, take tables and leave out rows of other levels. Of
            a `release` it is the caller's word that no other rows are in it.

        Raises
        ------
        DpmcError
            If the column has no name, levels are no different texts and integers, or the session
            is that of a level.
        """
        if self._level is not None:
            raise DpmcError(f"`split` must be of a whole session, got that of {self._level[1]!r}")
        if not isinstance(column, str) or not column:
            raise DpmcError(f"`column` must be the name of a column, got {column!r}")
        given = [levels] if isinstance(levels, str) else list(levels)
        plain = all(isinstance(one, str) or is_integer(one) for one in given)
        if not plain or len(given) < 2 or len({*given}) < len(given):
            raise DpmcError(
                f"`levels` must be at least two different texts or integers, got {given}"
            )
        found = {}
        for level in given:
            one = found[level] = object.__new__(type(self))
            one.__dict__ |= self.__dict__
            one._level = column, level if isinstance(level, str) else int(level)
        return found

    def fit(
        self,
        model: Model,
        data: Any,
        *,
        epsilon: float | None = None,
        share: float | None = None,
        label: str = "",
        **options: Any,
    ) -> Fit:
        """Posterior of a model, as of `dpmc.fit` by the automatic method, for a part.

        Parameters
        ----------
        model : Model
        data : Dataset, ndarray of shape (n, p), a data frame of numbers, or a folder
            The private rows, which are here, with no bounds taken from them.
        epsilon, share : float
            Of the part; one of them.
        label : str
            What the part is called, which is public; by default the name of the model.
        **options
            As of `dpmc.fit`, without what the session decides.

        Returns
        -------
        Fit
            Its guarantee is that of the part alone.

        Raises
        ------
        DpmcError
            If an argument is refused, or the part costs more than is left, before any row is used.
        """
        told = _label(label, f"fit of {model.name}" if isinstance(model, Model) else "")
        if isinstance(data, Federation):
            raise DpmcError("`data` must be rows that are here, got a federation")
        if isinstance(data, Dataset) and data.bounds_source != "public":
            raise DpmcError("`data` must have public bounds in a session, got bounds from the data")
        unit = self._unit_of(options)
        afforded = self._part(epsilon, share, options)
        with paid_by(functools.partial(self._pay, told, unit=unit)):
            found = fit(
                model, self._rows(data, bare=True), epsilon=afforded, **self._terms, **options
            )
        return self._named(found)

    def regression(
        self,
        x: Any,
        y: Any,
        *,
        epsilon: float | None = None,
        share: float | None = None,
        label: str = "",
        **options: Any,
    ) -> Fit:
        """Posterior of a regression, as of `dpmc.regression`, for a part.

        Parameters
        ----------
        x, y
            As of `dpmc.regression`: private arrays, or a formula and a table.
        epsilon, share, label
            As of `fit`; by default the label is the formula.
        **options
            As of `dpmc.regression`, without what the session decides.

        Returns
        -------
        Fit
            Its guarantee is that of the part alone.

        Raises
        ------
        DpmcError
            As of `fit`.
        """
        told = _label(label, x if isinstance(x, str) else "regression")
        if self._level is not None and not isinstance(x, str):
            raise DpmcError(f"`x` must be a formula in a split, got {type(x).__name__}")
        unit = self._unit_of(options)
        afforded = self._part(epsilon, share, options)
        with paid_by(functools.partial(self._pay, told, unit=unit)):
            found = regression(x, self._rows(y), epsilon=afforded, **self._terms, **options)
        return self._named(found)

    def release(
        self,
        value: Clipped[V],
        *,
        epsilon: float | None = None,
        share: float | None = None,
        noise_multiplier: float | None = None,
        label: str = "",
    ) -> V:
        """Value with discrete Gaussian noise on it, for a part.

        Parameters
        ----------
        value : Clipped
            Private, with its sensitivity: `dpmc.privacy.asserted` where a user answers for it.
        epsilon, share, noise_multiplier : float
            Of the part, or the standard deviation of its noise over the sensitivity; one of them.
        label : str
            What the part is called, which is public.

        Returns
        -------
        float or ndarray
            As of `dpmc.privacy.Ledger.release`.

        Raises
        ------
        DpmcError
            If an argument is refused, or the part costs more than is left, before noise is drawn.
        """
        told = _label(label, "release")
        if not isinstance(value, Clipped):
            raise DpmcError(
                "`value` must be one that carries its sensitivity, as "
                f"dpmc.privacy.asserted(value, sensitivity) is one, got {type(value).__name__}"
            )
        check_value(value.value)
        if noise_multiplier is None:
            mu = GaussianBudget.of(self._part(epsilon, share, {}), self.delta).mu
        else:
            _refuse_beside("noise_multiplier", epsilon, share)
            noise_multiplier = number("noise_multiplier", noise_multiplier)
            events.gaussian(noise_multiplier)
            mu = 1 / noise_multiplier
            self._refuse_beyond(mu, "noise_multiplier", noise_multiplier)
        with paid_by(functools.partial(self._pay, told)):
            ledger = Ledger(GaussianBudget(mu), "discrete", self.neighbours)
        multiplier = ledger.least_multiplier() if noise_multiplier is None else noise_multiplier
        noisy: V = ledger.release(value, multiplier, cryptographic())
        return noisy

    def close(self) -> None:
        """Let another process open the journal; what was spent can still be read."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """Table of what was spent on what, and when."""
        lines = [
            f"{self.guarantee}, all parts together; epsilon {self.remaining:.4g} is left",
            f"{'when (UTC)':<21}{'epsilon':<9}{'% of mu^2':<11}what",
        ]
        lines += [
            f"{part.when:<21}{part.epsilon:<9.4g}{100 * part.share:<11.3g}{part.what}"
            for part in self.parts
        ]
        return "\n".join(lines)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise DpmcError("a Session must be passed on as it is: a copy would spend what is left too")

    def _pay(self, what: str, mu: float, unit: str = "") -> None:
        """Put a part on the disk, or refuse it."""
        with self._journal.lock:
            self._refuse_beyond(mu, "mu", mu)
            self._refuse_other(unit)
            self._refuse_levels(unit)
            # Also where it is not known to be on the disk.
            self._spent[self._level] += Fraction(mu) ** 2
            when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
            level = {} if self._level is None else {"level": self._level}
            protects = {"unit": unit} if unit else {}
            self._journal.append({"when": when, "what": what, "mu": mu, **level, **protects})

    def _unit(self) -> str:
        """What fits protect, empty before the first of them."""
        return next((one["unit"] for one in self._journal.entries if "unit" in one), "")

    def _unit_of(self, options: Mapping[str, Any]) -> str:
        """What a fit is to protect, refused where it is not what others do."""
        unit = options.get("unit")
        if unit is not None and self._level is not None:
            raise DpmcError("`unit` must be None in a split: a person may have rows at two levels")
        name = ROW if unit is None else unit if isinstance(unit, str) else PERSON
        self._refuse_other(name)
        return name

    def _refuse_other(self, unit: str) -> None:
        there = self._unit()
        if unit and there and unit != there:
            raise DpmcError(f"`unit` must be that of all fits of the session, {there}, got {unit}")

    def _refuse_levels(self, unit: str) -> None:
        """Refuse parts of levels beside parts that protect persons, who may be at two."""
        protected = unit or self._unit()
        split = self._level is not None or any("level" in one for one in self._journal.entries)
        if split and protected not in ("", ROW):
            raise DpmcError(
                f"a session that protects a {protected} must have no part at a level of a split, "
                f"and one with such parts no `unit`: a {protected} may have rows at two levels"
            )

    def _left(self) -> Fraction:
        """Rest of mu^2 of the row that most is known of, exactly."""
        most: defaultdict[str | None, Fraction] = defaultdict(Fraction)
        for level, spent in tuple(self._spent.items()):
            column = None if level is None else level[0]
            apart = self._level is not None and column == self._level[0] and level != self._level
            if not apart:
                most[column] = max(most[column], spent)
        return Fraction(self.mu) ** 2 - sum(most.values())

    def _rows(self, data: Any, bare: bool = False) -> Any:
        """Rows of a table that are of the level of this session, or all data.

        Parameters
        ----------
        data : data frame or query
        bare : bool
            Whether without the column that says so.
        """
        if self._level is None:
            return data
        column, level = self._level
        frame = collected(data)
        if not is_frame(frame) or labels(frame).count(column) != 1:
            raise DpmcError(f"`data` must be a table with one column {column!r}, as was split")
        entries = frames.entries(frames.column(frame, column)).tolist()
        alike = (level, level.encode()) if isinstance(level, str) else (level,)  # texts of Arrow
        here = np.array([isinstance(one, PLAIN) and one in alike for one in entries])
        shown = [one for one in labels(frame) if not bare or one != column]
        return frame.loc[here, shown] if hasattr(frame, "loc") else frame.filter(here).select(shown)

    def _named(self, found: Fit) -> Fit:
        """Fit that says what its rows were chosen by."""
        if self._level is None:
            return found
        outside = (*found.guarantee.outside, PUBLIC % self._level[0])
        return replace(found, guarantee=replace(found.guarantee, outside=outside))

    def _part(self, epsilon: Any, share: Any, options: Mapping[str, Any]) -> float:
        """Epsilon of a part that can be afforded."""
        for name, reason in OTHERWISE.items():
            if name in options:
                raise DpmcError(f"`{name}` must be left out in a session: {reason}")
        if share is None:
            if epsilon is None:
                raise DpmcError("`epsilon` or `share` must be given, got neither")
            check_epsilon(epsilon)
            afforded, name = float(epsilon), "epsilon"
        else:
            _refuse_beside("share", epsilon)
            if not is_real(share) or not 0 < share <= 1:
                raise DpmcError(f"`share` must be in (0, 1], got {share!r}")
            square = Fraction(float(share)) * Fraction(self.mu) ** 2 * LESS
            afforded, name = self._affordable(square), "share"
            if not afforded:
                raise DpmcError(f"`share` must buy an epsilon above 0, got {share!r}")
        asked = epsilon if share is None else share
        self._refuse_beyond(GaussianBudget.of(afforded, self.delta).mu, name, asked)
        return afforded

    def _affordable(self, square: Fraction) -> float:
        """Largest epsilon, rounded down, of a part that costs at most `square` of mu^2."""
        loss = max(float(square) / 2, 0.0)
        epsilon = min(float(gaussian_curve.epsilon_of_loss(loss, self.delta)), self.epsilon)
        while epsilon >= gaussian_curve.LEAST_EPSILON:
            if Fraction(GaussianBudget.of(epsilon, self.delta).mu) ** 2 <= square:
                return epsilon
            epsilon *= 1 - 1e-8
        return 0.0

    def _refuse_beyond(self, mu: float, name: str, asked: float) -> None:
        """Refuse a part that costs more than is left."""
        left = self._left()
        if Fraction(mu) ** 2 > left:
            share = max(float(left / Fraction(self.mu) ** 2), 0.0)
            raise DpmcError(
                f"`{name}` must fit into what is left of the session, epsilon {self.remaining!r} "
                f"or {share:.4g} of mu^2, got {asked!r}"
            )


def _level_of(entry: Mapping[str, Any]) -> Level | None:
    """Column and level of a part, None where it is of all rows."""
    return tuple(entry["level"]) if "level" in entry else None


def _refuse_beside(name: str, *others: object) -> None:
    if any(one is not None for one in others):
        raise DpmcError(f"`{name}` must be the only size of a part, got another beside it")


def _label(label: str, usual: str) -> str:
    """Name of a part, on one line."""
    if not isinstance(label, str) or not label.isprintable():
        raise DpmcError(f"`label` must be a text on one line, got {label!r}")
    shown = "".join(one if one.isprintable() else " " for one in label or usual)
    return " ".join(shown.split())[:WIDEST]
