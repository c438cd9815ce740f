"""Claims and printed numbers of a page, grouped by the output that shows them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from dpmc_papers.verdicts.verdict import WORDS, Verdict


@dataclass(frozen=True)
class Series:
    """All numbers that a document prints in one place, for one variant.

    Parameters
    ----------
    id, where, variant : str
    cells : tuple of Verdict
    """

    id: str
    where: str
    variant: str
    cells: tuple[Verdict, ...]

    @property
    def anchor(self) -> str:
        """Return its anchor on the page of the document."""
        return f"series-{self.id}-{self.variant}"

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of its cells with each verdict."""
        return counts(self.cells)

    @property
    def size(self) -> int:
        """Return how many numbers are printed, verdicts on rows of them aside."""
        return sum(not entry.together for entry in self.cells)

    @property
    def privacy(self) -> str:
        """Return the mark of privacy that all its cells have; empty if they differ."""
        marks = {entry.privacy for entry in self.cells}
        return marks.pop() if len(marks) == 1 else ""

    @property
    def terms(self) -> str:
        """Return what the rules of all numbers say after their limits; empty if they differ."""
        terms = {entry.rule.partition("; ")[2] for entry in self.cells if not entry.together}
        return terms.pop() if len(terms) == 1 else ""

    @property
    def rule(self) -> str:
        """Return the rule of all numbers but for their limits; empty if there is no such rule."""
        subjects = {entry.rule.rpartition(" in [")[0] for entry in self.cells if not entry.together}
        subject = subjects.pop() if len(subjects) == 1 and self.terms else ""
        return f"{subject} within the printed digits; {self.terms}" if subject else ""


@dataclass(frozen=True)
class Group:
    """The claims and series about one output, or about none.

    Parameters
    ----------
    claims : tuple of Verdict
    series : tuple of Series
    elsewhere : tuple of Verdict
        Verdicts about this output that stand under another one, which their claims name first.
    """

    claims: tuple[Verdict, ...] = ()
    series: tuple[Series, ...] = ()
    elsewhere: tuple[Verdict, ...] = ()

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Return all verdicts that stand under this output."""
        return (*self.claims, *(cell for entry in self.series for cell in entry.cells))

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of its verdicts of each kind."""
        return counts(self.verdicts)


def group(verdicts: Iterable[Verdict]) -> Group:
    """Return claims and series, in the order in which they stand."""
    claims, cells = [], dict[tuple[str, str, str], list[Verdict]]()
    for entry in verdicts:
        if entry.series:
            cells.setdefault((entry.series, entry.where, entry.variant), []).append(entry)
        else:
            claims.append(entry)
    series = tuple(Series(*key, tuple(entries)) for key, entries in cells.items())
    return Group(tuple(claims), series)


def by_output(verdicts: Iterable[Verdict], outputs: Collection[str]) -> dict[str, Group]:
    """Return the verdicts on each output; under the empty name those on none of them.

    Parameters
    ----------
    verdicts : iterable of Verdict
    outputs : collection of str
        Names of the outputs that the page shows.

    Returns
    -------
    dict of str to Group
        Every verdict stands under the first of its outputs that the page shows; the others
        refer to it.
    """
    first: dict[str, list[Verdict]] = {}
    further: dict[str, list[Verdict]] = {}
    for entry in verdicts:
        shown = [name for name in entry.output if name in outputs] or [""]
        first.setdefault(shown[0], []).append(entry)
        for name in shown[1:]:
            further.setdefault(name, []).append(entry)
    return {
        name: replace(group(first.get(name, ())), elsewhere=tuple(further.get(name, ())))
        for name in dict.fromkeys([*first, *further])
    }


def kinds(verdicts: Iterable[Verdict]) -> dict[str, str]:
    """Return the kinds of verdicts that occur, in words."""
    return {key: WORDS[key] for key, number in counts(verdicts).items() if number}


def counts(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Return the number of verdicts of each kind, also of a kind that none has."""
    numbers = dict.fromkeys(WORDS, 0)
    for entry in verdicts:
        numbers[entry.verdict] += 1
    return numbers
