"""A process that has imported what others wrote, of which most runs of the tests are forks.

More than half of a dry run of a small configuration would be imports of other packages, and so
would most of a small job. Nothing of this one is imported before the fork: every run and every job
reads the sources of its own copy of the project.

A run that is a fork starts its jobs, the process that has imported what these need, and the runs of
Snakemake that it submits, by a small program in place of Python, which asks for another fork and
waits for its end. What else it is started for gets Python itself. Jobs that Python starts, as those
of users, are the ones of `Project.alone`.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

PRELOADED = (
    "PIL.PngImagePlugin",
    "dpath",
    "jinja2",
    "jsonschema",
    "markdown_it",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "matplotlib.pyplot",
    "msgspec.yaml",
    "nbformat",
    "numba",
    "pandas",
    "pooch",
    "pyarrow.pandas_compat",
    "pyarrow.parquet",
    "requests",
    "scipy.optimize",
    "scipy.spatial",
    "scipy.special",
    "scipy.stats",
    "smart_open",
    "snakemake.cli",
    "snakemake.iocontainers",
    "snakemake.persistence",
    "snakemake.script",
    "snakemake.utils",
    "tqdm.auto",
    "yte",
)
CREDENTIALS = struct.Struct("3i")
OURS = ("dpmc", "snakemake_logger_plugin_dpmc", "tests")
Work = Callable[[], Any]


def main() -> None:
    """Fork for every line of standard input, and write the return code of each fork."""
    for name in PRELOADED:
        importlib.import_module(name)
    # The first function that is compiled brings in the rest of what compiles.
    sys.modules["numba"].njit("float64(float64)")(lambda x: x)
    parse_sources()
    early = [name for name in sys.modules if name.partition(".")[0] in OURS]
    assert early == [], early
    gc.freeze()
    folder = Path(tempfile.mkdtemp(prefix="jobs-"))  # short: it holds a socket
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(folder / "bytecode")
    try:
        work = serve(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if work is not None:
        return work()
    return shutil.rmtree(folder, ignore_errors=True)


def parse_sources() -> None:
    """Parse the sources of the project, and have each fork take what it would parse again.

    Most of a plan is the digests of code. A text that was edited is another one, and what a fork
    has taken it may change.
    """
    parse = ast.parse
    sources = (Path(__file__).parents[2] / "src").rglob("*.py")
    trees = {text: parse(text) for text in (path.read_text("utf-8") for path in sources)}

    def taken(source: Any, *options: Any, **named: Any) -> Any:
        known = None
        if isinstance(source, str) and not options and not named:
            known = trees.pop(source, None)
        return known or parse(source, *options, **named)

    ast.parse = taken


def serve(folder: Path) -> Work | None:
    """Fork for all that is asked for; return what a fork has to do, None to the first process."""
    program = write_program(folder)
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    run, jobs = 0, dict[int, socket.socket]()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(folder / "door"))
        door.listen(64)
        while True:
            ready, _, _ = select.select([sys.stdin, door, woken], [], [])
            if woken in ready:
                os.read(woken, 4096)
                for child, code in reaped().items():
                    if child == run:
                        print(code, flush=True)
                    else:
                        tell(jobs.pop(child), code)
            if door in ready:
                line, _ = door.accept()
                child = forked()
                if child == 0:
                    return lambda: answer(line, program)
                jobs[child] = line
            if sys.stdin in ready:
                asked = sys.stdin.readline()
                if not asked:
                    return None
                run = forked()
                if run == 0:
                    return lambda: snakemake(program, *json.loads(asked))


def write_program(folder: Path) -> Path:
    """Write the program that stands for Python in the runs, and return its path."""
    program, asks = folder / "python", shlex.quote(str(Path(__file__).with_name("asks.py")))
    python = shlex.quote(sys.executable)
    words = f"{python} -S -E -P {asks} {python} {folder / 'door'}"
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    return program


def forked() -> int:
    """Fork; the new process takes signals as any does."""
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return child


def reaped() -> dict[int, int]:
    """Return the return codes of the forks that have ended."""
    found: dict[int, int] = {}
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if child == 0:
            return found
        found[child] = os.waitstatus_to_exitcode(status)


def tell(line: socket.socket, code: int) -> None:
    """Tell the program how its job has ended, as shells do."""
    with line, contextlib.suppress(OSError):
        line.send(bytes([code if code >= 0 else 128 - code]))


def become(first: str, folder: str, environment: dict[str, str]) -> None:
    """Have the working directory, the variables and the paths of modules of another process.

    What it imports is kept as bytecode for the next, but not beside the sources.
    """
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    places = [first, *environment.get("PYTHONPATH", "").split(os.pathsep)]
    sys.path[:1] = filter(None, places)
    importlib.invalidate_caches()


def snakemake(
    program: Path, arguments: list[str], folder: str, environment: dict[str, str], told: str
) -> Any:
    """Become a run of Snakemake."""
    output = os.open(told, os.O_WRONLY | os.O_NOCTTY)
    for number in (1, 2):
        os.dup2(output, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    become(folder, folder, environment)
    run(program, arguments)


def run(program: Path, arguments: list[str]) -> None:
    """Run Snakemake, which starts its jobs by the program."""
    sys.argv = ["snakemake", *arguments]
    sys.executable = str(program)
    sys.modules["snakemake.cli"].main(arguments)


def answer(line: socket.socket, program: Path) -> None:
    """Become what the program was started for."""
    asked, files, _, _ = socket.recv_fds(line, 1 << 16, 3)
    while not asked.endswith(b"\n"):
        asked += line.recv(1 << 16)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    arguments, folder, environment = json.loads(asked)
    threading.Thread(target=end_with, args=(line,), daemon=True).start()
    descend(line, program)
    if arguments[0] == "-P":
        become("", folder, environment)
        sys.argv = arguments[2:]
        code = outcome(lambda: runpy.run_module(sys.argv[0], run_name="__main__"))
    elif arguments[0] == "-m":
        become(folder, folder, environment)
        code = outcome(lambda: run(program, arguments[2:]))
    else:
        become(str(Path(arguments[0]).parent), folder, environment)
        sys.argv = arguments
        code = outcome(lambda: runpy.run_path(arguments[0], run_name="__main__"))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def descend(line: socket.socket, program: Path) -> None:
    """Pass for a child of the program that asked, and for Python by that name."""
    sys.executable = str(program)
    if not hasattr(socket, "SO_PEERCRED"):  # jobs import for themselves
        return
    told = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    asking, own, parent = CREDENTIALS.unpack(told)[0], os.getpid(), os.getppid
    os.getppid = lambda: asking if os.getpid() == own else parent()


def end_with(line: socket.socket) -> None:
    """End this process when the program that asked for it does."""
    if not line.recv(1):
        os.kill(os.getpid(), signal.SIGTERM)


def outcome(work: Work) -> int:
    """Do some work and return the code that Python would return."""
    try:
        work()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code & 0xFF if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main()
