from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from dpmc.linreg import sufficient_statistics
from dpmc.linreg.sufficient_statistics import BLOCK, node_sizes, node_statistics
from dpmc.rng import stream
from dpmc.types import DpmcError

WIDE = (100.0, 100.0)


def some_rows(num_rows, dim):
    rng = stream(3, "statistics", num_rows, dim)
    return rng.standard_normal((num_rows, dim)), rng.standard_normal(num_rows)


def cut(x, y, size):
    for first in range(0, len(x), size):
        yield x[first : first + size], y[first : first + size]


def bytes_of(found):
    return [part.tobytes() for part in (found.num_rows, found.s, found.z, found.u)]


@pytest.mark.parametrize(("num_rows", "dim", "num_nodes"), [(103, 1, 1), (103, 4, 5), (9001, 3, 2)])
def test_sums_are_those_of_consecutive_rows_with_the_rest_in_the_last_node(
    num_rows, dim, num_nodes
):
    x, y = some_rows(num_rows, dim)
    found = node_statistics((x, y), num_nodes, num_rows, WIDE)
    size = num_rows // num_nodes
    assert found.num_rows.tolist() == [size] * (num_nodes - 1) + [num_rows - size * (num_nodes - 1)]
    assert (found.num_nodes, found.dim, found.num_clipped) == (num_nodes, dim, 0)
    for j in range(num_nodes):
        end = (j + 1) * size if j < num_nodes - 1 else num_rows
        a, b = x[j * size : end], y[j * size : end]
        np.testing.assert_allclose(found.s[j], a.T @ a, rtol=1e-12, atol=1e-10)
        np.testing.assert_allclose(found.z[j], a.T @ b, rtol=1e-12, atol=1e-10)
        assert found.u[j] == pytest.approx(b @ b, rel=1e-12)
        assert np.array_equal(found.s[j], found.s[j].T)


@pytest.mark.parametrize("size", [1, 7, BLOCK - 1, BLOCK, 2 * BLOCK + 5])
def test_sums_do_not_depend_on_how_the_rows_are_cut(size):
    num_rows = 2 * BLOCK + 900 if size > 1 else 300
    x, y = some_rows(num_rows, 3)
    whole = node_statistics((x, y), 2, num_rows, (1.5, 1.0))
    parts = node_statistics(cut(x, y, size), 2, num_rows, (1.5, 1.0))
    assert bytes_of(parts) == bytes_of(whole)
    assert parts.num_clipped == whole.num_clipped > 0


def test_rows_beyond_the_bounds_are_clipped_and_counted():
    x, y = some_rows(500, 3)
    x[7] *= 1e200  # its square overflows
    y[11] = -1e308
    y[12] = -1e308  # so does the sum of the two
    before = x.copy()
    found = node_statistics((x, y), 4, 500, (1.2, 0.8))
    norms = np.linalg.norm(x / np.abs(x).max(axis=1)[:, None], axis=1) * np.abs(x).max(axis=1)
    shorter = x * np.minimum(1.0, 1.2 / norms)[:, None]
    shorter[7] = 1.2 * x[7] / norms[7]
    nearer = np.clip(y, -0.8, 0.8)
    assert found.num_clipped == np.sum((norms > 1.2) | (np.abs(y) > 0.8))
    np.testing.assert_allclose(found.s.sum(axis=0), shorter.T @ shorter, rtol=1e-11)
    np.testing.assert_allclose(found.z.sum(axis=0), shorter.T @ nearer, rtol=1e-11)
    assert found.u.sum() == pytest.approx(nearer @ nearer, rel=1e-11)
    assert np.array_equal(x, before)


def test_clipped_rows_do_not_exceed_the_bounds_by_a_single_bit():
    x, y = some_rows(20_000, 7)
    rows = np.column_stack((x * 3, y * 3))
    beyond = sufficient_statistics.bound_rows(rows, 1.3, 0.9)
    assert 0.5 < beyond.mean() <= 1
    assert np.sqrt(np.sum(rows[:, :-1].astype(np.longdouble) ** 2, axis=1)).max() <= 1.3
    assert np.abs(rows[:, -1]).max() <= 0.9


