"""The workflow from another folder, from another's checkout, and as a module.

Nobody may write to the checkout, and what its owner ran there cannot be read. Where tests run as
root, commands lose what lets root pass over permissions.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.workflow.conftest import Project, copy_tiny

pytestmark = pytest.mark.slow

FIGURE = "raisa2021dphmc/figure1.png"
IMPORTER = """
module dpmc:
    snakefile: "{snakefile}"
    config: {{"scale": "tiny", "results_dir": "of_dpmc"}}

use rule * from dpmc as dpmc_*

rule copied:
    default_target: True
    input: "of_dpmc/tiny/{figure}", "of_dpmc/tiny/raisa2021dphmc/provenance.json"
    output: "copy.png"
    shell: "cp {{input[0]}} {{output}}"
"""


# Of root alone; others have no such capabilities.
WITHOUT_PRIVILEGE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner")


AS_ANOTHER = WITHOUT_PRIVILEGE if os.geteuid() == 0 else ()


def snakemake(project: Project, folder: Path, *arguments: str) -> str:
    """Run Snakemake in a folder, and return what it said."""
    done = subprocess.run(
        [*AS_ANOTHER, *project.command(*arguments)],
        cwd=folder,
        env=project.environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def checkout(tmp_path: Path) -> Project:
    """Return a copy of the repository that others own, in which they ran something."""
    project = copy_tiny(tmp_path / "checkout")
    kept = [project.folder / ".snakemake" / "metadata" / "a", project.folder / "results" / "a"]
    for path in kept:
        path.parent.mkdir(parents=True)
        path.write_text("theirs")
    for path in [*project.folder.rglob("*"), project.folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    for path in kept:
        path.chmod(0)
    return project


def test_the_checkout_cannot_be_written_to(checkout: Project) -> None:
    """The next tests would pass without an effect otherwise."""
    for command in (["touch", "here"], ["cat", "results/a"]):
        done = subprocess.run([*AS_ANOTHER, *command], cwd=checkout.folder, capture_output=True)
        assert b"Permission denied" in done.stderr


def test_a_run_in_another_folder_writes_nothing_to_the_checkout_but_what_it_publishes(
    checkout: Project, tmp_path: Path
) -> None:
    """What is published is read by the site of the checkout, wherever the run works."""
    before = files(checkout.folder)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    where = ("-s", str(checkout.folder / "Snakefile"), "-d", str(folder))
    config = ("--config", "scale=paper")
    told = snakemake(checkout, tmp_path, *where, *config)
    assert "(100%) done" in told
    figure = folder / "results" / "paper" / FIGURE
    assert figure.stat().st_size > 1000
    assert (folder / "results" / "paper" / "site" / "errata.html").is_file()
    kinds = ("__pycache__", ".pyc")
    new = {name for name in files(checkout.folder) - before if not name.endswith(kinds)}
    assert new == set()
    (checkout.folder / "results").chmod(0o755)
    snakemake(checkout, tmp_path, *where, "publish", *config)
    published = Path("results", "published")
    assert (checkout.folder / published / FIGURE).read_bytes() == figure.read_bytes()
    assert not (folder / published / "raisa2021dphmc").exists()


def importer(checkout: Project, folder: Path) -> Path:
    """Return a folder with a workflow that takes the rules of a checkout."""
    folder.mkdir()
    text = IMPORTER.format(snakefile=checkout.folder / "workflow" / "Snakefile", figure=FIGURE)
    (folder / "Snakefile").write_text(text, encoding="utf-8")
    return folder


def test_another_workflow_takes_its_rules(checkout: Project, tmp_path: Path) -> None:
    folder = importer(checkout, tmp_path / "importer")
    profile = checkout.folder / "profiles" / "default"
    told = snakemake(checkout, folder, "--workflow-profile", str(profile))
    copied = (folder / "copy.png").read_bytes()
    assert copied == (folder / "of_dpmc" / "tiny" / FIGURE).read_bytes()
    assert "localrules directive specifies" not in told


@pytest.fixture(autouse=True)
def writable_again(tmp_path: Path):
    """Let pytest remove the folders of this test afterwards."""
    yield
    for folder, _, _ in os.walk(tmp_path):
        Path(folder).chmod(0o755)
