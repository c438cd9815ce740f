"""What the workflow needs before it can be read is told in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.conftest import TINY, Project, copy_tiny

# Snakemake as one of a later version, and in a Python that does not have this project.
LATER = "import snakemake\nsnakemake.__version__ = '10.1.0'"
ALONE = "import sys\nsys.path = [place for place in sys.path if not place.endswith('src')]"
RUN = "\nfrom snakemake.cli import main\nimport sys\nmain(sys.argv[1:])"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return copy_tiny(tmp_path_factory.mktemp("needs"))


def refused(told: str) -> str:
    """Return the line by which the workflow refuses, the only one of its kind."""
    (line,) = [line for line in told.splitlines() if line.startswith("dpmc: ")]
    assert "Traceback" not in told
    assert "Error" not in told
    return line


@pytest.mark.parametrize(
    ("before", "line"),
    [
        (LATER, "dpmc: Snakemake must be at least 9.19 and below 10, got 10.1.0"),
        (ALONE, "dpmc: dpmc: must be installed for the Python that runs Snakemake, {python}"),
    ],
)
def test_what_is_not_there_is_told(project: Project, before: str, line: str) -> None:
    options = ("-n", "--workflow-profile", "none", "--config", *TINY)
    done = subprocess.run(
        [sys.executable, "-c", before + RUN, *options],
        cwd=project.folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 1
    assert refused(done.stdout).startswith(line.format(python=sys.executable))


TWICE = "scale: tiny\npapers: [raisa2021dphmc]\nscale: smoke\n"
FAULTS = {
    TWICE: "line 3, key 'scale' is given twice",
    "scale: [tiny\n": "line 2, ",
    "- scale\n": "must be a mapping, got a list",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_of_the_configuration_of_the_checkout_is_told(project: Project, text: str) -> None:
    file = project.folder / "config" / "config.yaml"
    before = file.read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    try:
        done = project.snakemake("-n", config=TINY)
    finally:
        file.write_text(before, encoding="utf-8")
    assert done.returncode == 1
    assert refused(done.stdout).startswith(f"dpmc: {file}: {FAULTS[text]}")


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_of_the_configuration_of_the_folder_of_a_run_is_told(
    project: Project, text: str, tmp_path: Path
) -> None:
    """Snakemake alone takes the last of two keys without a word."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_text(text, encoding="utf-8")
    done = project.snakemake("-n", "-d", str(tmp_path), config=TINY)
    assert done.returncode == 1
    assert refused(done.stdout).startswith(f"dpmc: config/config.yaml: {FAULTS[text]}")
