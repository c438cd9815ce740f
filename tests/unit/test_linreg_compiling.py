"""Chains kept on disk: never those of other sources."""

from __future__ import annotations

from dpmc.linreg import compiling


def test_a_changed_source_has_another_folder(tmp_path, monkeypatch):
    source = tmp_path / "chain.py"
    source.write_text("a = 1\n")
    monkeypatch.setattr(compiling, "SOURCES", (tmp_path,))
    found = []
    for text in ("a = 1\n", "a = 2\n", "a = 1\n"):
        source.write_text(text)
        compiling.digest.cache_clear()
        found.append(compiling.digest())
    compiling.digest.cache_clear()
    assert found[0] == found[2] != found[1]


def test_the_folder_lies_where_numba_is_told_to_keep_things(tmp_path, monkeypatch):
    monkeypatch.setattr(compiling.CONFIG, "CACHE_DIR", str(tmp_path))
    assert compiling.folder() == tmp_path / compiling.digest()
    monkeypatch.setattr(compiling.CONFIG, "CACHE_DIR", "")
    assert compiling.folder().name == compiling.digest()


def one(x):
    return x + 1


def test_a_chain_is_kept_and_other_functions_are_compiled_as_before(tmp_path, monkeypatch):
    monkeypatch.setattr(compiling.CONFIG, "CACHE_DIR", str(tmp_path))
    assert compiling.kept(one)(1) == 2
    restored = compiling.CONFIG.CACHE_DIR
    assert restored == str(tmp_path)
    assert list((tmp_path / compiling.digest()).rglob("*.nbc"))


def test_without_a_folder_a_chain_is_compiled_all_the_same(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr(compiling.CONFIG, "CACHE_DIR", str(blocked))
    assert compiling.kept(one)(1) == 2
