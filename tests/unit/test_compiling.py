"""Chains kept on disk: never those of other sources."""

from __future__ import annotations

import pytest

from dpmc import compiling, digest
from dpmc.types import DpmcError

CALLER = "from dpmc.callee import inner\n"


@pytest.fixture
def forgetful():
    """Let digests be taken anew: they are remembered, since code does not change while it runs."""
    remembered = (digest.code_digest, digest.closure, digest.module_digest, digest.module_tree)

    def forget():
        for function in remembered:
            function.cache_clear()

    forget()
    yield forget
    forget()


def test_a_change_in_what_a_chain_calls_has_another_folder(tmp_path, monkeypatch, forgetful):
    monkeypatch.setattr(digest, "ROOT", tmp_path)
    (tmp_path / "caller.py").write_text(CALLER)
    (tmp_path / "stranger.py").write_text("a = 1\n")
    found = []
    for text in ("a = 1\n", "a = 2\n", "a = 1\n"):
        (tmp_path / "callee.py").write_text(text)
        forgetful()
        found.append(compiling.folder("dpmc.caller"))
    assert found[0] == found[2] != found[1]
    (tmp_path / "stranger.py").write_text("a = 2\n")
    forgetful()
    assert compiling.folder("dpmc.caller") == found[0]


def test_the_folder_lies_where_numba_is_told_to_keep_things(tmp_path, monkeypatch):
    monkeypatch.setattr(compiling.CONFIG, "CACHE_DIR", str(tmp_path))
    found = compiling.folder("dpmc.kernels")
    assert found.parent == tmp_path
    monkeypatch.setattr(compiling.CONFIG, "CACHE_DIR", "")
    assert compiling.folder("dpmc.kernels").name == found.name


def one(x):
    return x + 1


def test_a_function_of_another_package_is_refused():
    with pytest.raises(DpmcError, match=r"module: .*test_compiling"):
        compiling.kept(one)


@pytest.fixture
def chain(monkeypatch):
    monkeypatch.setattr(one, "__module__", "dpmc.kernels")
    return one


def test_a_chain_is_kept_and_other_functions_are_compiled_as_before(tmp_path, monkeypatch, chain):
    monkeypatch.setattr(compiling.CONFIG, "CACHE_DIR", str(tmp_path))
    assert compiling.kept(chain)(1) == 2
    assert str(tmp_path) == compiling.CONFIG.CACHE_DIR
    assert list(compiling.folder("dpmc.kernels").rglob("*.nbc"))


def test_without_a_folder_a_chain_is_compiled_all_the_same(tmp_path, monkeypatch, chain):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr(compiling.CONFIG, "CACHE_DIR", str(blocked))
    assert compiling.kept(chain)(1) == 2
