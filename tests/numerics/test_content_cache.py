"""Compiled code on disk: found by content from every copy of the sources, and never a wrong one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numba
import pytest

from dpmc.numerics import compile_cache, content_cache, source_digest

CALLER = """
from dpmc.numerics.callee import scale
from dpmc.numerics.compile_cache import FASTMATH, kept
from dpmc.numerics.jit import njit

@kept
def chain(x):
    total = 0.0
    for k in range(x.size):
        total += scale(x[k]) / (k + 1.3)
    return total

@njit(cache=True, fastmath=FASTMATH)
def plain(x):
    return scale(x[0]) + x[1]
"""
CALLEE = """
from dpmc.numerics.jit import njit

@njit
def scale(x):
    return {factor} * x
"""
# Prints what the functions return, bit by bit, and how many functions were compiled.
CALL = """
import json
import numpy as np
from numba.core import event
recorder = event.RecordingListener()
event.register("numba:compile", recorder)
from dpmc.models import banana
from dpmc.numerics import caller
from dpmc.rows.kernels import ratio_kernel
x = np.random.default_rng(1).standard_normal((2, 999))
kernel = ratio_kernel(banana._log_likelihood, 6, 2)
ratio = kernel(x, np.ones(6), np.arange(6.0), 1.0, 0, 999)[0]
values = [caller.chain(x[0]), caller.plain(x[1]), ratio]
names = [str(e.data["dispatcher"].__module__) for _, e in recorder.buffer if e.is_start]
print(json.dumps([[v.hex() for v in values], sum(name.startswith("dpmc") for name in names)]))
"""


def environment(folder, compiled):
    return os.environ | {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(compiled),
    }


def call(folder, compiled, text=CALL):
    """Run a text with a copy of the package, in a process of its own."""
    command = [sys.executable, "-c", text]
    done = subprocess.run(
        command, env=environment(folder, compiled), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def copy(folder, factor=2.0):
    """Copy the library, with two modules more."""
    shutil.copytree(
        source_digest.ROOT / "dpmc", folder / "dpmc", ignore=shutil.ignore_patterns("__py*")
    )
    numerics = folder / "dpmc" / "numerics"
    (numerics / "caller.py").write_text(CALLER)
    (numerics / "callee.py").write_text(CALLEE.format(factor=factor))
    return folder


def test_another_copy_of_the_sources_compiles_nothing_and_an_edited_callee_does(tmp_path):
    compiled = tmp_path / "compiled"
    first = copy(tmp_path / "first")
    values, count = call(first, compiled)
    assert count >= 5
    # Another place, other file times, a comment and a docstring more.
    second = copy(tmp_path / "a longer name" / "second")
    with (second / "dpmc" / "numerics" / "callee.py").open("a") as file:
        file.write("# a comment\n")
    assert call(second, compiled) == [values, 0]
    # The callers' own file is the same; what was compiled from it is not used.
    third = copy(tmp_path / "third", factor=3.0)
    edited, count = call(third, compiled)
    assert count >= 3
    assert edited[:2] != values[:2]
    assert edited[2:] == values[2:]
    assert call(first, compiled) == [values, 0]


def test_processes_that_write_at_the_same_time_do_each_other_no_harm(tmp_path):
    folder, compiled = copy(tmp_path / "copy"), tmp_path / "compiled"
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: call(folder, compiled), range(2)))
    values = results[0][0]
    assert all(result[0] == values for result in results)
    assert call(folder, compiled) == [values, 0]
    files = [path for path in compiled.rglob("*") if path.is_file()]
    assert compiled / content_cache.LOCKS in files
    files.remove(compiled / content_cache.LOCKS)
    assert {path.suffix for path in files} == {content_cache.SUFFIX}


# The first process keeps nothing before the second waits for it; the second waits, or does not.
IN_TURN = """
import json, pathlib, sys, time
from numba.core import event
from dpmc.numerics import caller, content_cache
import numpy as np
role, place = sys.argv[1], pathlib.Path(sys.argv[2])
cache, sleep = content_cache.ContentCache, time.sleep
def wait_for(name):
    deadline = time.monotonic() + 300
    while not (place / name).exists():
        assert time.monotonic() < deadline
        sleep(0.01)
if role == "first":
    save = cache.save_overload
    def late(self, *arguments):
        (place / "compiled").touch()
        wait_for("waiting")
        return save(self, *arguments)
    cache.save_overload = late
else:
    wait_for("compiled")
    content_cache.time.sleep = lambda seconds: ((place / "waiting").touch(), sleep(seconds))
if role == "alone":
    content_cache.fcntl = None
recorder = event.RecordingListener()
event.register("numba:compile", recorder)
value = caller.plain(np.arange(3.0))
(place / "waiting").touch()
print(json.dumps([value, sum(e.is_start for _, e in recorder.buffer)]))
"""


@pytest.mark.parametrize(("second", "compiled"), [("second", 0), ("alone", 2)])
def test_one_of_two_processes_compiles_and_the_other_waits(tmp_path, second, compiled):
    """Unless files cannot be locked."""
    folder = copy(tmp_path / "copy")

    def start(role):
        command = [sys.executable, "-c", IN_TURN, role, str(tmp_path)]
        variables = environment(folder, tmp_path / "kept")
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(start, ["first", second]))
    assert results == [[1.0, 2], [1.0, compiled]]


PAIR = """
import json, sys
from dpmc.numerics import compile_cache

