"""Digest of named modules: what counts, and what does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpmc_papers.config import code

MODULE = '''"""A module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from house import _part, other
from house._second import name

if TYPE_CHECKING:
    from house import types


class Params:
    """Parameters."""

    size: int
    share: float = 0.5


def run(size: int) -> float:
    """Return the size."""
    if size < 1:
        raise ValueError(f"`size` must be positive, got {size}")
    return _part.twice(size)
'''
HARMLESS = {
    "comment": ("    return _part", "    # Twice.\n    return _part"),
    "layout": ("share: float = 0.5", "share: float = (0.5)"),
    "docstring": ("Return the size", "The size"),
    "annotation": ("size: int) -> float", "size: float) -> int"),
    "annotation of a field": ("    size: int\n", "    size: float\n"),
    "text of an error": ("must be positive", "must be above zero"),
    "import for type checkers": ("import types", "import other_types"),
}
HARMFUL = {
    "default": ("float = 0.5", "float = 0.6"),
    "limit": ("size < 1", "size < 2"),
    "field": ("    size: int\n", "    size: int\n    more: int\n"),
    "name of an argument": ("def run(size: int)", "def run(sizes: int)"),
    "error": ("raise ValueError", "raise TypeError"),
    "call": ("_part.twice", "_part.thrice"),
}


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Write a package, and return a function to its digest once a file is changed."""
    folder = tmp_path / "house"
    folder.mkdir()
    texts = {"main": MODULE, "_part": "X = 1\n", "_second": "from house import _third\n"}
    texts |= {"_third": "X = 3\n", "other": "X = 4\n", "_unused": "X = 5\n"}
    monkeypatch.setattr(code, "SOURCES", tmp_path)

    def changed(file: str = "main", old: str = "", new: str = "") -> str:
        assert old in texts[file]
        for name, text in texts.items():
            given = text.replace(old, new, 1) if name == file else text
            (folder / f"{name}.py").write_text(given, encoding="utf-8")
        clear()
        return code.digest("house.main")

    yield changed
    clear()


def clear() -> None:
    for function in (code.digest, code._private, code._of_file):
        function.cache_clear()


@pytest.mark.parametrize("edit", HARMLESS)
def test_how_code_is_written_does_not_count(house: Callable[..., str], edit: str) -> None:
    assert house("main", *HARMLESS[edit]) == house()


@pytest.mark.parametrize("edit", HARMFUL)
def test_what_code_does_counts(house: Callable[..., str], edit: str) -> None:
    assert house("main", *HARMFUL[edit]) != house()


@pytest.mark.parametrize("part", ["_part", "_second", "_third"])
def test_private_modules_beside_it_are_parts_of_a_module(house, part: str) -> None:
    house()
    assert code.parts("house.main") == (
        "house._part",
        "house._second",
        "house._third",
        "house.main",
    )
    assert house(
        part, "X" if part != "_second" else "_third", "Y" if part != "_second" else "_x"
    ) != (house())
