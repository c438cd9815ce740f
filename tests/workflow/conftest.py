"""The real workflow in a copy of the repository, run once at scale smoke."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pooch
import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("Snakefile", "config", "docs", "envs", "profiles", "src", "workflow")
PAPERS = ("raisa2021dphmc", "raisa2021thesis", "alparslan2023thesis", "vinaroz2022dpsep")
NOWHERE = "http://127.0.0.1:9"
SMOKE = ("scale=smoke",)
# Planning one paper takes half the time.
ALONE = (*SMOKE, "papers=raisa2021dphmc")
THESIS_ALONE = (*SMOKE, "papers=raisa2021thesis")
# A configuration of a few jobs of about a second.
TINY = ("scale=tiny",)
# The job that looks at all results, in every run.
LAST = "all results are there"
JOB = re.compile(r"^ *Job \d+: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Project:
    """A copy of the repository.

    Parameters
    ----------
    folder : Path
        Its root.
    """

    folder: Path

    def of_paper(self, paper: str) -> Path:
        """Return the folder of a paper's results at scale smoke."""
        return self.folder / "results" / "smoke" / paper

    @property
    def results(self) -> Path:
        """Return that of the first paper."""
        return self.of_paper(PAPERS[0])

    def command(self, *arguments: str) -> list[str]:
        at_once = ["--max-jobs-per-timespan", "100/1s"]  # a run of few jobs ends sooner so
        return [sys.executable, "-m", "snakemake", "--cores", "all", *at_once, *arguments]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.folder / "src")}

    def snakemake(
        self, *arguments: str, config: tuple[str, ...] = SMOKE, before: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run Snakemake, behind a command if given, and return what it said, errors included."""
        return subprocess.run(
            [*before, *self.command(*arguments, "--config", *config)],
            cwd=self.folder,
            env=self.environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=1800,
        )

    def made(self, *arguments: str, config: tuple[str, ...] = SMOKE) -> str:
        """Run Snakemake, and return what it said of a run that succeeded."""
        done = self.snakemake(*arguments, config=config)
        assert done.returncode == 0, done.stdout[-5000:]
        return done.stdout

    def refused(self, *arguments: str, config: tuple[str, ...] = SMOKE) -> str:
        """Run Snakemake, and return the one line with which it stops."""
        done = self.snakemake(*arguments, config=config)
        lines = [line for line in done.stdout.splitlines() if line.startswith("dpmc: ")]
        assert done.returncode != 0
        assert len(set(lines)) == 1, done.stdout[-5000:]
        assert "Traceback" not in done.stdout
        return lines[0]

    def planned(self, *arguments: str, config: tuple[str, ...] = ALONE) -> list[str]:
        """Return the messages of the jobs that a run would do, but the last of all, sorted."""
        jobs = JOB.findall(self.made("-n", *arguments, config=config))
        return sorted(job for job in jobs if job != LAST)

    @contextmanager
    def edited(self, path: str, old: str, new: str) -> Iterator[None]:
        """Replace a text that occurs once in a file, for a while."""
        file = self.folder / path
        before, stat = file.read_text(encoding="utf-8"), file.stat()
        assert before.count(old) == 1, f"{path}: {old!r} occurs {before.count(old)} times"
        file.write_text(before.replace(old, new), encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(before, encoding="utf-8")
            os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def copy_project(folder: Path) -> Project:
    folder.mkdir(exist_ok=True)
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, folder / part, ignore=ignored)
        else:
            shutil.copy2(source, folder / part)
    return Project(folder)


def copy_tiny(folder: Path) -> Project:
    """Return a copy of the repository with the configuration of tests/workflow/tiny."""
    project = copy_project(folder)
    for part in ("papers", "published", "scales"):
        shutil.rmtree(folder / "config" / part)
    shutil.copytree(Path(__file__).parent / "tiny", folder / "config", dirs_exist_ok=True)
    return project


@pytest.fixture(scope="package", autouse=True)
def no_raw_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Hide raw files and the network, and keep compiled chains where they are."""
    folder = tmp_path_factory.mktemp("raw")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            patch.setenv(name, NOWHERE)
        cache = Path(pooch.os_cache("dpmc"))
        patch.setenv("NUMBA_CACHE_DIR", os.environ.get("NUMBA_CACHE_DIR", str(cache / "compiled")))
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setenv("DPMC_UCI_DIR", str(folder))
        yield folder


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Return a folder of all processes that run tests of this session."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def copy_finished(project: Project, factory: pytest.TempPathFactory) -> Project:
    """Return a copy of a project with its results, as old as they are."""
    folder = factory.mktemp("copy") / "project"
    shutil.copytree(project.folder, folder, symlinks=True)
    return Project(folder)


def run_once(
    name: str,
    make: Callable[[Path], Project],
    config: tuple[str, ...],
    factory: pytest.TempPathFactory,
) -> Project:
    """Return a copy of a project in which a run has ended.

    It runs once for all processes. Each has a copy, in which nothing is to be done.
    """

    def run(folder: Path) -> None:
        make(folder).made(config=config)

    return copy_finished(Project(made_once(name, run, factory)), factory)


def made_once(name: str, make: Callable[[Path], None], factory: pytest.TempPathFactory) -> Path:
    """Return a folder that one process of this session makes while the others wait."""
    shared = shared_folder(factory)
    kept, partial = shared / name, shared / f"{name}.partial"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            shutil.rmtree(partial, ignore_errors=True)
            make(partial)
            partial.rename(kept)
    return kept


@pytest.fixture(scope="package")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy in which scale smoke has run from end to end."""
    return run_once("finished", copy_project, SMOKE, tmp_path_factory)


@pytest.fixture(scope="package")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy in which the tiny configuration has run from end to end."""
    return run_once("tiny", copy_tiny, TINY, tmp_path_factory)


@pytest.fixture
def fresh(tmp_path: Path) -> Project:
    """Return a copy in which nothing has run."""
    return copy_project(tmp_path)
