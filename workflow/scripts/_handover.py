"""Hand a script over to a process of this run that has imported what it needs.

What that process, `dpmc_papers.pipeline.preloaded`, cannot take the script does by itself.
This imports next to nothing.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

# The same as in dpmc_papers.pipeline.preloaded.
PLACE = "DPMC_PRELOADED"
STATUS = struct.Struct("!i")
SCHEDULER = "DPMC_SCHEDULER"
# The folder of logs of jobs that measure run times: nothing may be of another process.
ALONE = "run_times"


def hand_over(job: Any) -> None:
    """Let a fork of the process do this script, and end as it ends; or return.

    `job` is what Snakemake hands to a script, None to a program that is none.
    """
    python, _, place = os.environ.pop(PLACE, "").rpartition(os.pathsep)
    if not place or python != sys.executable or job is None:
        return
    if ALONE in Path(job.log[0]).parts:
        return
    if not _is_started_by(os.environ.get(SCHEDULER, "")):
        return  # a cluster or a container started it
    task = {
        "arguments": sys.argv,
        "directory": str(Path.cwd()),
        "environment": dict(os.environ),
    }
    text = json.dumps(task).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(place)  # refused until all is imported
            socket.send_fds(connection, [STATUS.pack(len(text))], [0, 1, 2])
            connection.sendall(text)
            number = _told(connection)
        except (OSError, ValueError):
            return
        if number is None:
            return
        code = _wait(connection)
    if code is None:
        _wait_for_end(number)
        return  # it was killed, and this job with it
    _end_as(code)


def _is_started_by(process: str) -> bool:
    """Return whether a process started this one, by itself or through a shell."""
    number, _, place = process.partition("@")
    try:
        if not place.endswith(f":{Path('/proc/self/ns/pid').readlink()}"):
            return False  # it counts processes otherwise
        told = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # a system without
        return False
    return number in (str(os.getppid()), told.rpartition(")")[2].split()[1])


def _wait(connection: socket.socket) -> int | None:
    """Return how the job has ended, None if nobody can tell any more."""
    while True:
        try:
            return _told(connection)
        except KeyboardInterrupt:
            continue  # the job has it too, and ends in order
        except OSError:
            return None


def _told(connection: socket.socket) -> int | None:
    """Return the next number, None at the end."""
    data = connection.recv(STATUS.size, socket.MSG_WAITALL)
    return STATUS.unpack(data)[0] if len(data) == STATUS.size else None


def _wait_for_end(number: int) -> None:
    while True:
        try:
            os.kill(number, 0)
        except OSError:
            return
        time.sleep(0.05)


def _end_as(code: int) -> None:
    """End with a code, or by the signal that has ended the job."""
    if code < 0:
        with suppress(OSError):  # one that cannot be handled
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)
