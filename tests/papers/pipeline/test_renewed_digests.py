"""Which digests of published outputs may be recorded anew without a run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def renewal(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import renew_digests

    yield renew_digests
    sys.modules.pop("renew_digests", None)


def test_an_output_is_the_same_if_all_below_it_was(renewal) -> None:  # type: ignore[no-untyped-def]
    def made(files: str, **outputs: str) -> object:
        return renewal.Named(frozenset(files), outputs)

    now = made("abc", figure="1", table="2", verdict="3")
    old = made("abcd", figure="1", table="9", verdict="9")
    newer = made("abc", figure="8", table="2", verdict="9")
    assert renewal.unchanged(now, [old], None) == {"figure"}
    assert renewal.unchanged(now, [old, newer], None) == {"figure", "table"}
    # A result in between that one of the commits would have made otherwise: it may be that one's.
    other = made("ab", figure="1", table="2", verdict="3")
    assert renewal.unchanged(now, [old, other], None) == set()
    # Verdicts may have been made later, from the same runs; nothing else.
    judged = made("abc", figure="1", table="2", verdict="3")
    assert renewal.unchanged(now, [old], judged) == {"figure", "verdict"}
