"""``config/README.md``, which has a row for each key and no row for another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpmc.yaml_files import Settings
from dpmc_papers.config import settings
from dpmc_papers.verdicts import claim_file, printed_series

README = Path(__file__).parents[3] / "config" / "README.md"
# Types by the heading of their first table, and of further ones below it.
TABLES: dict[str, tuple[type[Settings], ...]] = {
    "config.yaml": (settings.RunSettings,),
    "papers/<key>.yaml": (settings.Paper,),
    "problems.<name>": (settings.Problem,),
    "experiments.<name>": (settings.Experiment, settings.Method),
    "studies.<name>": (settings.Study,),
    "accounting.<name>": (settings.Curves,),
    "outputs.<name>": (settings.Output,),
    "scales/<scale>.yaml": (settings.Scale,),
}
# Keys of files that no type reads, by the heading of their table.
UNTYPED = {
    "published/<key>.yaml": claim_file.FILE_KEYS | claim_file.OPTIONAL,
    "entries": claim_file.ENTRY_KEYS,
    "series": printed_series.KEYS | printed_series.ROUNDING | printed_series.OPTIONAL,
    "published/sentences/<key>.yaml": {"where", "says", "rows", "instead"},
}
# Of types inside others, the keys of which stand in the text of a row.
INSIDE = {
    "data": settings.Part,
    "start": settings.Start,
    "reference": settings.ReferenceSizes,
    "methods": settings.StudyMethod,
    "settings": settings.Curve,
    "chains": settings.ChainsRead,
}


def sections() -> dict[str, list[dict[str, str]]]:
    """Return the tables below each heading: texts by their keys."""
    found: dict[str, list[dict[str, str]]] = {}
    heading, inside = "", False
    for line in README.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.strip("# ").replace("\\", "")
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line[:1] == "|" else []
        if cells and set(cells[0]) == {"-"}:
            found.setdefault(heading, []).append({})
            inside = True
        elif not cells:
            inside = False
        elif inside:
            for key in re.findall(r"`(\w+)`", cells[0]):
                found[heading][-1][key] = " ".join(cells[1:])
    return found


@pytest.mark.parametrize("heading", TABLES)
def test_every_key_has_a_row_and_every_row_is_a_key(heading: str) -> None:
    tables = sections()[heading]
    for kind, table in zip(TABLES[heading], tables, strict=True):
        assert sorted(table) == sorted(kind.__struct_fields__), kind


@pytest.mark.parametrize("heading", UNTYPED)
def test_every_key_of_a_file_of_claims_has_a_row(heading: str) -> None:
    (table,) = sections()[heading]
    assert sorted(table) == sorted(UNTYPED[heading])


def test_every_file_of_the_configuration_is_told_of() -> None:
    folder = README.parent
    places = {path.relative_to(folder).parent / path.suffix for path in folder.rglob("*.yaml")}
    named = {
        Path(re.sub(r"<\w+>", "x", text)).parent / ".yaml"
        for text in re.findall(r"(?m)^\| `(?!\.\.)(\S+\.yaml)`", README.read_text(encoding="utf-8"))
    }
    assert named == places


@pytest.mark.parametrize("key", INSIDE)
def test_keys_inside_others_are_in_the_text_of_their_row(key: str) -> None:
    texts = [table[key] for tables in sections().values() for table in tables if key in table]
    fields = INSIDE[key].__struct_fields__
    assert any(all(f"`{name}`" in text for name in fields) for text in texts), fields


def test_every_type_of_settings_is_told_of() -> None:
    told = {kind for kinds in TABLES.values() for kind in kinds} | set(INSIDE.values())
    assert {kind for kind in vars(settings).values() if is_settings(kind)} == told


def is_settings(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Settings) and value is not Settings