# The memory of this program, not of what started it: VmHWM, unlike ru_maxrss, is its own.
PROGRAM = """
import re
import numpy as np
from pathlib import Path
from dpmc.linreg.sufficient_statistics import node_statistics
rng = np.random.default_rng(1)
def chunks():
    for _ in range(100):
        w = rng.standard_normal((100_000, 6), dtype=np.float32)
        yield w[:, :5], w[:, 5]
found = node_statistics(chunks(), 10, 10_000_000, (4.0, 3.0))
assert found.num_rows.tolist() == [1_000_000] * 10
assert abs(found.s.sum(0) / 1e7 - np.eye(5)).max() < 0.01
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]
print(found.num_clipped, peak)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/status tells the peak of memory")
def test_ten_million_rows_pass_through_little_memory():
    """The rows alone would take 480 MB as double precision."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=300
    )
    num_clipped, peak = map(int, done.stdout.split())
    assert 0 < num_clipped < 10_000_000
    assert peak < 200_000


def test_a_node_takes_its_share_of_the_rows():
    assert node_sizes(10, 3).tolist() == [3, 3, 4]
    with pytest.raises(
        DpmcError, match=r"^`num_nodes` must be at most 3, the number of rows, got 4$"
    ):
        node_sizes(3, 4)
    with pytest.raises(DpmcError, match=r"num_nodes.*\b0\b"):
        node_sizes(3, 0)


def test_rows_at_the_bounds_are_within_them():
    x, _ = some_rows(5000, 6)
    x *= (2.0 / np.linalg.norm(x, axis=1))[:, None]
    y = np.full(5000, -0.7)
    found = node_statistics((x, y), 1, 5000, (2.0, 0.7))
    assert found.num_clipped == 0
    np.testing.assert_allclose(found.s[0], x.T @ x, rtol=1e-11, atol=1e-9)


def largest_move(clip_bound):
    """Return how far X'X moves at most, over the claim for rows of norm 1, as rows change."""
    rng = stream(4, "moves")
    x, y = some_rows(50, 2)
    moves = []
    for _ in range(200):
        pair = []
        for _ in range(2):
            x[0] = rng.standard_normal(2) * 10.0 ** rng.uniform(-2, 6)
            pair.append(node_statistics((x, y), 1, 50, (clip_bound, 1.0)).s[0])
        moves.append(np.linalg.norm(pair[0] - pair[1]))
    # Replacing one row of norm at most 1 moves xx' by at most sqrt(2) in Frobenius norm.
    return max(moves) / np.sqrt(2.0)


def test_one_row_of_any_size_moves_the_sums_no_farther_than_the_bound_allows():
    """And a clip bound that is 10 % too wide is found out."""
    assert 0.95 < largest_move(1.0) <= 1.0 + 1e-9
    assert largest_move(1.1) > 1.1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"num_nodes": 6},
            r"^`num_nodes` must leave each node at least 3 rows, .*, the smallest of 2 rows",
        ),
        ({"bounds": (0.0, 1.0)}, r"x bound.*0\.0"),
        ({"bounds": (1.0, float("inf"))}, r"y bound.*inf"),
        ({"num_rows": 13}, r"^`chunks` must have num_rows = 13 rows, got 12$"),
        ({"num_rows": 11}, r"^`chunks` must have num_rows = 11 rows, got more$"),
        ({"chunks": []}, r"^`chunks` must have num_rows = 12 rows, got 0$"),
    ],
)
def test_settings_that_do_not_fit_are_refused(change, message):
    x, y = some_rows(12, 3)
    settings = {"chunks": [(x, y)], "num_nodes": 2, "num_rows": 12, "bounds": WIDE, **change}
    with pytest.raises(DpmcError, match=message):
        node_statistics(**settings)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros(4), np.zeros(4), r"^x in `chunks` must have shape \(m, 2\), got \(4,\)$"),
        (np.zeros((4, 3)), np.zeros(4), r"^x in `chunks` must have shape \(m, 2\), got \(4, 3\)$"),
        (
            np.zeros((4, 2)),
            np.zeros((4, 1)),
            r"^y in `chunks` must have shape \(4,\), got \(4, 1\)$",
        ),
        (np.zeros((4, 2), dtype=complex), np.zeros(4), r"must be real numbers, got others"),
        (np.full((4, 2), np.nan), np.zeros(4), r"^`x, column 0,` must be finite numbers"),
        (np.zeros((4, 2)), np.array([0, 0, -np.inf, 0]), r"^`y` must be finite numbers"),
    ],
)
def test_rows_of_the_wrong_kind_are_refused(x, y, message):
    first = (np.ones((3, 2)), np.ones(3))
    with pytest.raises(DpmcError, match=message):
        node_statistics([first, (x, y)], 1, 7, WIDE)
