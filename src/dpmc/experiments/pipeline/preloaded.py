"""A process that has imported what jobs need, of which the short jobs of a run are forks.

Imports are half of the processor time of a short job. The process that runs the workflow starts
this one, with ``python -m``, and tells its jobs of it in the environment. The script of a job hands
itself over (``workflow/scripts/_handover.py``) and waits; where it cannot, it imports for itself,
and the result is the same. A fork is given the directory, the environment and the standard streams
of the script, and nothing is left of it for the next.

No result depends on this module.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, NoReturn

# Python, and the socket where scripts hand themselves over, for the jobs of a run.
PLACE = "DPMC_PRELOADED"
# With fewer files to make, each job imports for itself.
LEAST_FILES = 12
# What most jobs import, besides what these import themselves.
MODULES = (
    "PIL.PngImagePlugin",
    "jinja2",
    "markdown_it",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "matplotlib.pyplot",
    "pyarrow.pandas_compat",
    "pyarrow.parquet",
    "scipy.special",
    "scipy.stats",
    "seaborn",
    "dpmc.diagnostics.mmd",
    "dpmc.experiments.config.problems",
    "dpmc.experiments.pipeline.accounting_curves",
    "dpmc.experiments.pipeline.chain_metrics",
    "dpmc.experiments.pipeline.folders",
    "dpmc.experiments.pipeline.provenance",
    "dpmc.experiments.pipeline.raw_files",
    "dpmc.experiments.pipeline.run_chains",
    "dpmc.experiments.pipeline.run_parts",
    "dpmc.experiments.pipeline.runs_file",
    "dpmc.experiments.pipeline.store",
    "dpmc.experiments.plots.drawn",
    "dpmc.experiments.site.build",
    "dpmc.experiments.verdicts.judge",
    "dpmc.experiments.verdicts.power",
)
# And all modules of these: the methods that settings may name.
PACKAGES = (
    "dpmc.mcmc.methods",
    "dpmc.models",
    "dpmc.privacy.accountants",
    "dpmc.experiments.outputs",
    "dpmc.linreg.methods",
    "dpmc.experiments.studies",
)
STATUS = struct.Struct("!i")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
MOST_WAITING = 64
# Thresholds of the collector of garbage: a tenth of the time of compiling is its own otherwise.
GARBAGE = (200_000, 20, 50)
# A script sends at once what it hands over.
SECONDS_TO_SEND = 5.0

_started: list[tuple[subprocess.Popen[bytes], Path]] = []


def start_for(files: Iterable[str], imported: Iterable[str] = ()) -> None:
    """Start the process for the jobs of this run, if enough of their files are not there yet.

    Where that is not possible, nothing happens: jobs import for themselves.

    Parameters
    ----------
    files : iterable of str
        What the jobs of this run may make.
    imported : iterable of str
        Modules that all scripts import, of whoever runs them.
    """
    os.environ.pop(PLACE, None)
    missing = (file for file in files if not Path(file).exists())
    if len([*zip(range(LEAST_FILES), missing, strict=False)]) == LEAST_FILES:
        with contextlib.suppress(OSError):
            start(imported)


def start(imported: Iterable[str] = ()) -> None:
    """Start the process for the jobs of this run; see `start_for`.

    It ends with this process, however that ends.

    Raises
    ------
    OSError
        Where that is not possible.
    """
    if not hasattr(os, "pidfd_open"):
        return
    folder = Path(tempfile.mkdtemp(prefix="dpmc-"))
    place = folder / "jobs"
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(place), *imported],
            env={**os.environ, **dict.fromkeys(THREADS, "1")},
            stdin=subprocess.PIPE,
        )
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    _started.append((process, folder))
    os.environ[PLACE] = f"{sys.executable}{os.pathsep}{place}"


def end() -> None:
    """End the process that this one has started, if any."""
    os.environ.pop(PLACE, None)
    while _started:
        process, folder = _started.pop()
        stream: IO[bytes] | None = process.stdin
        if stream is not None:
            stream.close()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


class Forks:
    """Jobs that were handed over, and those who wait for them.

    Parameters
    ----------
    place : Path
        The socket; it is there once everything is imported.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.events = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX)
        self.waiting: dict[int, tuple[int, socket.socket]] = {}  # by process: its end, its script

    def serve(self) -> tuple[dict[str, Any], list[int]] | None:
        """Serve until standard input ends; in a fork, return what it is to do and its streams."""
        partial = self.place.with_suffix(".partial")
        try:
            self.listener.bind(str(partial))
            self.listener.listen(MOST_WAITING)
            partial.rename(self.place)
        except OSError:  # no such sockets, or the folder of temporary files has a long name
            return None
        self.events.register(self.listener, selectors.EVENT_READ, self._accept)
        self.events.register(0, selectors.EVENT_READ, None)
        while True:
            for key, _ in self.events.select():
                if key.data is None:  # the one who started this process has ended
                    self._stop()
                    return None
                task = key.data()
                if task is not None:
                    return task  # type: ignore[no-any-return]

    def _accept(self) -> tuple[dict[str, Any], list[int]] | None:
        connection, _ = self.listener.accept()
        streams: list[int] = []
        own = os.getpid()
        try:
            task = _received(connection, streams)
            pid = os.fork()
        except (OSError, ValueError, struct.error):
            pid = -1
        if pid == 0:
            self._forget(connection)
            _end_with(own)
            return task, streams
        for stream in streams:
            os.close(stream)
        if pid < 0:
            connection.close()
            return None
        ended = os.pidfd_open(pid)
        self.waiting[pid] = (ended, connection)
        self.events.register(ended, selectors.EVENT_READ, lambda: self._ended(pid))
        self.events.register(connection, selectors.EVENT_READ, lambda: self._left(pid))
        with contextlib.suppress(OSError):
            connection.send(STATUS.pack(pid))
        return None

    def _ended(self, pid: int) -> None:
        """Tell the script how its job has ended."""
        _, status = os.waitpid(pid, 0)
        ended, connection = self.waiting.pop(pid)
        with contextlib.suppress(KeyError):
            self.events.unregister(connection)
        self.events.unregister(ended)
        os.close(ended)
        with contextlib.suppress(OSError):
            connection.send(STATUS.pack(os.waitstatus_to_exitcode(status)))
        connection.close()

    def _left(self, pid: int) -> None:
        """End a job whose script was killed."""
        if pid in self.waiting:
            self.events.unregister(self.waiting[pid][1])
            os.kill(pid, signal.SIGTERM)

    def _stop(self) -> None:
        for pid in self.waiting:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)
        self.place.unlink(missing_ok=True)
        shutil.rmtree(self.place.parent, ignore_errors=True)

    def _forget(self, connection: socket.socket) -> None:
        """Close in a fork what belongs to the others."""
        self.events.close()
        self.listener.close()
        connection.close()
        for ended, other in self.waiting.values():
            os.close(ended)
            other.close()


