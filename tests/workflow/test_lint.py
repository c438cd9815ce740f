"""The tools that read the code: each is run as a user would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
# Beside compiled code: what mypy has read counts by its text, for other copies of the project too.
READ = platformdirs.user_cache_path("dpmc") / "mypy"

TOOLS = {
    "ruff": [BIN / "ruff", "check", "--quiet", "."],
    "ruff format": [BIN / "ruff", "format", "--check", "--quiet", "."],
    "mypy": [BIN / "mypy", "--cache-dir", READ],
    "import-linter": [BIN / "lint-imports"],
    "snakefmt": [BIN / "snakefmt", "--check", "--compact-diff", "Snakefile", "workflow"],
    "snakemake --lint": [BIN / "snakemake", "--lint"],
}


@pytest.mark.parametrize("tool", TOOLS)
def test_tool_has_nothing_to_say(tool: str) -> None:
    done = subprocess.run(
        TOOLS[tool],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
