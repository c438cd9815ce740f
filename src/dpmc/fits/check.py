"""Whether rows are as a model says, from what a fit has released anyway."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

# Standard errors from which on rows are clearly not as a model says.
CLEAR = 4.0


class Check(NamedTuple):
    """One number that was released, and what a model that is right lets expect.

    Parameters
    ----------
    what : str
    found, error, expected : float
        The error is a standard deviation, of privacy noise and of rows.
    """

    what: str
    found: float
    error: float
    expected: float

    @property
    def away(self) -> float:
        """Standard errors between what was found and what was expected."""
        away = self.found - self.expected
        return away / self.error if self.error else math.copysign(math.inf, away) if away else 0.0


@dataclass(frozen=True)
class Checks:
    """All checks of a fit, to be read or printed.

    Parameters
    ----------
    checks : tuple of Check

    Examples
    --------
    >>> print(Checks((Check("residuals above 2", 0.05, 0.005, 0.0228),)))
                         found    error expected
    residuals above 2     0.05    0.005   0.0228  not as the model says
    """

    checks: tuple[Check, ...]

    def to_dataframe(self) -> Any:
        """Table as a ``pandas.DataFrame``, one row for each check."""
        import pandas as pd

        columns = ["found", "error", "expected", "away"]
        values = [[*one[1:], one.away] for one in self.checks]
        return pd.DataFrame(values, index=[one.what for one in self.checks], columns=columns)

    def __str__(self) -> str:
        width = max(len(one.what) for one in self.checks)
        lines = [" " * width + f" {'found':>8} {'error':>8} {'expected':>8}"]
        for one in self.checks:
            cells = "".join(f" {cell:>8.3g}" for cell in one[1:])
            said = "  not as the model says" if abs(one.away) > CLEAR else ""
            lines.append(one.what.ljust(width) + cells + said)
        return "\n".join(lines)

    __repr__ = __str__
