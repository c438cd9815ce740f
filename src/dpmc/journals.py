"""A file that only grows: each line is on the disk before what it allows is done.

The first line begins with the number of lines that were known to be on the disk, which follows
each of them. So a line that a crash cut short was never acted upon, and is dropped; one that is
whole but not counted yet counts; and a file with fewer lines than are counted was shortened. Each
line ends with a digest of itself and all before it, and the first one knows the inode of the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from dpmc.types import DpmcError

fcntl: Any
try:
    import fcntl
except ImportError:  # of systems that are not POSIX
    fcntl = None

# Digits of the number of lines, and a space.
COUNT = 12
Entry = Mapping[str, Any]


class Journal:
    """Journal of one process at a time.

    Parameters
    ----------
    path : Path
        Made where there is no such file.
    terms : mapping
        What the journal is about, as JSON has it: the same each time that it is opened.

    Raises
    ------
    DpmcError
        If the file is open elsewhere, is about something else, is a copy, or was changed.
    """

    def __init__(self, path: Path, terms: Entry) -> None:
        if fcntl is None:
            raise DpmcError("a session must run on a POSIX system, whose locks it needs")
        self.path = path.absolute()
        with self._named():
            if not os.path.lexists(self.path):
                _make(self.path, terms)
            # Neither a pipe nor a terminal is waited for.
            self._file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        self._close = weakref.finalize(self, os.close, self._file)
        self.lock, self._process = threading.RLock(), os.getpid()
        self.entries: list[Entry] = []
        self._digest, self._inode, self._size = "", 0, 0
        try:
            with self._named():
                self._read(terms)
        except BaseException:
            self.close()
            raise

    def append(self, entry: Entry) -> None:
        """Write an entry, which is on the disk when this returns.

        After an error the journal is closed, and whether the entry is there is not known.
        """
        with self.lock:
            if not self._close.alive:
                raise DpmcError("the session must be open, got a closed one: open it again")
            if os.getpid() != self._process:
                raise DpmcError("the session must be used by the process that opened it")
            try:
                with self._named():
                    there = self.path.stat()
                    if (there.st_ino, there.st_size) != (self._inode, self._size):
                        self._refuse("it was changed while it was open")
                    line, digest = _line(self._digest, entry)
                    _write(self._file, line, self._size)
                    os.fsync(self._file)
                    _write(self._file, _count(len(self.entries) + 1), 0)
                    os.fsync(self._file)
            except BaseException:
                self.close()
                raise
            self._digest = digest
            self._size += len(line)
            self.entries.append(entry)

    def close(self) -> None:
        """Let another session open the file."""
        with self.lock:  # its number would be that of another file amid an `append`
            self._close()

    def _read(self, terms: Entry) -> None:
        """Read the entries of a file that is in order, or can be put in order."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        except BlockingIOError:
            free = False
        if not free:
            self._refuse("another session has it open")
        status = os.fstat(self._file)
        if not stat.S_ISREG(status.st_mode) or not _is_count(os.pread(self._file, COUNT, 0)):
            self._refuse("it is something else, or was emptied")
        self._inode = status.st_ino
        *lines, rest = os.pread(self._file, status.st_size, 0).split(b"\n")
        entries = []
        for number, line in enumerate(lines, 1):
            text = line if number > 1 else line[COUNT:]
            body, _, digest = text.rpartition(b" ")
            self._digest = _digest(self._digest, body)
            if digest.decode("latin-1") != self._digest:
                self._refuse(f"line {number} is not as it was written")
            entries.append(json.loads(body))
        counted = int(lines[0][:COUNT]) if lines else 1
        if not entries or len(entries) - 1 < counted:
            self._refuse(f"it was shortened, to {max(len(entries) - 1, 0)} lines of {counted}")
        if len(entries) - 1 > counted + (not rest):
            self._refuse("it has more lines than were counted")
        first = entries.pop(0)
        if first.pop("inode", None) != self._inode:
            self._refuse("it is a copy")
        if first != terms:
            self._refuse(f"it is about {json.dumps(first)}, not {json.dumps(terms)}")
        self._size = status.st_size - len(rest)
        os.ftruncate(self._file, self._size)
        _write(self._file, _count(len(entries)), 0)
        os.fsync(self._file)
        self.entries = entries

    def _refuse(self, reason: str) -> NoReturn:
        raise DpmcError(
            f"`path` must be the journal of this session as it was left, got {str(self.path)!r}: "
            f"{reason}"
        )

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Let errors of the system name the file."""
        try:
            yield
        except OSError as error:
            raise DpmcError(
                "`path` must be a file that can be made, read and written, got "
                f"{str(self.path)!r}: {error.strerror or error}"
            ) from error


def _make(path: Path, terms: Entry) -> None:
    """Make a journal without entries: there is all of it or nothing, and never twice."""
    file, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        first, _ = _line("", {**terms, "inode": os.fstat(file).st_ino})
        _write(file, _count(0) + first, 0)
        os.fsync(file)
        with contextlib.suppress(FileExistsError):  # made by another process meanwhile
            os.link(name, path)
    finally:
        os.close(file)
        Path(name).unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _line(before: str, entry: Entry) -> tuple[bytes, str]:
    """Line of an entry and its digest, given the digest of the line before."""
    body = json.dumps(entry).encode()
    digest = _digest(before, body)
    return body + b" " + digest.encode() + b"\n", digest


def _digest(before: str, body: bytes) -> str:
    return hashlib.sha256(before.encode() + body).hexdigest()


def _count(number: int) -> bytes:
    return b"%0*d " % (COUNT - 1, number)


def _is_count(head: bytes) -> bool:
    return len(head) == COUNT and head[:-1].isdigit() and head.endswith(b" ")


def _write(file: int, content: bytes, at: int) -> None:
    while content:
        written = os.pwrite(file, content, at)
        content, at = content[written:], at + written
