from __future__ import annotations

import functools
import http.server
import threading
import zipfile

import numpy as np
import pytest

from dpmc.rng import stream
from dpmc.types import DpmcError, UnavailableError
from dpmc_papers.data import _uci, uci
from dpmc_papers.data._uci_read import first_sheet, read
from tests.support import tables

WITH_DIGEST = sorted(name for name, table in uci.TABLES.items() if table.numbers_sha256)
ALL = sorted(uci.TABLES)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of raw files, an empty cache, and no way out but to this machine."""
    (tmp_path / "raw").mkdir()
    monkeypatch.setenv(uci.FOLDER_VARIABLE, str(tmp_path / "raw"))
    monkeypatch.setattr(_uci, "cache_folder", lambda: tmp_path / "cache")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return tmp_path / "raw"


@pytest.mark.parametrize("name", WITH_DIGEST)
def test_published_files_have_the_numbers_that_are_known(name):
    if uci.find(name) is None:
        pytest.skip(f"{uci.FOLDER_VARIABLE} names no folder with {name}")
    table = uci.TABLES[name]
    raw = uci.load(name)
    assert raw.verified == "numbers"
    assert raw.columns == (*table.features, table.target)
    assert raw.numbers.shape == (table.num_rows, len(raw.columns))
    assert uci.fetch(name) == uci.find(name)


def test_first_rows_are_those_that_the_files_print():
    """Target last: of ten columns the first, of eighteen the seventeenth."""
    printed = {
        "power_plant": [14.96, 41.76, 1024.07, 73.17, 463.26],
        "bike_sharing": [1, 0, 1, 0, 0, 6, 0, 1, 0.24, 0.2879, 0.81, 0, 3, 13, 16],
        "wine_red": [7.4, 0.7, 0, 1.9, 0.076, 11, 34, 0.9978, 3.51, 0.56, 9.4, 5],
        "protein": [
            *(13558.3, 4305.35, 0.31754, 162.173, 1872790.507, 215.359, 4287.87, 102, 27.0302),
            17.284,
        ],
    }
    there = [name for name in printed if uci.find(name)]
    if not there:
        pytest.skip(f"{uci.FOLDER_VARIABLE} names no folder with any of {', '.join(printed)}")
    for name in there:
        assert uci.load(name).numbers[0].tolist() == printed[name]


@pytest.mark.parametrize("name", ALL)
def test_a_file_of_the_same_format_is_read_to_the_last_digit(name, folder, monkeypatch):
    table = tables.shrink(monkeypatch, name, 30)
    numbers = tables.some_numbers(table, 30)
    path = tables.write(folder / name / table.file, table, numbers)
    assert np.array_equal(read(table, path), numbers)
    raw = uci.load(name)
    wanted = [table.columns.index(column) for column in raw.columns]
    assert np.array_equal(raw.numbers, numbers[:, wanted])
    assert raw.columns[-1] == table.target
    assert raw.verified == "shape"
    assert not set(raw.columns) & {"instant", "dteday", "Date", "Time", "turbine_decay"}
    dataset = uci.generate(uci.Params(name), stream(0, "unused"))
    assert np.array_equal(dataset.x, raw.numbers)


def test_a_single_changed_digit_is_noticed(folder, monkeypatch):
    table = tables.shrink(monkeypatch, "wine_red", 20)
    numbers = tables.some_numbers(table, 20)
    path = tables.write(folder / "wine_red" / table.file, table, numbers)
    with pytest.raises(DpmcError, match="the digest of all numbers must be") as caught:
        _uci.check_numbers(path, numbers, (20, 12), "0" * 64)
    digest = str(caught.value).rpartition("got ")[2]
    tables.shrink(monkeypatch, "wine_red", 20, numbers_sha256=digest)
    assert uci.load("wine").verified == "numbers"
    numbers[3, 4] += 0.01
    tables.write(path, table, numbers)
    with pytest.raises(
        DpmcError, match=rf"^{path}: the digest of all numbers must be {digest}, got "
    ):
        uci.load("wine")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("wine_red", lambda text: text.replace("pH", "ph"), "column 8 must be 'pH', got 'ph'$"),
        (
            "bike_sharing",
            lambda text: text.replace('"dteday"', "y,m,d"),
            "must have 17 columns, got 19$",
        ),
        ("road_3d", lambda text: text.replace(",", ",1,", 1), "must have 4 columns, got 5$"),
        ("road_3d", lambda text: text + "1,2,3\n", "columns changed from 4 to 3 at row 5"),
        ("year", lambda text: text.strip() + ",1\n", "columns changed from 91 to 92 at row 4"),
        ("kin8nm", lambda text: text + "  one two\n", "must hold numbers in 9 columns"),
        ("protein", lambda text: "", "must have 10 columns, got 1$"),
        ("year", lambda text: text.replace(".", "x", 1), "must hold numbers in 91 columns"),
    ],
)
def test_a_text_file_of_another_form_is_refused_in_one_line(name, change, message, folder):
    table = uci.TABLES[name]
    text = change(tables.lines(table, tables.some_numbers(table, 4)))
    path = folder / "file"
    path.write_text(text)
    with pytest.raises(DpmcError, match=rf"^{path}.*{message}") as caught:
        read(table, path)
    assert "\n" not in str(caught.value)


def test_cells_of_a_workbook_are_found_by_their_place(folder):
    sheet = (
        '<row r="1"><c r="A1" t="s"><v>1</v></c><c r="C1" t="s"><v>0</v></c>'
        '<c r="AB1" t="str"><v>last</v></c></row>'
        '<row r="2"><c r="C2"><v>5.1100000000000003</v></c><c r="A2" t="s"><v>0</v></c>'
        '<c r="AB2"><v>1e-3</v></c><c r="AC2"><v>7</v></c></row>'
    )
    path = folder / "book.xlsx"
    with zipfile.ZipFile(path, "w") as book:
        texts = "<si><t>a</t></si><si><r><t>b</t></r><r><t>c</t></r></si>"
        book.writestr("xl/sharedStrings.xml", f"<sst {tables.FORM}>{texts}</sst>")
        data = f"<worksheet {tables.FORM}><sheetData>{sheet}</sheetData></worksheet>"
        book.writestr("xl/worksheets/sheet1.xml", data)
    names, numbers = first_sheet(path)
    assert names == ["bc", "", "a", *[""] * 24, "last"]
    assert numbers.shape == (1, 28)
    assert (numbers[0, 2], numbers[0, 27]) == (5.11, 1e-3)
    assert np.isnan(np.delete(numbers[0], [2, 27])).all()


def test_files_are_found_in_the_folder_then_in_the_cache(folder, monkeypatch):
    table = uci.TABLES["kin8nm"]
    assert uci.find("kin8nm") is None
    cached = _uci.cache_folder() / "kin8nm" / table.file
    cached.parent.mkdir(parents=True)
    cached.touch()
    assert uci.find("kin8nm") == cached
    (folder / "kin8nm").mkdir()
    (folder / "kin8nm" / table.file).touch()
    assert uci.find("kin8nm") == folder / "kin8nm" / table.file
    monkeypatch.delenv(uci.FOLDER_VARIABLE)
    assert uci.find("kin8nm") == cached
    monkeypatch.setenv(uci.FOLDER_VARIABLE, "/no/such/folder")
    with pytest.raises(
        DpmcError, match=r"^`DPMC_UCI_DIR` must be a folder of raw files, got '/no/such/folder'$"
    ):
        uci.find("kin8nm")


@pytest.fixture
def server(tmp_path):
    """A web server of a folder, as (folder, address)."""
    root = tmp_path / "web"
    root.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield root, f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def stored():
    """Return the names of all files below the cache."""
    return sorted(path.name for path in _uci.cache_folder().rglob("*") if path.is_file())


def test_a_download_is_verified_then_kept(folder, server, monkeypatch):
    root, address = server
    table = tables.shrink(monkeypatch, "naval", 25, url=f"{address}/data%20set.zip")
    numbers = tables.some_numbers(table, 25)
    tables.write(root / "plain.txt", table, numbers)
    with zipfile.ZipFile(root / "data set.zip", "w") as book:
        book.writestr("__MACOSX/set/._data.txt", "nothing")
        book.write(root / "plain.txt", "set/data.txt")
    path = uci.fetch("naval")
    assert path == _uci.cache_folder() / "naval" / "data.txt" == uci.find("naval")
    assert stored() == ["data.txt"]
    (root / "data set.zip").unlink()
    assert np.array_equal(uci.load("naval").numbers, numbers[:, :-1])


def test_a_wrong_download_is_not_kept(folder, server, monkeypatch):
    root, address = server
    table = tables.shrink(monkeypatch, "road_3d", 25, url=f"{address}/road.txt")
    tables.write(root / "road.txt", table, tables.some_numbers(table, 24))
    message = (
        rf"^{address}/road.txt must be .*DPMC_UCI_DIR.*, got: .* shape \(25, 4\), got \(24, 4\)"
    )
    with pytest.raises(UnavailableError, match=message):
        uci.load("road_3d")
    assert stored() == []


@pytest.mark.parametrize("name", ["gone.txt", "empty.zip"])
def test_a_failed_download_says_in_one_line_what_to_do(name, folder, server, monkeypatch):
    root, address = server
    with zipfile.ZipFile(root / "empty.zip", "w"):
        pass
    tables.shrink(monkeypatch, "year", 25, url=f"{address}/{name}")
    holds = "must be downloadable, or `DPMC_UCI_DIR` a folder that holds"
    with pytest.raises(UnavailableError, match=f"{holds} year/YearPrediction") as caught:
        uci.fetch("year")
    assert "\n" not in str(caught.value)
    assert stored() == []
