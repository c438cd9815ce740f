"""Kinds of rules: what one measures, which keys it needs and how it reads in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpmc_papers.verdicts.bootstrap import Measurement
from dpmc_papers.verdicts.evidence import Evidence, Rule

Measure = Callable[[Rule, Evidence, str], list[Measurement]]


@dataclass(frozen=True)
class Cell:
    """Printed numbers that one cell of a series may hold in place of a single one.

    Parameters
    ----------
    size : int
        How many numbers.
    meaning : str
        What they are, for messages.
    """

    size: int
    meaning: str


@dataclass(frozen=True)
class Kind:
    """One kind of rule; called, it measures.

    Parameters
    ----------
    measure : callable
        ``measure(rule, evidence, variant)``: one measurement per setting.
    keys : tuple of str
        Keys that a rule of this kind cannot do without.
    describe : callable
        What a rule of this kind measures, in words.
    exact : bool
        Whether nothing random enters what is measured.
    in_series : bool
        Whether a printed series may have rules of this kind.
    cell : Cell, optional
        The numbers that a cell of a series may hold, where one is not enough.
    uncertain : str
        What is uncertain in print as well as in the run, such as "medians".
    """

    measure: Measure
    keys: tuple[str, ...]
    describe: Callable[[Rule], str]
    exact: bool = False
    in_series: bool = False
    cell: Cell | None = None
    uncertain: str = ""

    def __call__(self, rule: Rule, evidence: Evidence, variant: str) -> list[Measurement]:
        """What `rule` measures on the runs of `variant`."""
        return self.measure(rule, evidence, variant)


def kind(
    *keys: str,
    describe: Callable[[Rule], str],
    exact: bool = False,
    in_series: bool = False,
    cell: Cell | None = None,
    uncertain: str = "",
) -> Callable[[Measure], Kind]:
    """Turn a function into a kind of rule, named as the function; see :class:`Kind`."""

    def decorate(measure: Measure) -> Kind:
        return Kind(measure, keys, describe, exact, in_series, cell, uncertain)

    return decorate


def statistics_of(rule: Rule, default: str = "median") -> str:
    """Statistic and metric of a rule in words, such as "medians of mmd"."""
    return f"{rule.get('statistic', default)}s of {rule.get('metric', '')}"
