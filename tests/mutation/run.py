"""Plant bugs in a copy of the source, one at a time, and say which survive their nearest tests.

    uv run python tests/mutation/run.py [id ...] [--area NAME] [--sample N] [--commit HEAD]

A bug is killed if a test fails, and survives if all pass. Anything else (tests that cannot be
collected, no tests, no end) is an error and counts as neither. The exit status is 0 if all were
killed.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from dpmc.numerics import compiled as cache
from tests.mutation.catalogue import ROOT, SOURCES, Bug, problems, read, sample

# What tests read besides the package: no results, no caches.
COPIED = ("src", "tests", "config", "workflow", "docs", "profiles", "benchmarks", "envs", ".ci")
FILES = ("pyproject.toml", "README.md", "Snakefile", "LICENSE", "CITATION.cff", "references.bib")
KILLED, SURVIVED, ERROR = "killed", "survived", "error"
PYTEST = ("-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider")
TESTS_FAILED = 1
LAST_LINES = 15
AN_HOUR = 3600 * 10**9  # in nanoseconds


@dataclass(frozen=True)
class Outcome:
    """What became of one bug: its verdict, the seconds it took, and the end of the output."""

    bug: Bug
    verdict: str
    seconds: float
    detail: str = ""


@dataclass
class Tree:
    """A copy of the project, in which one bug at a time is planted."""

    folder: Path

    @classmethod
    def copy(cls, folder: Path) -> Tree:
        """Copy what the tests need to `folder`."""
        ignored = shutil.ignore_patterns("results", ".*_cache", ".hypothesis", "*-pytest-*")
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        for name in FILES:
            if (ROOT / name).is_file():
                shutil.copy(ROOT / name, folder / name)
        return cls(folder)

    def run(self, tests: Sequence[str], compiled: Path, limit: float) -> tuple[int, str]:
        """Run tests; return the exit status of pytest, or -1 past `limit` seconds, and its output.

        Parameters
        ----------
        tests : sequence of str
            Test ids.
        compiled : Path
            Folder of compiled code.
        limit : float
            In seconds.
        """
        # Nothing is added to Python's own caches, which go by the time and size of a file.
        environment = os.environ | {
            "PYTHONPATH": str(self.folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": str(compiled),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        for name in [n for n in environment if n.startswith(("PYTEST_", "COV_"))]:
            del environment[name]
        # The copy must be what is imported, whatever is installed.
        check = (
            "import dpmc, pathlib, sys; "
            f"sys.exit(0 if pathlib.Path(dpmc.__file__).is_relative_to({str(self.folder)!r}) "
            "else 'another copy of dpmc is imported')"
        )
        for arguments in (("-c", check), (*PYTEST, *tests)):
            try:
                done = subprocess.run(
                    [sys.executable, *arguments],
                    cwd=self.folder,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=limit,
                )
            except subprocess.TimeoutExpired:
                return -1, f"no end within {limit:g} s"
            if arguments[0] == "-c" and done.returncode:
                # A bug that keeps the package from being imported shows nothing of the tests.
                return -1, done.stderr
        return done.returncode, done.stdout + done.stderr

    @contextmanager
    def planted(self, bug: Bug) -> Iterator[None]:
        """Plant `bug` for as long as the context lasts."""
        path = self.folder / SOURCES / bug.file
        source, written = path.read_text(encoding="utf-8"), path.stat().st_mtime_ns
        try:
            path.write_text(bug.planted(source), encoding="utf-8")
            # What is cached for a file of the same size must not be taken for the bug's.
            os.utime(path, ns=(written, written + AN_HOUR))
            yield
        finally:
            path.write_text(source, encoding="utf-8")
            os.utime(path, ns=(written, written))


@dataclass
class Runner:
    """Runs bugs in copies of the project below `folder`."""

    folder: Path
    jobs: int = 1
    limit: float = 1800.0
    _trees: queue.Queue[Tree] = field(default_factory=queue.Queue)
    _sound: dict[tuple[str, ...], tuple[int, str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        for index in range(self.jobs):
            self._trees.put(Tree.copy(self.folder / f"tree{index}"))
        # What this user has compiled need not be compiled again where there is no bug.
        if cache.root().is_dir():
            hidden = shutil.ignore_patterns(".*")
            shutil.copytree(cache.root(), self.folder / "compiled", ignore=hidden)

    def run(self, bugs: Sequence[Bug]) -> Iterator[Outcome]:
        """Yield what becomes of each bug, in order."""
        self._try_all_at_once(bugs)
        with ThreadPoolExecutor(self.jobs) as pool:
            yield from pool.map(self._one, bugs)

    def _one(self, bug: Bug) -> Outcome:
        started = time.monotonic()
        tree = self._trees.get()
        try:
            verdict, detail = self._verdict(bug, tree)
        finally:
            self._trees.put(tree)
        return Outcome(bug, verdict, time.monotonic() - started, detail)

    def _verdict(self, bug: Bug, tree: Tree) -> tuple[str, str]:
        status, output = self._without_bugs(bug.tests, tree)
        if status:
            return ERROR, f"fails without the bug too (status {status})\n{_end(output)}"
        with tempfile.TemporaryDirectory(dir=self.folder) as compiled:
            # What is compiled is found by a digest of its source: a bug in how that is
            # made must neither reach the code of others nor be hidden by it.
            shared = self.folder / "compiled"
            if shared.is_dir():
                # Files of compiled code are replaced, never written to: a link will do.
                shutil.copytree(shared, compiled, dirs_exist_ok=True, copy_function=os.link)
            with tree.planted(bug):
                status, output = tree.run(bug.tests, Path(compiled), self.limit)
        if status == TESTS_FAILED:
            return KILLED, ""
        if status == 0:
            return SURVIVED, ""
        return ERROR, f"pytest ended with status {status}\n{_end(output)}"

    def _try_all_at_once(self, bugs: Sequence[Bug]) -> None:
        """Run the tests of all bugs where there is none: if all pass, none is run by itself."""
        tree = self._trees.get()
        every = list(dict.fromkeys(test for bug in bugs for test in bug.tests))
        passed = tree.run(every, self.folder / "compiled", self.limit)
        self._trees.put(tree)
        if passed[0] == 0:
            self._sound = dict.fromkeys((bug.tests for bug in bugs), passed)

    def _without_bugs(self, tests: tuple[str, ...], tree: Tree) -> tuple[int, str]:
        """Run tests where there is no bug, once for each set of them."""
        with self._lock:
            if tests not in self._sound:
                self._sound[tests] = tree.run(tests, self.folder / "compiled", self.limit)
            return self._sound[tests]


def _end(output: str) -> str:
    return "\n".join(output.splitlines()[-LAST_LINES:])


def commit_hash(name: str) -> str:
    """Return the hash of a commit; empty where there is no git or no such commit."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    except OSError:
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""


