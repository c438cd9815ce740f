"""Chains kept on disk: never those of other sources."""

from __future__ import annotations

import ast

import numba
import numpy as np
import pytest
from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen

from dpmc.numerics import compile_cache, content_cache, jit, source_digest
from dpmc.rows import tuples
from dpmc.rows.batches import Draws, draw_distinct
from dpmc.types import DpmcError


def row_function(slope):
    """Return a function that counts as one of the package, closed over a number."""

    def row(x):
        return slope * x

    row.__module__ = "dpmc.rows.kernels"
    return row


def hits(function):
    return sum(function.stats.cache_hits.values())


@pytest.fixture
def kept_here(tmp_path, monkeypatch):
    monkeypatch.setattr(content_cache.CONFIG, "CACHE_DIR", str(tmp_path))
    return tmp_path


TEXT = "def kernel(x):\n    return row(x) + shift\n"


def kernel(slope, shift=0.0, text=TEXT, fastmath=False):
    names = {"row": compile_cache.kept_closure(row_function(slope)), "shift": shift}
    return compile_cache.kept_source(text, fastmath, names)


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
    monkeypatch.setattr(compile_cache, "described", lambda value: "a function")
    assert kernel(2.0)(3.0) == 6.0
    assert kernel(5.0)(3.0) == 6.0


def test_texts_that_use_other_texts_are_told_apart_by_those(kept_here):
    outer = "def kernel(x):\n    return inner(x) * 10.0\n"
    made = [
        compile_cache.kept_source(outer, False, {"inner": kernel(slope)}) for slope in (2.0, 5.0)
    ]
    assert [function(3.0) for function in made] == [60.0, 150.0]


def test_closures_are_kept_by_what_they_close_over(kept_here):
    for slope, value, known in ((2.0, 6.0, 0), (2.0, 6.0, 1), (5.0, 15.0, 0)):
        function = compile_cache.kept_closure(row_function(slope))
        assert (function(3.0), hits(function)) == (value, known)


def loop(slope, count):
    """Return a compiled loop that closes over a compiled function and a number."""
    row = compile_cache.kept_closure(row_function(slope))

    def total(x):
        return sum([row(x) for _ in range(count)])

    total.__module__ = "dpmc.rows.kernels"
    return compile_cache.kept_loop(numba.njit(total))


def test_loops_are_kept_by_the_functions_and_numbers_that_they_close_over(kept_here):
    for slope, count, value, known in ((2.0, 3, 18.0, 0), (2.0, 3, 18.0, 1), (5.0, 3, 45.0, 0)):
        function = loop(slope, count)
        assert (function(3.0), hits(function)) == (value, known)
    function = loop(2.0, 4)
    assert (function(3.0), hits(function)) == (24.0, 0)


def shared_copies():
    """Compile a loop that draws two batches; return what in it other code of that name replaces."""

    def draw(words, bits, num_rows, mask, candidates, batch):
        first = draw_distinct(words, bits, num_rows, mask, candidates, batch)
        return first and draw_distinct(words[::2], bits, num_rows, mask, candidates, batch)

    draw.__module__ = "dpmc.rows.kernels"
    function, draws = compile_cache.kept_loop(numba.njit(draw)), Draws(1000, 10)
    words = np.random.default_rng(1).integers(0, 2**64, draws.words_per_batch, dtype=np.uint64)
    function(words, draws.bits, 1000, *draws.scratch())
    (compiled,) = function.overloads.values()
    made = [f for f in compiled.library._final_module.functions if not f.is_declaration]
    assert any(f.linkage == Linkage.external for f in made)
    weak = {f.name for f in made if f.linkage == Linkage.linkonce_odr}
    return {name for name in weak if not name.startswith("NRT_")}


def test_a_process_that_compiles_runs_what_another_takes_from_disk(kept_here, monkeypatch):
    """Numba leaves the choice between two copies, of which one is optimised once more."""
    assert shared_copies() == set()
    (kept_here / "other").mkdir()
    monkeypatch.setattr(content_cache.CONFIG, "CACHE_DIR", str(kept_here / "other"))
    monkeypatch.setattr(jit.SelfContainedCompiler, "library", JITCodeLibrary)
    assert any("draw_distinct" in name for name in shared_copies())


def library_of(function, *arguments):
    """Return the class of the code of a function that is called, and so compiled, once."""
    function(*arguments)
    (compiled,) = getattr(function, "whole", function).overloads.values()
    return type(compiled.library)


def test_functions_that_others_compile_are_left_to_numba():
    assert JITCPUCodegen._library_class is JITCodeLibrary
    assert library_of(numba.njit(lambda x: x + 1.0), 1.0) is JITCodeLibrary
    assert library_of(jit.njit(lambda x: x + 1.0), 1.0) is jit.SelfContained
    # Also after and within a function of the package, whose code is not theirs.
    inner = numba.njit(lambda x: x + 1.0)
    assert library_of(jit.njit(lambda x: inner(x)), 1.0) is jit.SelfContained
    assert library_of(inner, 1.0) is JITCodeLibrary


def test_helpers_of_row_functions_are_compiled_as_the_package_is():
    def pair(x):
        return tuples.dot((x, x), (x, x))

    function = jit.njit(pair)
    assert function(2.0) == 8.0
    (template,) = {
        template
        for template in numba.core.registry.cpu_target.typing_context.resolve_value_type(
            tuples.dot
        ).templates
        if template._impl_cache
    }
    made = [impl for impl, _ in template._impl_cache.values() if impl is not None]
    assert made
    for helper in made:
        assert {type(c.library) for c in helper.overloads.values()} == {jit.Part}