def _received(connection: socket.socket, streams: list[int]) -> dict[str, Any]:
    """Return what a script hands over, and append its streams."""
    connection.settimeout(SECONDS_TO_SEND)
    message, found, _, _ = socket.recv_fds(connection, STATUS.size, 3)
    streams += found
    (length,) = STATUS.unpack(message)
    text = bytearray()
    while len(text) < length:
        part = connection.recv(length - len(text))
        if not part:
            raise OSError("the script has ended")
        text += part
    connection.settimeout(None)
    task: dict[str, Any] = json.loads(text)
    return task


def become(task: dict[str, Any], streams: list[int]) -> NoReturn:
    """Run a script in this fork, as Python runs it, and end."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(task["directory"])
    os.environ.clear()
    os.environ.update(task["environment"])
    tempfile.tempdir = None
    sys.argv = task["arguments"]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    code = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    for written in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            written.flush()
    os._exit(code)  # what is to be done at the end of a process, that one does which is left


def _end_with(pid: int) -> None:
    """End this fork when the process that it is one of is killed: nobody would wait for it."""
    parent = os.pidfd_open(pid)

    def watch() -> None:
        with selectors.DefaultSelector() as events:
            events.register(parent, selectors.EVENT_READ)
            events.select()
        time.sleep(0.1)  # after a stop in order there is a signal already
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def load(others: Iterable[str] = ()) -> None:
    """Import others and what jobs need, and digest the sources that compiled code is found by."""
    from dpmc.numerics.compiled import njit
    from dpmc.numerics.source_digest import PACKAGE, code_digest, module_names

    members = [f"{package}.{name}" for package in PACKAGES for name in module_names(package)]
    for name in (*others, *MODULES, *members):
        # What cannot be imported is for the job to tell that needs it.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    for name in sorted(name for name in sys.modules if name.startswith(f"{PACKAGE}.")):
        with contextlib.suppress(Exception):
            code_digest(name)
    # With the first function Numba learns what it can compile.
    compiled: Any = njit(lambda: 0)
    compiled()


def spare_collector() -> None:
    """Have the collector of garbage leave alone what is there, and come more rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE)


def main() -> None:
    """Import, then fork for every script that hands itself over."""
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the jobs
    load(sys.argv[2:])
    spare_collector()
    task = Forks(Path(sys.argv[1])).serve()
    if task is not None:
        signal.signal(signal.SIGINT, interrupt)
        become(*task)


if __name__ == "__main__":
    main()
