"""Compiled code on disk: never that of other sources, and one process at a time."""

from __future__ import annotations

import ast
import errno
import json
import math
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest

from dpmc.numerics import compiled, source_digest
from dpmc.numerics.compiled import FASTMATH, compile_source, njit
from dpmc.rows import tuples


def hits(function):
    return sum(function.stats.cache_hits.values())


def files(folder):
    return sorted(folder.rglob("*.nbc"))


@pytest.fixture
def kept_here(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled.CONFIG, "CACHE_DIR", str(tmp_path))
    return tmp_path


def closure(slope):
    """Return a function that counts as one of the package, closed over a number."""

    def row(x):
        return slope * x

    row.__module__ = "dpmc.rows.kernels"
    return njit(row)


TEXT = "def kernel(x):\n    return row(x) + shift\n"


def kernel(slope, shift=0.0, text=TEXT, fastmath=False):
    return compile_source(text, fastmath, row=closure(slope), shift=shift)


def test_a_text_is_compiled_once_for_the_same_functions_and_constants(kept_here):
    first = kernel(2.0)
    assert (first(3.0), hits(first)) == (6.0, 0)
    again = kernel(2.0)
    assert (again(3.0), hits(again)) == (6.0, 1)
    others = [
        kernel(5.0),
        kernel(2.0, 1.0),
        kernel(2.0, text=TEXT.replace("+", "-")),
        kernel(2.0, fastmath={"contract"}),
    ]
    assert [other(3.0) for other in others] == [15.0, 7.0, 6.0, 6.0]
    assert [hits(other) for other in others] == [0, 0, 0, 0]


def test_a_key_that_left_out_a_function_would_give_the_code_of_another(kept_here, monkeypatch):
    """What the digest of the functions is there for."""
    known = compiled.described
    monkeypatch.setattr(
        compiled, "described", lambda value: "row" if hasattr(value, "py_func") else known(value)
    )
    assert kernel(2.0)(3.0) == 6.0
    assert kernel(5.0)(3.0) == 6.0


def test_texts_that_use_other_texts_are_told_apart_by_those(kept_here):
    outer = "def kernel(x):\n    return inner(x) * 10.0\n"
    made = [compile_source(outer, False, inner=kernel(slope)) for slope in (2.0, 5.0)]
    assert [function(3.0) for function in made] == [60.0, 150.0]


def test_closures_are_kept_by_what_they_close_over(kept_here):
    for slope, value, known in ((2.0, 6.0, 0), (2.0, 6.0, 1), (5.0, 15.0, 0)):
        function = closure(slope)
        assert (function(3.0), hits(function)) == (value, known)


def loop(slope, count):
    """Return a loop that closes over a compiled function and a number."""
    row = closure(slope)

    def total(x):
        return sum([row(x) for _ in range(count)])

    total.__module__ = "dpmc.rows.kernels"
    return compiled.kept_loop(njit(total))


def test_loops_are_kept_by_the_functions_and_numbers_that_they_close_over(kept_here):
    for slope, count, value, known in ((2.0, 3, 18.0, 0), (2.0, 3, 18.0, 1), (5.0, 3, 45.0, 0)):
        function = loop(slope, count)
        assert (function(3.0), hits(function)) == (value, known)
    function = loop(2.0, 4)
    assert (function(3.0), hits(function)) == (24.0, 0)


def long(x):
    total = 0.0
    for k in range(x.size):
        total += math.sin(x[k]) / (1.0 + x[k] * x[k])
    for k in range(x.size):
        total *= math.cos(total) + x[k]
    return total


@pytest.mark.parametrize(("options", "stays"), [({}, False), ({"forceinline": False}, True)])
def test_functions_that_may_reorder_sums_are_part_of_their_callers(options, stays):
    """Else the process that compiles the caller calls code that is optimised once less."""
    inner = njit(fastmath=FASTMATH, **options)(long)
    outer = njit(fastmath=FASTMATH)(lambda x: inner(x) + inner(x[1:]) * inner(x[2:]))
    outer(np.ones(9))
    (text,) = outer.inspect_llvm().values()
    heads = [line for line in text.splitlines() if line.startswith("define")]
    assert heads
    assert any("4long" in line and "linkonce" in line for line in heads) == stays


def of_numba(text):
    """Return the lines of a module that name a decorator of Numba's own."""
    names = {"cfunc", "generated_jit", "guvectorize", "jit", "njit", "vectorize"}
    found = []
    for node in ast.walk(ast.parse(text)):
        numbas = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "numba"
        if numbas and node.attr in names:
            found.append(node.lineno)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "numba":
            found += [node.lineno] * bool(names & {alias.name for alias in node.names})
    return found


