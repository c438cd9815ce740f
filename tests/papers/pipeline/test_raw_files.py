"""Records of raw files: what they say, when another attempt is made, when they are outdated."""

from __future__ import annotations

import json

import pytest

from dpmc.types import DpmcError, UnavailableError
from dpmc_papers.config import problems
from dpmc_papers.data import _uci, uci
from dpmc_papers.pipeline import raw_files
from tests.support import setups, tables


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of raw files, and an empty cache."""
    (tmp_path / "raw").mkdir()
    monkeypatch.setenv(uci.FOLDER_VARIABLE, str(tmp_path / "raw"))
    monkeypatch.setattr(_uci, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "raw"


def written(folder, monkeypatch):
    """Write the raw file of a small table, and return its path."""
    table = tables.shrink(monkeypatch, "kin8nm", 20)
    return tables.write(folder / "kin8nm" / table.file, table, tables.some_numbers(table, 20))


def problem(data):
    return setups.problem({"name": "p", "data": data})


def test_a_record_leads_to_the_file_it_was_made_of(folder, monkeypatch, tmp_path):
    file, record = written(folder, monkeypatch), tmp_path / "record.json"
    raw_files.write(record, raw_files.make("kin8nm", 1))
    assert raw_files.given(record) == file
    monkeypatch.setenv(uci.FOLDER_VARIABLE, str(tmp_path))
    setup = problem({"name": "uci", "params": {"dataset": "kin8nm"}})
    assert not problems.is_here(setup)
    assert problems.make_data(setup, 1, raw_files.given(record)).x.shape == (20, 9)


def test_a_file_that_this_machine_does_not_see_is_an_error(folder, monkeypatch, tmp_path):
    file, record = written(folder, monkeypatch), tmp_path / "record.json"
    raw_files.write(record, raw_files.make("kin8nm", 1))
    file.unlink()
    with pytest.raises(DpmcError, match=rf"^{file} must be a file that every machine") as caught:
        raw_files.given(record)
    assert not isinstance(caught.value, UnavailableError)


def test_a_silent_server_is_asked_once_and_another_three_times(folder, monkeypatch, tmp_path):
    def fail(*_, error):
        raise error("no way")

    monkeypatch.setattr(uci, "fetch", lambda name: fail(name, error=UnavailableError))
    assert raw_files.make("kin8nm", 1) == {"unavailable": "no way"}
    monkeypatch.setattr(uci, "fetch", lambda name: fail(name, error=uci.InterruptedDownloadError))
    for attempt in range(1, raw_files.ATTEMPTS):
        with pytest.raises(UnavailableError, match="no way"):
            raw_files.make("kin8nm", attempt)
    assert raw_files.make("kin8nm", raw_files.ATTEMPTS) == {"unavailable": "no way"}
    record = tmp_path / "record.json"
    raw_files.write(record, {"unavailable": "no way"})
    with pytest.raises(UnavailableError, match=r"^no way$"):
        raw_files.given(record)


def test_a_file_that_turns_up_is_searched_for_once_more(folder, monkeypatch, tmp_path):
    """A run compares the number with that of the last search."""
    record = tmp_path / "record.json"
    assert raw_files.search(record, "kin8nm") == 0
    raw_files.write(record, {"unavailable": "no way", "search": 0})
    assert raw_files.search(record, "kin8nm") == 0
    written(folder, monkeypatch)
    assert raw_files.search(record, "kin8nm") == 1
    raw_files.write(record, {**raw_files.make("kin8nm", 1), "search": 1})
    assert raw_files.search(record, "kin8nm") == 1
    monkeypatch.setenv(uci.FOLDER_VARIABLE, str(tmp_path))  # rows that were read stay as they are
    assert raw_files.search(record, "kin8nm") == 1


def test_a_replaced_file_is_refused(folder, monkeypatch, tmp_path):
    file, record = written(folder, monkeypatch), tmp_path / "record.json"
    raw_files.write(record, raw_files.make("kin8nm", 1))
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(DpmcError, match=rf"^{file}: the SHA-256 digest must be ") as caught:
        raw_files.given(record)
    assert not isinstance(caught.value, UnavailableError)
    assert str(caught.value).endswith(f"or delete {record}")


def test_a_file_of_other_contents_is_no_absence(folder, monkeypatch):
    file = written(folder, monkeypatch)
    file.write_text("1 2 3\n")
    with pytest.raises(DpmcError, match="must have 9 columns") as caught:
        raw_files.make("kin8nm", raw_files.ATTEMPTS)
    assert not isinstance(caught.value, UnavailableError)


@pytest.mark.parametrize("text", ["", "[]", "{", json.dumps({"file": "a"})])
def test_a_damaged_record_is_refused_in_one_line(tmp_path, text):
    record = tmp_path / "record.json"
    record.write_text(text)
    with pytest.raises(DpmcError, match=rf"^{record}: truncated or damaged; delete it"):
        raw_files.read(record)


def test_data_that_are_read_from_a_file_name_it():
    assert problems.raw_file(problem({"name": "uci_network", "params": {"dataset": "wine"}})) == (
        "wine_red"
    )
    assert problems.raw_file(problem({"name": "wine_red", "params": {}})) == "wine_red"
    rows = {"name": "uci_regression", "params": {"dataset": "3droad", "preprocess": "authors"}}
    assert problems.raw_file(problem(rows)) == "road_3d"
    drawn = problem({"name": "network_rows", "params": {"num_rows": 5, "dim": 2}})
    assert problems.raw_file(drawn) is None