def judge(bugs: Sequence[Bug], jobs: int = 1) -> list[Outcome]:
    """Run bugs in a temporary folder, print each as it ends, and return all outcomes."""
    with tempfile.TemporaryDirectory(prefix="dpmc-mutation-") as folder:
        outcomes = []
        for outcome in Runner(Path(folder), jobs).run(bugs):
            outcomes.append(outcome)
            print(f"{outcome.bug.id}: {outcome.verdict} ({outcome.seconds:.0f} s)", flush=True)
            if outcome.detail:
                print(outcome.detail, flush=True)
    return outcomes


def table(outcomes: Sequence[Outcome]) -> str:
    """Return one line per bug and a last one that counts them."""
    width = max(len(outcome.bug.id) for outcome in outcomes)
    lines = [f"{o.bug.id:<{width}}  {o.verdict:<8}  {o.seconds:6.1f} s" for o in outcomes]
    counts = {v: sum(o.verdict == v for o in outcomes) for v in (KILLED, SURVIVED, ERROR)}
    return "\n".join([*lines, ", ".join(f"{number} {name}" for name, number in counts.items())])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bugs that the command line names, all by default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ids", nargs="*", help="bugs; all by default")
    parser.add_argument("--area", help="only those of one file of bugs")
    parser.add_argument("--sample", type=int, help="so many, chosen by the commit")
    parser.add_argument("--commit", default="HEAD", help="what the sample depends on")
    parser.add_argument("--jobs", type=int, default=1, help="bugs at a time")
    parser.add_argument("--list", action="store_true", help="print the bugs and stop")
    options = parser.parse_args(arguments)
    bugs = read()
    unknown = sorted({*options.ids} - {bug.id for bug in bugs})
    if unknown:
        parser.error(f"no bug {unknown[0]!r}, see --list")
    if options.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {options.jobs}")
    chosen = tuple(
        bug
        for bug in bugs
        if (not options.ids or bug.id in options.ids) and options.area in (None, bug.area)
    )
    if options.sample is not None:
        chosen = sample(chosen, options.sample, commit_hash(options.commit))
    if not chosen:
        parser.error("no bugs chosen")
    if options.list:
        print("\n".join(f"{bug.id}: {bug.why}" for bug in chosen))
        return 0
    wrong = list(problems(chosen))
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 2
    outcomes = judge(chosen, options.jobs)
    print(table(outcomes))
    return 0 if all(outcome.verdict == KILLED for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