if {broken}:
    compile_cache._named = lambda function, digest: function

def closure(slope):
    def row(x):
        return slope * x
    row.__module__ = "dpmc.rows.kernels"
    return compile_cache.kept_closure(row)

rows = [closure(slope) for slope in {slopes}]
values = [row(1.0) for row in rows] if len(rows) == 1 else []
if len(rows) == 2:
    text = "def kernel(x):\\n    return one(x) + 10.0 * two(x)\\n"
    values = [compile_cache.kept_source(text, False, dict(one=rows[0], two=rows[1]))(1.0)]
print(json.dumps([values, sum(sum(row.stats.cache_hits.values()) for row in rows)]))
"""


@pytest.mark.parametrize(("broken", "value"), [(False, 52.0), (True, 22.0)])
def test_functions_of_one_name_from_two_processes_stay_two_in_a_third(tmp_path, broken, value):
    """Each process numbers its functions anew; without a name of its own one stood for both."""
    folder = source_digest.ROOT
    for slopes, expected in (
        ([2.0], [[2.0], 0]),
        ([5.0], [[5.0], 0]),
        ([2.0, 5.0], [[value], 2]),
    ):
        assert call(folder, tmp_path, PAIR.format(broken=broken, slopes=slopes)) == expected


@pytest.fixture
def kept_here(tmp_path, monkeypatch):
    monkeypatch.setattr(content_cache.CONFIG, "CACHE_DIR", str(tmp_path))
    return tmp_path


def closure(slope):
    def row(x):
        return slope * x

    row.__module__ = "dpmc.rows.kernels"
    return compile_cache.kept_closure(row)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:20],
        lambda data: data[:-1],
        lambda data: data[:500] + bytes([data[500] ^ 1]) + data[501:],
        lambda data: b"\n" * len(data),
    ],
)
def test_a_damaged_file_is_compiled_anew(kept_here, damage):
    assert closure(2.0)(3.0) == 6.0
    (path,) = kept_here.rglob("*" + content_cache.SUFFIX)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    again = closure(2.0)
    assert (again(3.0), sum(again.stats.cache_hits.values())) == (6.0, 0)
    last = closure(2.0)
    assert (last(3.0), sum(last.stats.cache_hits.values())) == (6.0, 1)


def test_code_that_cannot_be_compiled_keeps_nobody_waiting(kept_here):
    function = closure(2.0)
    with pytest.raises(numba.TypingError):
        function(())
    assert (kept_here / content_cache.LOCKS).exists()
    assert function._cache._locked == []


def test_a_file_of_another_signature_is_not_taken(kept_here):
    function = closure(2.0)
    assert function(3.0) == 6.0
    (path,) = kept_here.rglob("*" + content_cache.SUFFIX)
    assert function(3) == 6.0
    (other,) = set(kept_here.rglob("*" + content_cache.SUFFIX)) - {path}
    other.write_bytes(path.read_bytes())
    again = closure(2.0)
    assert again(3) == 6.0
    assert sum(again.stats.cache_hits.values()) == 0


@pytest.mark.parametrize("package", [numba, content_cache.llvmlite, content_cache.np])
def test_other_versions_have_another_folder(kept_here, monkeypatch, package):
    before = content_cache.folder(closure(2.0))
    assert content_cache.folder(closure(2.0)) == before
    monkeypatch.setattr(package, "__version__", "0")
    assert content_cache.folder(closure(2.0)) != before


def test_flushing_removes_what_is_kept_and_disabling_keeps_nothing(kept_here):
    function = closure(2.0)
    function(3.0)
    assert function.stats.cache_path == str(content_cache.folder(function))
    function._cache.flush()
    assert not list(kept_here.rglob("*" + content_cache.SUFFIX))
    function._cache.disable()
    function(3)
    assert not list(kept_here.rglob("*" + content_cache.SUFFIX))
    function._cache.enable()
    function(3j)
    assert len(list(kept_here.rglob("*" + content_cache.SUFFIX))) == 1


def test_the_folder_lies_where_numba_is_told_to_keep_things(tmp_path, monkeypatch):
    monkeypatch.setattr(content_cache.CONFIG, "CACHE_DIR", str(tmp_path))
    found = content_cache.folder(closure(2.0))
    assert found.parent == tmp_path
    monkeypatch.setattr(content_cache.CONFIG, "CACHE_DIR", "")
    assert content_cache.folder(closure(2.0)).name == found.name


def test_functions_of_others_keep_numbas_own_cache(kept_here, tmp_path, monkeypatch):
    (tmp_path / "theirs.py").write_text(
        "import numba\n@numba.njit(cache=True)\ndef f(x):\n    return x + 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import theirs

    assert theirs.f(1) == 2
    assert type(theirs.f._cache).__module__ == "numba.core.caching"
    assert list(kept_here.rglob("*.nbi"))
