"""A line of a CSV file is a row, whatever bytes it has, and says nothing of any other."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpmc.shards import csv_lines
from dpmc.shards.csv_lines import open_csv
from dpmc.types import DpmcError

HEADER = b"age,dose,label"
ROWS = [b"1.5,-2,0", b"0.25,1e-3,1", b'"3.5", 7,1', b"-4,0.1,0", b"5,6,1"]
# Lines by which readers of tables take other lines for something else.
HOSTILE = [
    b"",
    b"1,2,3,4",
    b"1,2",
    b'"1,2,3',
    b'1,"2,3',
    b"text,2,0",
    b"True,2,0",
    b"1,2,yes",
    b"#",
    b"\xff\xfe,2,0",
    b"\x00",
    b"1\x00,2,0",
    b"\r",
    b"1\r2,3,4",
    b"\xef\xbb\xbf1,2,0",
    b"nan,inf,-inf",
    b"1;2;3",
    b"1e999,2,0",
    b"9" * 5000 + b",2,0",
    b"x" * 200_000,
    b'"' * 7,
    b"\\",
]


def written(path, lines, header=HEADER, end=b"\n"):
    path.write_bytes(end.join([*([] if header is None else [header]), *lines]) + end)
    return path


def read_by_lines(path):
    file = open_csv(path)
    return file.names, file.num_rows, file.numbers(file.names)


def read_by_guesses(path):
    frame = pd.read_csv(path, encoding="latin-1", on_bad_lines="skip")
    return tuple(frame.columns), len(frame), frame.to_numpy()


def leaves_others(read, folder, k, line):
    """Return whether a file reads as before in all rows but one, whose line is replaced."""
    before = read(written(folder / "before.csv", ROWS))
    after = read(written(folder / "after.csv", [*ROWS[:k], line, *ROWS[k + 1 :]]))
    if before[:2] != after[:2]:
        return False
    x, y = (np.delete(np.asarray(one[2]), k, axis=0) for one in (before, after))
    return x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lines")


def with_hostile(test):
    for k, line in enumerate(HOSTILE):
        test = example(k=k % len(ROWS), line=line)(test)
    return test


@with_hostile
@given(k=st.integers(0, len(ROWS) - 1), line=st.binary().map(lambda b: b.replace(b"\n", b"")))
def test_a_line_of_any_bytes_leaves_all_other_rows_as_they_are(folder, k, line):
    assert leaves_others(read_by_lines, folder, k, line)


def test_a_reader_that_guesses_does_not_keep_this(folder):
    kept = []
    for line in HOSTILE:
        try:
            kept.append(leaves_others(read_by_guesses, folder, 0, line))
        except Exception:
            kept.append(False)
    assert kept.count(False) > len(HOSTILE) / 2


@pytest.mark.parametrize("longest", [16, 1 << 10])
def test_a_line_that_is_too_long_is_one_invalid_row(folder, monkeypatch, longest):
    monkeypatch.setattr(csv_lines, "LONGEST", longest)
    for length in (longest - 1, longest, longest + 1, 3 * longest, 3 * longest + 1):
        lines = [*ROWS[:2], b"9" * length, *ROWS[3:]]
        file = open_csv(written(folder / "long.csv", lines))
        x = file.numbers(["age"])[:, 0]
        assert (file.num_rows, np.isnan(x).tolist()) == (5, [False, False, True, False, False])


@pytest.mark.parametrize(
    ("entry", "number"),
    [
        ("1.5", 1.5),
        (" 1.5 ", 1.5),
        ('"1.5"', 1.5),
        ("1e3", 1e3),
        ("True", 1.0),
        ("FALSE", 0.0),
        ("123456789012345678901234567890", 1.2345678901234568e29),
        *[
            (text, np.nan)
            for text in ("", '"1,234"', '"0,5"', "yes", "0x10", "1_000", "?", "1e999", "nan")
        ],
        ("\xa01.5", np.nan),
        ("\uff11", np.nan),
    ],
)
def test_an_entry_is_a_number_by_itself(folder, entry, number):
    x = open_csv(written(folder / "entry.csv", [f"{entry},2,0".encode()])).numbers(["age", "dose"])
    assert np.array_equal(np.where(np.isfinite(x), x, np.nan), [[number, 2.0]], equal_nan=True)


def test_a_quoted_end_of_line_is_an_end_of_line(folder):
    file = open_csv(written(folder / "quoted.csv", [b'1,"2', b'",3', b"4,5,6"]))
    assert file.num_rows == 3
    assert np.isnan(file.numbers(file.names)).all(axis=1).tolist() == [True, True, False]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_forms_of_one_table_are_read_alike(folder, end):
    right = read_by_lines(written(folder / "plain.csv", ROWS))
    path = written(folder / "ROWS.CSV", ROWS, b'\xef\xbb\xbf"age", dose,label', end)
    tabs = written(
        folder / "rows.tsv", [row.replace(b",", b"\t") for row in ROWS], b"age\tdose\tlabel"
    )
    packed = folder / "rows.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for one in (path, tabs, packed):
        names, num_rows, x = read_by_lines(one)
        assert (names, num_rows, x.tobytes()) == (*right[:2], right[2].tobytes())
    bare = open_csv(written(folder / "bare.csv", ROWS, None), ["age", "dose", "label"])
    assert bare.num_rows == 5
    assert bare.numbers(bare.names).tobytes() == right[2].tobytes()


NUMBER = "has a number where a name should be"


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (b"0.12573,-0.132105,1", NUMBER),
        (b"Alice,34,1", NUMBER),
        (b"age,1e-05,label", NUMBER),
        (b"age,nan,label", NUMBER),
        (b"0,5;1,2;3", NUMBER),
        (b"Alice;34;1", NUMBER),
        (b"0.5 1.5 3", NUMBER),
        (b"age;dose;label;;", "seem to be separated by semicolons"),
        (b"age\tdose", "seem to be separated by tabs"),
        (b"age|dose", "seem to be separated by vertical bars"),
        (b"", "is empty or none"),
        (b"age\rdose", "is empty or none"),
        ("age,dose".encode("utf-16"), "in UTF-8"),
        (b'"age,dose', "is empty or none"),
    ],
)
def test_a_header_that_is_none_is_refused_and_not_shown(folder, header, told):
    path = written(folder / "header.csv", ROWS, header)
    with pytest.raises(DpmcError) as caught:
        open_csv(path)
    message = str(caught.value).replace(str(path), "")
    assert told in message
    assert "\n" not in message
    parts = header.decode("latin-1").replace(";", ",").split(",")
    assert not any(part in message for part in parts if len(part) > 1)


def test_columns_that_are_not_read_need_hold_no_numbers(folder):
    lines = [b"1,J\xfcrgen,0", b"2,?,1"]
    assert open_csv(written(folder / "text.csv", lines)).numbers(["label", "age"]).tolist() == [
        [0.0, 1.0],
        [1.0, 2.0],
    ]


def test_a_file_that_cannot_be_unpacked_is_refused(folder):
    path = folder / "damaged.csv.gz"
    path.write_bytes(gzip.compress(b"age\n1\n" * 1000)[:40])
    with pytest.raises(DpmcError, match="not readable"):
        open_csv(path).num_rows  # noqa: B018
    with pytest.raises(DpmcError, match="not there"):
        open_csv(folder / "none.csv")
