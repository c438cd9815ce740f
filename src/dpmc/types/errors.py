"""Errors, each described in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpmc.types.guarantee import Guarantee

# How the status of a result begins whose data cannot be had.
UNAVAILABLE = "data not available here"


class DpmcError(ValueError):
    """Bad input, described in one line: what must be, and what was passed instead.

    Attributes
    ----------
    spent : Guarantee or None
        What of the private rows had been released before the error; None where nothing was.
    ledger : tuple of (str, int)
        What a ledger recorded of it.

    Examples
    --------
    >>> from dpmc.types import Budget
    >>> try:
    ...     Budget(epsilon=-1, delta=1e-6, accountant="gaussian")
    ... except DpmcError as error:
    ...     print("-1" in str(error))
    True
    """

    spent: Guarantee | None = None
    ledger: tuple[tuple[str, int], ...] = ()

    def __init__(self, message: str) -> None:
        # What was passed may be shown in several lines, as arrays are.
        super().__init__(" ".join(line.strip() for line in message.splitlines()))


class MemoryLimitError(DpmcError):
    """Memory that this machine does not have; nothing was begun."""


class UnavailableError(DpmcError):
    """Data that are not available on this machine, with what would help, in one line."""
