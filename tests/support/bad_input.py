"""Tables of calls, each with what is said of it or with OK, and their judge."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import dpmc

OK = None
Call = tuple[Callable[[], Any], str | None]


def labelled(tables: Mapping[str, Mapping[str, Call]]) -> dict[str, Call]:
    """Return the calls of all tables, labelled by table and by what is given."""
    return {
        f"{table}: {label}": call
        for table, calls in tables.items()
        for label, call in calls.items()
    }


def judge(call: Callable[[], Any], message: str | None) -> Any:
    """Return what an accepted call does; check that any other is refused in one line."""
    if message is OK:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", category=RuntimeWarning)
            warnings.simplefilter("ignore", dpmc.PosteriorWarning)
            return call()
    with pytest.raises(dpmc.DpmcError) as caught:
        call()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    return None