def test_nothing_in_the_package_is_compiled_past_the_digests():
    sources = [*source_digest.ROOT.rglob("*.py")]
    assert len(sources) > 100
    found = {path.name for path in sources if of_numba(path.read_text(encoding="utf-8"))}
    assert found == {"compiled.py"}
    assert of_numba("import numba\n@numba.njit(nogil=True)\ndef f(): pass") == [2]
    assert of_numba("from numba import njit") == [1]


def one(x):
    return x + 1


def test_what_is_not_known_is_compiled_and_not_kept(kept_here):
    function = compiled.compile_once(one)
    made = compile_source("def kernel(x):\n    return f(x)\n", False, f=function)
    assert made(1) == 2
    assert not files(kept_here)
    assert compiled.described(one) is None
    assert compiled.described(object()) is None


def test_functions_of_others_keep_numbas_own_cache(kept_here, tmp_path, monkeypatch):
    closure(2.0)(3.0)
    (tmp_path / "theirs.py").write_text(
        "import numba\n@numba.njit(cache=True)\ndef f(x):\n    return x + 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import theirs

    assert theirs.f(1) == 2
    assert Path(theirs.f.stats.cache_path).parent == kept_here
    assert str(kept_here) == compiled.CONFIG.CACHE_DIR


def test_a_folder_that_cannot_be_written_to_is_left_alone(kept_here, monkeypatch):
    """Numba would write beside the sources in its place, where no digest stands."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    function = closure(2.0)
    assert function(3.0) == 6.0
    assert function.stats.cache_path is None
    assert not files(kept_here)


@pytest.mark.parametrize("suffix", [".nbc", ".nbi"])
@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[: len(data) // 2]])
def test_a_damaged_file_is_compiled_anew(kept_here, damage, suffix):
    assert closure(2.0)(3.0) == 6.0
    (path,) = kept_here.rglob(f"*{suffix}")
    path.write_bytes(damage(path.read_bytes()))
    again = closure(2.0)
    assert (again(3.0), hits(again)) == (6.0, 0)
    last = closure(2.0)
    assert (last(3.0), hits(last)) == (6.0, 1)


def test_code_that_cannot_be_compiled_is_refused_and_keeps_nobody_waiting(kept_here):
    function = closure(2.0)
    with pytest.raises(numba.TypingError):
        function(())
    assert function(3.0) == 6.0


PAIR = """
import json, sys
from dpmc.numerics import compiled

broken, *slopes = map(float, sys.argv[1:])
if broken:
    compiled._rename = lambda function, description: None

def closure(slope):
    def row(x):
        return slope * x
    row.__module__ = "dpmc.rows.kernels"
    return compiled.njit(row)

rows = [closure(slope) for slope in slopes]
values = [row(1.0) for row in rows] if len(rows) == 1 else []
if len(rows) == 2:
    text = "def kernel(x):\\n    return one(x) + 10.0 * two(x)\\n"
    values = [compiled.compile_source(text, False, one=rows[0], two=rows[1])(1.0)]
print(json.dumps([values, sum(sum(row.stats.cache_hits.values()) for row in rows)]))
"""


def call(folder, kept, text, *arguments):
    """Run a text with a copy of the package, in a process of its own."""
    variables = os.environ | {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(kept),
    }
    command = [sys.executable, "-c", text, *map(str, arguments)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("broken", "value"), [(False, 52.0), (True, 22.0)])
def test_functions_of_one_name_from_two_processes_stay_two_in_a_third(tmp_path, broken, value):
    """Each process numbers its functions anew; without a name of its own one stood for both."""
    path = tmp_path / "pair.py"  # Numba keeps nothing of functions that have no file
    path.write_text(PAIR)
    run = f"import runpy; runpy.run_path({str(path)!r})"
    for slopes, expected in (
        ([2.0], [[2.0], 0]),
        ([5.0], [[5.0], 0]),
        ([2.0, 5.0], [[value], 2]),
    ):
        assert call(source_digest.ROOT, tmp_path, run, int(broken), *slopes) == expected


CALLER = """
from dpmc.numerics.callee import scale
from dpmc.numerics.compiled import kept

@kept
def chain(x):
    total = 0.0
    for k in range(x.size):
        total += scale(x[k]) / (k + 1.3)
    return total
"""
CALLEE = "from dpmc.numerics.compiled import njit\n@njit\ndef scale(x):\n    return {} * x\n"
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
values = [caller.chain(x[0]), ratio]
names = [str(e.data["dispatcher"].__module__) for _, e in recorder.buffer if e.is_start]
print(json.dumps([[v.hex() for v in values], sum(name.startswith("dpmc") for name in names)]))
"""


@pytest.fixture
def copy(tmp_path):
    """The folder of a copy of the library, with two modules more."""
    ignored = shutil.ignore_patterns("__py*")
    shutil.copytree(source_digest.ROOT / "dpmc", tmp_path / "copy" / "dpmc", ignore=ignored)
    numerics = tmp_path / "copy" / "dpmc" / "numerics"
    (numerics / "caller.py").write_text(CALLER)
    (numerics / "callee.py").write_text(CALLEE.format(2.0))
    return tmp_path / "copy"


def test_an_edited_callee_compiles_its_callers_anew_and_nothing_else(copy, tmp_path):
    callee = copy / "dpmc" / "numerics" / "callee.py"
    with ThreadPoolExecutor(2) as pool:  # processes that write at once do each other no harm
        results = list(pool.map(lambda _: call(copy, tmp_path / "kept", CALL), range(2)))
    values = results[0][0]
    assert all(result[0] == values for result in results)
    assert sum(result[1] for result in results) >= 4
    assert call(copy, tmp_path / "kept", CALL) == [values, 0]
    # The callers' own file is the same; what was compiled from it is not used.
    callee.write_text(CALLEE.format(3.0))
    edited, count = call(copy, tmp_path / "kept", CALL)
    assert count == 2
    assert edited[0] != values[0]
    assert edited[1] == values[1]
    callee.write_text(CALLEE.format(2.0))
    assert call(copy, tmp_path / "kept", CALL)[0] == values


# The first process keeps nothing before the second waits for it; the second waits, or does not.
IN_TURN = """
import json, pathlib, sys, time
from numba.core import caching, event
import numpy as np
from dpmc.numerics import callee, compiled
role, place = sys.argv[1], pathlib.Path(sys.argv[2])
def wait_for(name):
    deadline = time.monotonic() + 300
    while not (place / name).exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
if role.startswith("first"):
    save = caching.IndexDataCacheFile.save
    def late(self, *arguments):
        (place / "compiled").touch()
        wait_for("waiting" if role == "first" else "done")
        time.sleep(0.5)
        return save(self, *arguments)
    caching.IndexDataCacheFile.save = late
else:
    wait_for("compiled")
    (place / "waiting").touch()
if role == "alone":
    compiled.fcntl = None
recorder = event.RecordingListener()
event.register("numba:compile", recorder)
value = callee.scale(3.0)
(place / "done").touch()
print(json.dumps([value, sum(e.is_start for _, e in recorder.buffer)]))
"""


@pytest.mark.parametrize(("second", "count"), [("second", 0), ("alone", 1)])
def test_one_of_two_processes_compiles_and_the_other_waits(copy, tmp_path, second, count):
    """Unless files cannot be locked."""
    with ThreadPoolExecutor(2) as pool:
        roles = ["first" if second == "second" else "first, alone", second]
        results = list(
            pool.map(lambda role: call(copy, tmp_path / "kept", IN_TURN, role, tmp_path), roles)
        )
    assert results == [[6.0, 1], [6.0, count]]


@pytest.mark.parametrize("compiler", [njit, numba.njit])
def test_a_function_has_flags_of_its_own(compiler):
    """Those of Numba's, the broken variant, are the flags of whoever calls it first."""
    inner = compiler(lambda a, b, c: a + b + c)
    njit(fastmath=True)(lambda a: inner(a, a, a))(1.0)
    (text,) = inner.inspect_llvm().values()
    assert ("fadd fast" in text) == (compiler is numba.njit)


def test_helpers_of_tuples_have_a_name_for_each_pair_of_lengths():
    """Two of one name from two processes would be one in a third."""
    made = [tuples._dot((1.0,) * n, (1.0,) * n).__qualname__ for n in (2, 3)]
    made += [tuples._scale(1.0, (1.0, 2.0)).__qualname__]
    made += [tuples._subtract((1.0, 2.0), (1.0, 2.0)).__qualname__]
    made += [tuples._tail((1.0, 2.0), (1.0,)).__qualname__]
    assert len({*made}) == len(made)


@pytest.mark.parametrize(
    ("value", "other"),
    [(1, 1.0), (True, 1), ("a", "b"), (np.zeros(2), np.zeros(3)), (np.zeros(2), np.ones(2))],
)
def test_constants_are_told_apart(value, other):
    assert compiled.described(value) != compiled.described(other)


def test_without_a_folder_a_function_is_compiled_all_the_same(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr(compiled.CONFIG, "CACHE_DIR", str(blocked))
    assert closure(2.0)(3.0) == 6.0
    assert kernel(2.0)(3.0) == 6.0


def test_a_full_disk_keeps_nobody_from_computing(kept_here, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "_save_data", full)
    function = closure(2.0)
    assert (function(3.0), function(4)) == (6.0, 8.0)
    assert not files(kept_here)


def test_a_text_that_is_damaged_is_written_anew(kept_here):
    assert kernel(2.0)(3.0) == 6.0
    (path,) = kept_here.rglob("k_*.py")
    path.write_text("def kernel(x):\n    return 0.0\n")
    assert kernel(2.0)(3.0) == 6.0
    assert path.read_text() == TEXT