def square(x):
    if x > 100.0:
        raise ValueError("too large")
    return x * x


def test_what_compiled_code_alone_calls_is_compiled_as_a_part_of_it():
    inner = jit.njit(square)
    middle = jit.njit(lambda x: inner(x) + 1.0)
    outer = jit.njit(lambda x: middle(x) + inner(2.0))
    others = numba.njit(lambda x: middle(x) + inner(2.0))
    assert outer(3.0) == others(3.0) == 14.0
    for part in (inner, middle):
        (compiled,) = part.overloads.values()
        assert type(compiled.library) is jit.Part
        assert not compiled.library._codegen._engine.is_symbol_defined(compiled.fndesc.mangled_name)
        assert not part.whole.overloads
    for call in (outer, others):
        with pytest.raises(ValueError, match="too large"):
            call(101.0)


def test_a_part_that_python_calls_is_compiled_as_a_whole():
    inner = jit.njit(square)
    outer = jit.njit(lambda x: inner(x))
    assert (outer(3.0), inner(3.0), inner(x=2)) == (9.0, 9.0, 4)
    assert len(inner.overloads) == 1
    assert len(inner.whole.overloads) == 2
    with pytest.raises(ValueError, match="too large"):
        inner(101.0)
    assert "no_cpython_wrapper" not in inner.targetoptions


@pytest.mark.parametrize("compiler", [jit.njit, numba.njit])
def test_a_part_has_flags_of_its_own(compiler):
    """Those of Numba's, the broken variant, are the flags of whoever calls it first."""
    inner = compiler(lambda a, b, c: a + b + c)
    jit.njit(fastmath=True)(lambda a: inner(a, a, a))(1.0)
    (compiled,) = inner.overloads.values()
    assert ("fadd fast" in compiled.library.get_llvm_str()) == (compiler is numba.njit)


def test_a_part_has_no_address():
    """A pointer to it would be one to nowhere."""
    inner = jit.njit(square)
    jit.njit(lambda x: inner(x))(3.0)
    (compiled,) = inner.overloads.values()
    with pytest.raises(NotImplementedError, match="square is a part of compiled functions"):
        compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)


def compilers(text):
    """Return the lines of a module that name a decorator of Numba's own."""
    names = {"cfunc", "generated_jit", "guvectorize", "jit", "njit", "vectorize"}
    found = []
    for node in ast.walk(ast.parse(text)):
        of_numba = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "numba"
        if of_numba and node.attr in names:
            found.append(node.lineno)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "numba":
            found += [node.lineno] * bool(names & {alias.name for alias in node.names})
    return found


def test_nothing_in_the_package_is_compiled_by_numba_alone():
    files = [*source_digest.ROOT.rglob("*.py")]
    assert len(files) > 100
    found = {path.name for path in files if compilers(path.read_text(encoding="utf-8"))}
    assert found == {"jit.py"}
    assert compilers("import numba\n@numba.njit(nogil=True)\ndef f(): pass") == [2]
    assert compilers("from numba import njit") == [1]
    assert compilers("from dpmc.numerics.jit import njit") == []


def test_what_is_not_known_is_compiled_and_not_kept(kept_here):
    function = compile_cache.kept_closure(one)
    made = compile_cache.kept_source("def kernel(x):\n    return f(x)\n", False, {"f": function})
    assert made(1) == 2
    assert not list(kept_here.rglob("*.nbc"))
    assert content_cache.described(one) is None
    assert content_cache.described(object()) is None


@pytest.mark.parametrize(
    ("value", "other"),
    [(1, 1.0), (True, 1), ("a", "b"), (np.zeros(2), np.zeros(3)), (np.zeros(2), np.ones(2))],
)
def test_constants_are_told_apart(value, other):
    assert content_cache.described(value) != content_cache.described(other)


def test_two_functions_of_one_line_are_told_apart():
    one, other = (lambda x: x * 2.0), (lambda x: x * 3.0)
    for function in (one, other):
        function.__module__ = "dpmc.rows.kernels"
    assert content_cache.described(one) != content_cache.described(other)
    assert content_cache.described(one) == content_cache.described(one)


def one(x):
    return x + 1


def test_a_function_of_another_package_is_refused():
    with pytest.raises(DpmcError, match=r"must be of a module of dpmc, got .*test_compile_cache"):
        compile_cache.kept(one)


@pytest.fixture
def chain(monkeypatch):
    monkeypatch.setattr(one, "__module__", "dpmc.rows.kernels")
    return one


def test_a_chain_is_kept_and_other_functions_are_compiled_as_before(tmp_path, monkeypatch, chain):
    monkeypatch.setattr(content_cache.CONFIG, "CACHE_DIR", str(tmp_path))
    assert compile_cache.kept(chain)(1) == 2
    assert str(tmp_path) == content_cache.CONFIG.CACHE_DIR
    assert list(content_cache.folder(chain).rglob("*.nbc"))


def test_without_a_folder_a_chain_is_compiled_all_the_same(tmp_path, monkeypatch, chain):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr(content_cache.CONFIG, "CACHE_DIR", str(blocked))
    assert compile_cache.kept(chain)(1) == 2
