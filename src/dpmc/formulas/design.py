"""Design of a formula: what stands in its columns for a row, made without a look at private rows.

`formulaic` reads the formula, and takes whatever its functions learn of columns (knots, means,
levels, which columns there are and what they are called) from a made-up table over public ranges
and declared levels. Private rows are only put through what that has fixed.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.formulas import columns
from dpmc.formulas.groups import without_groups
from dpmc.formulas.syntax import (
    CATEGORY,
    FUNCTIONS,
    LEARNING,
    OFFSET,
    Levels,
    Uses,
    key,
    refuse_others,
)
from dpmc.types import Array, DpmcError, frames, is_real

INTERCEPT = "Intercept"
CONTEXT = {name: getattr(np, name) for name in FUNCTIONS if name != "I"}
DROP = "drop"


@dataclass(frozen=True)
class Part:
    """Terms that are evaluated together, and the columns that they read.

    Parameters
    ----------
    spec : formulaic.ModelSpec
        With everything that its functions know of columns.
    uses : Uses
    names : tuple of str
        Of the columns that it makes.
    """

    spec: Any
    uses: Uses
    names: tuple[str, ...]

    @classmethod
    def of(cls, terms: list[Any], ranges: Mapping[str, tuple[float, float]], text: str) -> Part:
        """Part of a formula, compiled on a made-up table."""
        uses = Uses()
        for term in terms:
            for factor in term.factors:
                _read(uses, factor, text)
        for name in uses.learned:
            if name not in ranges:
                raise DpmcError(
                    f"`ranges` must have {name!r}, since {', '.join(LEARNING[:-1])} and "
                    f"{LEARNING[-1]} learn from public numbers in place of rows: "
                    f"ranges={{{name!r}: (low, high)}}"
                )
        both = {*uses.numeric} & {*uses.levels}
        if both:
            raise DpmcError(
                f"`formula` must read {min(both)!r} as numbers or by {CATEGORY}(), and not as both"
            )
        from formulaic import Formula

        made_up = columns.made_up(uses, ranges)
        with _quiet(), _refused(text):
            formula = Formula(terms, _ordering="none")
            matrix = formula.get_model_matrix(
                made_up, context=CONTEXT, na_action="ignore", output="numpy"
            )
        return cls(matrix.model_spec, uses, tuple(map(str, matrix.model_spec.column_names)))

    def values(
        self, frame: Any, ranges: Mapping[str, tuple[float, float]], missing: Mapping[str, Any]
    ) -> Array:
        """Columns of rows, shape (n, p): NaN in rows with a missing or impossible entry."""
        table, valid = columns.read(frame, self.uses, ranges, missing)
        with _quiet():
            values = np.array(self.spec.get_model_matrix(table, context=CONTEXT), dtype=np.float64)
        values[~valid] = np.nan
        return values


@dataclass(frozen=True)
class Design:
    """A formula that is compiled, and what is public of its columns.

    Parameters
    ----------
    text : str
    ranges : mapping of str to (float, float)
    missing : mapping of str to number or text
        What is taken for an entry that is missing or impossible, by column.
    response, features : Part
    offset : Part or None
        Terms of which the coefficient is 1.
    groups : Uses
        Reads the column of groups with an intercept of their own, where there are some.
    """

    text: str
    ranges: Mapping[str, tuple[float, float]]
    missing: Mapping[str, Any]
    response: Part
    features: Part
    offset: Part | None
    groups: Uses

    @classmethod
    def of(cls, text: str, ranges: Any = None, missing: Any = DROP) -> Design:
        """Design of a formula, of which no row has been seen.

        Raises
        ------
        DpmcError
            If the formula is none, or what it computes of a row would depend on other rows.
        """
        plain, groups = without_groups(text)
        left, right = _sides(plain)
        ranges = {} if ranges is None else ranges
        missing = {} if isinstance(missing, str) and missing == DROP else missing
        if not isinstance(ranges, Mapping):
            raise DpmcError(f"`ranges` must be a mapping by columns of the formula, got {ranges!r}")
        checked = {name: _range(name, ends) for name, ends in ranges.items()}
        added = [term for term in right if _is_offset(term)]
        rest = [term for term in right if term not in added]
        parts = [Part.of(terms, checked, text) for terms in (left, rest)]
        inner = _inner(added, text)
        offset = Part.of(inner, checked, text) if inner else None
        if offset is not None and (offset.uses.levels or not offset.uses.columns):
            raise DpmcError(f"`formula` must have numbers of rows in {OFFSET}(), got {text!r}")
        found = cls(text, checked, missing, parts[0], parts[1], offset, groups)
        if len(parts[0].names) != (found.classes or 1) or not parts[0].uses.columns:
            raise DpmcError(
                f"`formula` must have one number, or one category, as its response, got {text!r}"
            )
        if INTERCEPT in found.columns:
            raise DpmcError(f"`formula` must read no column {INTERCEPT!r}, the constant: rename it")
        refuse_others(ranges, "ranges", found.columns)
        refuse_others(missing, "missing", found.columns)
        for name, value in missing.items():
            found._check_missing(name, value)
        if not found.names:
            raise DpmcError(f"`formula` must have a term beside the intercept, got {text!r}")
        return found

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that are read."""
        return tuple(dict.fromkeys((*self.response.uses.columns, *self.new_columns)))

    @property
    def new_columns(self) -> tuple[str, ...]:
        """Columns that are read of rows whose response is not known."""
        parts = (self.features,) if self.offset is None else (self.features, self.offset)
        read = [*(part.uses for part in parts), self.groups]
        return tuple(dict.fromkeys(name for uses in read for name in uses.columns))

    @property
    def intercept(self) -> bool:
        """Whether there is a constant before the features."""
        return INTERCEPT in self.features.names

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns but for the constant, categories by their column and level."""
        found = []
        for name in self.features.names:
            if name != INTERCEPT:
                for factor, column in self._categories().items():
                    name = name.replace(factor, column)
                found.append(name.replace("[T.", "["))
        return tuple(found)

    def _categories(self) -> dict[str, str]:
        """Factors that are categories, with the column of each."""
        factors = {one.expr for term in self.features.spec.formula for one in term.factors}
        found = {}
        for factor in factors:
            uses = Uses()
            if factor.startswith(f"{CATEGORY}("):
                uses.expression(factor)
                found[factor] = next(iter(uses.levels))
        return found

    def x(self, frame: Any) -> Array:
        """Features of rows, shape (n, p), without the constant; NaN in rows that do not count."""
        values = self.features.values(frame, self.ranges, self.missing)
        return values[:, [name != INTERCEPT for name in self.features.names]]

    @property
    def classes(self) -> int | None:
        """Number of levels of a response that is a category."""
        return next(map(len, self.response.uses.levels.values()), None)

    def y(self, frame: Any) -> Array:
        """Responses of rows, shape (n,): of a category the place of its level, from 0 on."""
        values = self.response.values(frame, self.ranges, self.missing)
        return values[:, 0] if self.classes is None else values @ np.arange(float(self.classes))

    def added(self, frame: Any) -> Array | None:
        """Sum of the offsets of rows, shape (n,), if there are some."""
        if self.offset is None:
            return None
        values = self.offset.values(frame, self.ranges, self.missing)
        return np.asarray(values.sum(axis=1))

    @property
    def group(self) -> tuple[str, Levels] | None:
        """Column of groups with an intercept of their own, and its levels."""
        return next(iter(self.groups.levels.items()), None)

    def places(self, frame: Any) -> Array:
        """Place of the group of each row among the levels, shape (n,); -1 where it is none."""
        table, valid = columns.read(frame, self.groups, {}, self.missing)
        codes = table.iloc[:, 0].cat.codes.to_numpy(dtype=np.float64)
        return np.where(valid, codes, -1.0)

    def sentences(self) -> Iterator[str]:
        """Formula, and what became of entries that are missing, impossible or out of range."""
        yield f"Formula: {self.text}."
        taken = ", ".join(f"{name} as {value!r}" for name, value in self.missing.items())
        if taken:
            yield f"Missing or impossible entries are read by public values: {taken}."
        yield (
            f"Rows with {'another' if taken else 'a'} missing or impossible entry, such as a level "
            "that is not declared, count as nothing: where that has to do with the response, "
            "estimates are biased."
        )
        if self.ranges:
            ends = [f"{name} {low:g} to {high:g}" for name, (low, high) in self.ranges.items()]
            yield f"Numbers beyond public ranges are taken to their ends: {', '.join(ends)}."

    def values(self) -> dict[str, Any]:
        """What a design can be made of again, as JSON can hold it."""
        ranges = {name: list(ends) for name, ends in self.ranges.items()}
        return {"text": self.text, "ranges": ranges, "missing": dict(self.missing)}

    def _check_missing(self, name: str, value: Any) -> None:
        read = [part.uses for part in (self.response, self.features, self.offset) if part]
        for uses in (*read, self.groups):
            levels = uses.levels.get(name, ())
            if levels and key(value) not in map(key, levels):
                raise DpmcError(
                    f"`missing` must be a declared level for {name!r}, among {list(levels)}, got "
                    f"{value!r}"
                )
            numeric = name in uses.numeric
            if numeric and not (is_real(value) and math.isfinite(value)):
                raise DpmcError(f"`missing` must be a finite number for {name!r}, got {value!r}")


def refuse_missing_columns(names: list[Any], wanted: tuple[str, ...], told: str) -> None:
    """Refuse a table that has not one column of each name."""
    for name in wanted:
        if [str(label) for label in names].count(name) == 1:
            continue
        if name in map(str, names):
            raise DpmcError(f"{told} must have one column {name!r}, got several")
        known = ", ".join(map(str, names)) if all(map(frames.is_name, names)) else ""
        raise DpmcError(f"{told} must have a column {name!r}" + (f", got {known}" if known else ""))


def _sides(text: str) -> tuple[list[Any], list[Any]]:
    """Terms of the response, one, and of what it depends on."""
    from formulaic import Formula

    wanted = '`formula` must be a response and terms, as \'y ~ age + C(sex, levels=["f", "m"])\''
    try:
        parsed = Formula(text)
        left, right = list(parsed.lhs), list(parsed.rhs)
        for term in (*left, *right):
            term.factors  # noqa: B018  # parts that are separated by | have none
    except Exception as error:  # of the parser, whatever a formula holds
        reason = "" if isinstance(error, AttributeError) else f": {_plain(error)}"
        if "`.` operator" in reason:
            reason = ": name the columns"
        raise DpmcError(f"{wanted}, got {text!r}{reason}") from None
    if len(left) != 1:
        raise DpmcError(f"{wanted}, got {len(left)} responses in {text!r}")
    return left, right


def _read(uses: Uses, factor: Any, text: str) -> None:
    kind = factor.eval_method.value
    if kind == "lookup":
        uses.column(factor.expr)
    elif kind == "python":
        try:
            uses.expression(factor.expr)
        except SyntaxError:
            raise DpmcError(
                f"`formula` must hold terms that Python can read, got {factor.expr!r} in {text!r}"
            ) from None


def _is_offset(term: Any) -> bool:
    return len(term.factors) == 1 and term.factors[0].expr.startswith(f"{OFFSET}(")


def _inner(terms: list[Any], text: str) -> list[Any]:
    """Terms inside of offsets."""
    from formulaic import Formula

    with _refused(text):
        inside = [term.factors[0].expr.removeprefix(OFFSET) for term in terms]
        return [term for one in inside for term in Formula(f"0 + {{{one}}}")]


def _range(name: Any, ends: Any) -> tuple[float, float]:
    try:
        low, high = ends
    except (TypeError, ValueError):
        low = high = None
    if not (is_real(low) and is_real(high) and -math.inf < low < high < math.inf):
        raise DpmcError(
            f"`ranges` must be two finite numbers (low, high) for {name!r}, got {ends!r}"
        )
    return float(low), float(high)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Let no warning tell of entries."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _refused(text: str) -> Iterator[None]:
    """Refuse a formula that fails on a made-up table: private rows find it as it was there."""
    try:
        yield
    except Exception as error:  # of the engine, on made-up rows
        raise DpmcError(
            f"`formula` must be one that its columns can be put into, got {text!r}: {_plain(error)}"
        ) from None


def _plain(error: Exception) -> str:
    """First line of a message, without the marks of a terminal."""
    return str(error).partition("\n")[0].rstrip(". ")
