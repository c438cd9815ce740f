"""Locks of result folders, and private temporary names for the files of a job.

No result depends on this module, and nothing that results depend on imports it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from dpmc.types import DpmcError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LOCK = ".lock"
LEFTOVER = re.compile(r"^\.partial\..*?(?P<host>[A-Za-z0-9-]+)\.(?P<pid>[0-9]+)\.")
# A leftover of another machine may be in use there: only an old one is removed, in seconds.
OLD = 86_400.0
NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}

_held: list[IO[str]] = []


def this_process() -> str:
    """Return the number of this process, its machine, and the name space in which it counts."""
    return f"{os.getpid()}@{_place()}"


def ends_with(process: str) -> bool:
    """Return whether this process should end with one that called `this_process`.

    It should if that one started it, directly or through others, and also if that one has ended
    already, where it would be seen. A job that a cluster or a container started goes on.
    """
    number, _, place = process.partition("@")
    if place != _place():
        return False
    return int(number) in _ancestors() or not _lives(int(number))


def _place() -> str:
    try:
        return f"{host()}:{Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # a system without
        return host()


def _ancestors() -> Iterator[int]:
    """Yield the processes that this one descends from, its own parent first."""
    pid = os.getppid()
    while pid > 0:
        yield pid
        pid = _parent(pid)


def _parent(pid: int) -> int:
    """Return the number of the process that started another, 0 for that of none."""
    try:
        # The name of the program stands in brackets, and may hold anything.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # a system without
        asked = ["ps", "-o", "ppid=", "-p", str(pid)]
    with suppress(OSError, ValueError):
        return int(subprocess.run(asked, capture_output=True, text=True, check=False).stdout)
    return 0


def hold(folder: Path) -> bool:
    """Keep other runs out of a folder for as long as this process lives.

    The system frees the lock of a process that ends, however it ends: none is ever stale.

    Parameters
    ----------
    folder : Path
        Folder of results; it is made if need be.

    Returns
    -------
    bool
        False where the file system or the operating system knows no such locks.

    Raises
    ------
    DpmcError
        If another process holds it, or nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("a+", encoding="utf-8")
    except OSError as error:
        raise DpmcError(unwritable(folder, error)) from None
    if fcntl is None:
        file.close()
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "another run"
        file.close()
        raise DpmcError(
            f"{folder}: {holder} writes to it, and one run at a time may: "
            "wait for its end, or set another results_dir"
        ) from None
    except OSError as error:
        file.close()
        if error.errno in NO_LOCKS:
            return False
        raise DpmcError(unwritable(folder, error)) from None
    try:
        file.truncate(0)
        file.write(f"process {os.getpid()} on {host()}\n")
        file.flush()
    except OSError as error:
        raise DpmcError(unwritable(folder, error)) from None
    _held.append(file)
    return True


def unwritable(path: Path | str, error: OSError) -> str:
    """Return the line that says why something cannot be written."""
    told = os.strerror(error.errno) if error.errno else str(error)
    return f"{path} must be a place that can be written to: {told}"


def own_name(path: Path) -> Path:
    """Return a hidden name beside `path`, with its ending, that no other process uses."""
    return path.with_name(f".partial.{host()}.{os.getpid()}.{path.name}")


def sweep(folder: Path) -> int:
    """Remove what killed processes left unfinished, and return the number of files."""
    removed = 0
    for path in folder.rglob(".partial.*"):
        if _is_left(path):
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def host() -> str:
    """Return the name of this machine, without dots."""
    return re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname()) or "localhost"


def fingerprint(path: Path) -> str:
    """Return the SHA-256 digest of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def told(path: Path, name: str | None = None) -> str:
    """Return the line by which the log of a job says what it wrote, as `name` if given."""
    return f"sha256 {fingerprint(path)} {name or path.name}"


def check(paths: Iterable[Path]) -> None:
    """Compare files with what the logs of the jobs that made them say.

    Logs stand in a folder ``logs`` under the same names. A file without a log, or of which
    its log says nothing, is not looked at.

    Raises
    ------
    DpmcError
        Of the first file that differs.
    """
    for path in paths:
        log = _log_of(path)
        expected = re.findall(_line_about(path.name), _text(log)) if log else []
        if expected and path.is_file() and fingerprint(path) != expected[-1]:
            raise DpmcError(
                f"{path}: truncated or damaged (not what {log} tells of); delete it and run again"
            )


def _line_about(name: str) -> str:
    return rf"(?m)^sha256 ([0-9a-f]{{64}}) {re.escape(name)}$"


def _log_of(path: Path) -> Path | None:
    stem = path.with_suffix("")
    for folder in path.parents:
        for name in dict.fromkeys((stem, stem.with_suffix(""))):  # figure1.csv, figure1.data.csv
            log = folder / "logs" / f"{name.relative_to(folder)}.log"
            if log.is_file():
                return log
    return None


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _is_left(path: Path) -> bool:
    found = LEFTOVER.match(path.name)
    if found and found["host"] == host():
        return not _lives(int(found["pid"]))
    try:
        return time.time() - path.stat().st_mtime > OLD
    except FileNotFoundError:
        return False


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
