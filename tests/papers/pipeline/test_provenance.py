"""What a record tells of the machine, on which last digits depend, and of the commit."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from dpmc_papers.pipeline import provenance

TOLD = """
import json
from dpmc_papers.pipeline import provenance
print(json.dumps(provenance.machine()["linear_algebra"]))
"""


def libraries(**environment: str) -> list[str]:
    """Return what a process with such an environment tells of linear algebra."""
    done = subprocess.run(
        [sys.executable, "-c", TOLD],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    told: list[str] = json.loads(done.stdout)
    return told


def test_the_kernels_of_linear_algebra_are_those_in_use() -> None:
    chosen = libraries(OPENBLAS_CORETYPE="Nehalem")
    if platform.machine() != "x86_64" or not all("openblas" in name for name in chosen):
        pytest.skip(f"kernels of OpenBLAS on x86_64 can be chosen, not those of {chosen}")
    assert chosen
    assert all(name.endswith(" Nehalem") for name in chosen)
    assert set(libraries(OPENBLAS_CORETYPE="Prescott")).isdisjoint(chosen)


def test_published_results_are_no_change_of_a_commit(tmp_path: Path) -> None:
    published, source = tmp_path / "results" / "published" / "table.csv", tmp_path / "code.py"
    published.parent.mkdir(parents=True)
    for file in (published, source):
        file.write_text("1", encoding="utf-8")
    own = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "a"]):
        subprocess.run([*own, *words], check=True)
    clean = provenance.commit(tmp_path)
    assert clean is not None
    assert len(clean) == 40
    published.write_text("2", encoding="utf-8")
    assert provenance.commit(tmp_path) == clean
    source.write_text("2", encoding="utf-8")
    assert provenance.commit(tmp_path) == f"{clean} with changes"
