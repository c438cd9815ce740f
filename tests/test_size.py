"""Lines of each room: one that grows by more than 5 % says why.

Who raises a number here adds a line to the section "Size" of CHANGELOG.md that says what the lines
buy; who makes a room smaller lowers its number. ``uv run python tests/test_size.py`` prints them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GROWTH = 1.05
ROOMS: dict[str, int] = {
    "src/dpmc/autodiff": 661,
    "src/dpmc/automatic": 5693,
    "src/dpmc/diagnostics": 813,
    "src/dpmc/ep": 4669,
    "src/dpmc/families": 2724,
    "src/dpmc/fits": 1638,
    "src/dpmc/formulas": 752,
    "src/dpmc/linreg": 5352,
    "src/dpmc/mcmc": 3481,
    "src/dpmc/models": 839,
    "src/dpmc/numerics": 1835,
    "src/dpmc/planning": 1028,
    "src/dpmc/privacy": 5751,
    "src/dpmc/releases": 1844,
    "src/dpmc/rows": 3602,
    "src/dpmc/shards": 1424,
    "src/dpmc/statsel": 6083,
    "src/dpmc/types": 1533,
    "src/dpmc_league/catalogue": 582,
    "src/dpmc_league/clips": 109,
    "src/dpmc_league/regressions": 631,
    "src/dpmc_league/rivals": 644,
    "src/dpmc_papers/config": 1284,
    "src/dpmc_papers/data": 2023,
    "src/dpmc_papers/outputs": 6291,
    "src/dpmc_papers/pipeline": 2245,
    "src/dpmc_papers/plots": 757,
    "src/dpmc_papers/site": 1067,
    "src/dpmc_papers/studies": 2513,
    "src/dpmc_papers/verdicts": 2803,
    "workflow": 1086,
    "benchmarks": 2502,
    "tests": 53576,
    "src/dpmc/*.py": 4063,
    "src/dpmc_league/*.py": 3455,
    "src/dpmc_papers/*.py": 325,
}
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def rooms() -> dict[str, int]:
    """Lines of Python and rules of every room, by its folder."""
    src = [folder for folder in sorted((ROOT / "src").glob("dpmc*/*")) if folder.is_dir()]
    folders = [*src, *(ROOT / name for name in ("workflow", "benchmarks", "tests"))]
    counted = {str(folder.relative_to(ROOT)): lines(folder) for folder in folders}
    for package in sorted((ROOT / "src").glob("dpmc*")):
        counted[f"src/{package.name}/*.py"] = sum(map(count, package.glob("*.py")))
    return {name: number for name, number in counted.items() if number}


def lines(folder: Path) -> int:
    files = [path for path in folder.rglob("*") if path.suffix in (".py", ".smk")]
    return sum(map(count, files)) + sum(map(count, folder.rglob("Snakefile")))


def count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize(("room", "number"), rooms().items())
def test_a_room_does_not_grow_without_a_reason(room: str, number: int) -> None:
    assert room in ROOMS, f"{room} is new: its lines belong here, and its reason in CHANGELOG.md"
    assert number <= GROWTH * ROOMS[room], f"{room} has {number} lines, {ROOMS[room]} were agreed"


def test_every_room_is_still_there() -> None:
    assert set(ROOMS) == set(rooms())


def test_the_changelog_says_why_rooms_grow() -> None:
    assert re.search(r"^### Size$", CHANGELOG, re.MULTILINE)


if __name__ == "__main__":
    for name, number in rooms().items():
        print(f'    "{name}": {number},')
