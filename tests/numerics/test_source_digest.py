"""The digest of code: what counts as a change, and what imports reach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmc.numerics import source_digest

FILES = {
    "__init__.py": "from dpmc import everything\n",
    "everything.py": "import dpmc.a\n",
    "a.py": '"""A."""\nfrom dpmc import b\nfrom dpmc.sub.c import thing\n',
    "b.py": "import os\nX = 1\n",
    "sub/__init__.py": "Y = 1\n",
    "sub/c.py": "from . import d\nfrom ..b import X\nthing = X\n",
    "sub/d.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from dpmc.typed import T\n"
    ),
    "typed.py": "T = int\n",
    "bare/e.py": "Z = 1\n",
    "alone.py": "import importlib\nimportlib.import_module('dpmc.b')\n",
    "top.py": "from dpmc import name_of_the_package\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "dpmc"
    folder.mkdir()
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(source_digest, "ROOT", tmp_path)
    forget()
    yield folder
    forget()


def forget() -> None:
    for value in vars(source_digest).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()


def changed(path: Path, text: str, name: str = "dpmc.a") -> bool:
    before = source_digest.code_digest(name)
    path.write_text(text, encoding="utf-8")
    forget()
    return source_digest.code_digest(name) != before


@pytest.mark.usefixtures("package")
def test_closure_follows_imports_of_modules_and_names() -> None:
    reached = ("dpmc.a", "dpmc.b", "dpmc.sub", "dpmc.sub.c", "dpmc.sub.d")
    assert source_digest.closure("dpmc.a") == reached


@pytest.mark.usefixtures("package")
def test_closure_leaves_out_what_is_found_while_running_or_for_type_checkers() -> None:
    assert source_digest.closure("dpmc.alone") == ("dpmc.alone",)
    assert "dpmc.typed" not in source_digest.closure("dpmc.a")


@pytest.mark.parametrize(
    "text",
    [
        '"""Other words."""\nfrom dpmc import b  # why\n\n\nfrom dpmc.sub.c import thing\n',
        "from dpmc import b\nfrom dpmc.sub.c import (\n    thing,\n)\n",
    ],
)
def test_words_and_layout_do_not_count(package: Path, text: str) -> None:
    assert not changed(package / "a.py", text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "from dpmc import b\nfrom dpmc.sub.c import thing\nNEW = None\n"),
        ("b.py", "import os\nX = 2\n"),
        ("b.py", "import os\nX = 1.5\n"),
        ("sub/__init__.py", "Y = 2\n"),
        ("sub/d.py", "D = 1\n"),
    ],
)
def test_code_counts_however_far_away(package: Path, name: str, text: str) -> None:
    assert changed(package / name, text)


@pytest.mark.parametrize("name", ["everything.py", "typed.py", "alone.py", "bare/e.py"])
def test_other_code_does_not_count(package: Path, name: str) -> None:
    assert not changed(package / name, "Q = 1\n")


def test_docstrings_of_functions_and_classes_do_not_count(package: Path) -> None:
    body = 'def f(x):\n    "Say."\n    return x\n\n\nclass C:\n    """Hold."""\n\n    y = 1\n'
    (package / "b.py").write_text(body, encoding="utf-8")
    forget()
    other = body.replace("Say.", "Tell.").replace("Hold.", "Keep.")
    assert not changed(package / "b.py", other)
    assert changed(package / "b.py", other.replace("return x", "return -x"))


def test_canonical_text_knows_neither_order_nor_notation() -> None:
    assert source_digest.canonical({"b": 1, "a": [2, 0.5]}) == source_digest.canonical(
        {"a": (2.0, 0.5), "b": 1.0}
    )
    assert source_digest.canonical({"a": True}) != source_digest.canonical({"a": 1})
    assert source_digest.canonical({"a": "1"}) != source_digest.canonical({"a": 1})
    assert (
        source_digest.short_digest([1])
        == source_digest.short_digest([1.0])
        != source_digest.short_digest([2])
    )
    with pytest.raises(ValueError, match="not JSON compliant"):
        source_digest.canonical({"a": float("nan")})


def test_a_method_reaches_what_it_uses_and_no_other_method() -> None:
    reached = source_digest.closure("dpmc.mcmc.methods.rwmh")
    assert "dpmc.mcmc.moves" in reached
    assert "dpmc" not in reached
    assert not [
        name for name in reached if name.startswith(("dpmc.models.", "dpmc_papers.outputs"))
    ]
    assert "dpmc.mcmc.methods.dp_sgld" not in reached


def test_the_digest_of_a_script_counts_its_helpers_and_no_comment(tmp_path: Path) -> None:
    script, helper = tmp_path / "chain.py", tmp_path / "_context.py"
    script.write_text("import _context\n")
    helper.write_text("X = 1\n")
    before = source_digest.file_digest(script, helper)
    script.write_text('"""Words."""\n\nimport _context  # more words\n')
    source_digest.file_digest.cache_clear()
    assert source_digest.file_digest(script, helper) == before
    helper.write_text("X = 2\n")
    source_digest.file_digest.cache_clear()
    assert source_digest.file_digest(script, helper) != before
