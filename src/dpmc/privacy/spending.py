"""Errors that say what of a budget was spent before they came."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from dpmc.types import DpmcError, Guarantee

Records = tuple[tuple[str, int], ...]
P = ParamSpec("P")
R = TypeVar("R")
# Blocks of `told` that have ended, of the function that is `telling`.
_ended: ContextVar[list[tuple[Guarantee, Callable[[], Records | None]]] | None] = ContextVar(
    "ended", default=None
)


@contextlib.contextmanager
def told(guarantee: Guarantee, released: Callable[[], Records | None]) -> Iterator[None]:
    """Let whatever ends a block, Ctrl-C too, carry what had been released of the private rows.

    The exception stays what it is. It gets the attributes `spent`, a `Guarantee`, and `ledger`, and
    a sentence: a `DpmcError` at the end of its message, any other as a note.

    Parameters
    ----------
    guarantee : Guarantee
        Of all that the block may release: how much of it happened may depend on outputs.
    released : callable ``() -> tuple of (str, int) or None``
        Asked once something went wrong: records of what was released, empty where nothing was,
        None for what a ledger does not record.
    """
    try:
        yield
    except BaseException as error:
        records = released()
        if records != () and getattr(error, "spent", None) is None:
            tell(error, guarantee, records or ())
        raise
    ended = _ended.get()
    if ended is not None:
        ended.append((guarantee, released))


def telling(function: Callable[P, R]) -> Callable[P, R]:
    """Function whose errors carry, as `told` has it, what its blocks released before them."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        ended: list[tuple[Guarantee, Callable[[], Records | None]]] = []
        token = _ended.set(ended)
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            for guarantee, released in reversed(ended):
                records = released()
                if records != () and getattr(error, "spent", None) is None:
                    tell(error, guarantee, records or ())
            raise
        finally:
            _ended.reset(token)

    return wrapped


def tell(error: BaseException, guarantee: Guarantee, records: Records) -> None:
    """Let an error carry a guarantee of what is spent, and the records of it."""
    sentence = f"({guarantee.epsilon:.4g}, {guarantee.delta:.3g}) of privacy is spent"
    if isinstance(error, DpmcError):
        error.args = (f"{error}; {sentence}",)
    else:
        error.add_note(f"{sentence[0].upper()}{sentence[1:]}.")
    with contextlib.suppress(AttributeError):  # of an exception with slots
        error.spent, error.ledger = guarantee, records  # type: ignore[attr-defined]
