"""What a record tells of the machine: what the last digits of results depend on."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import llvmlite.binding
import pytest

from dpmc.experiments.pipeline import provenance

TOLD = """
import json
from dpmc.experiments.pipeline import provenance
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


def test_the_target_of_compiled_code_is_told() -> None:
    assert provenance.machine()["target"] == llvmlite.binding.get_host_cpu_name()


def test_the_kernels_of_linear_algebra_are_those_in_use() -> None:
    chosen = libraries(OPENBLAS_CORETYPE="Nehalem")
    if platform.machine() != "x86_64" or not all("openblas" in name for name in chosen):
        pytest.skip(f"kernels of OpenBLAS on x86_64 can be chosen, not those of {chosen}")
    assert chosen
    assert all(name.endswith(" Nehalem") for name in chosen)
    assert set(libraries(OPENBLAS_CORETYPE="Prescott")).isdisjoint(chosen)
