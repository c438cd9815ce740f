"""``--sdm conda`` with a stand-in: what the workflow asks of conda, and whether the list is whole.

What conda itself would choose and install is not tested: that takes its channels.
"""

from __future__ import annotations

import os
import pkgutil
import subprocess
from pathlib import Path

import pytest

import dpmc
import dpmc_league
import dpmc_papers
from tests.workflow import conda
from tests.workflow.conftest import ROOT, TINY, Project, copy_finished

pytestmark = pytest.mark.slow

PACKAGES = (dpmc, dpmc_league, dpmc_papers)
FIGURE = "results/tiny/raisa2021dphmc/figure1.svg"
IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    print(sys.modules["numpy"].__file__ if "numpy" in sys.modules else "")
"""


def modules() -> list[str]:
    """Return all modules of the library, of the reproduction and of the league."""
    packages = [(package.__path__, f"{package.__name__}.") for package in PACKAGES]
    found = [module.name for each in packages for module in pkgutil.walk_packages(*each)]
    # The reproduction has no estimators of scikit-learn.
    return [name for name in found if not name.endswith(("__main__", "dpmc.sklearn"))]


def imported(environment: Path) -> subprocess.CompletedProcess[str]:
    """Import all modules of the project in an environment that has nothing else."""
    return subprocess.run(
        [environment / "bin" / "python", "-c", IMPORT_ALL, *modules()],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": os.environ["PATH"], "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
    )


def test_a_job_in_an_environment_of_its_own_gives_the_same_bytes(
    tiny: Project, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = copy_finished(tiny, tmp_path_factory)
    programs = conda.install(tmp_path_factory.mktemp("conda") / "home")
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    before = (project.folder / FIGURE).read_bytes()
    done = project.snakemake(FIGURE, "--sdm", "conda", "--forcerun", "figure", config=TINY)
    assert done.returncode == 0, done.stdout[-5000:]
    assert "(Rule: figure)" in done.stdout
    assert (project.folder / FIGURE).read_bytes() == before
    (environment,) = (p for p in (project.folder / ".snakemake/conda").iterdir() if p.is_dir())
    done = imported(environment)
    assert done.returncode == 0, done.stderr
    assert f"{environment}/lib" in done.stdout


def test_a_package_that_is_not_in_the_list_is_noticed(tmp_path: Path) -> None:
    listed = (ROOT / "envs" / "dpmc.yaml").read_text(encoding="utf-8")
    file = tmp_path / "short.yaml"
    file.write_text(listed.replace("  - msgspec =0.22\n", ""), encoding="utf-8")
    conda.create(file, tmp_path / "environment")
    done = imported(tmp_path / "environment")
    assert "No module named 'msgspec'" in done.stderr
