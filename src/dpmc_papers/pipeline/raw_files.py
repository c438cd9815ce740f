"""Records of raw files: where one is on this machine, or why it cannot be had.

One job fetches a raw file, on a machine that may have a network; jobs elsewhere read its record.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from dpmc.types import DpmcError, UnavailableError
from dpmc_papers.pipeline.files import ABSENT, write_text

# Attempts at a download, and the next ones when a server broke it off.
ATTEMPTS = 3


def make(name: str, attempt: int) -> dict[str, Any]:
    """The record of a raw file, which is found or downloaded, and verified.

    It has ``file`` and ``sha256``, or ``unavailable`` with the reason. `attempt` is counted from 1.

    Raises
    ------
    InterruptedDownloadError
        If a download failed that another attempt may complete, and this is not the last one.
    DpmcError
        If there is no such table, or the file has other contents.
    """
    from dpmc_papers.data import uci

    try:
        path = uci.fetch(name).resolve()
    except uci.InterruptedDownloadError as error:
        if attempt < ATTEMPTS:
            raise
        return {ABSENT: str(error)}
    except UnavailableError as error:
        return {ABSENT: str(error)}
    return {"file": str(path), "sha256": _digest(path)}


def write(path: Path | str, record: dict[str, Any]) -> None:
    """Write a record."""
    write_text(path, json.dumps(record, indent=1) + "\n")


def read(path: Path | str) -> dict[str, Any]:
    """Read a record."""
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        record = None
    if not isinstance(record, dict) or not (
        {ABSENT} <= set(record) or {"file", "sha256"} <= set(record)
    ):
        raise DpmcError(f"{path}: truncated or damaged; delete it and run again")
    return record


def given(path: Path | str) -> Path:
    """Raw file that a record tells of.

    Raises
    ------
    UnavailableError
        If the record says that it cannot be had, with its reason.
    DpmcError
        If it cannot be read here, or is another file than the record tells of.
    """
    record = read(path)
    if ABSENT in record:
        raise UnavailableError(record[ABSENT])
    file = Path(record["file"])
    if not file.is_file():
        raise DpmcError(f"{file} must be a file that every machine of this run sees, got none")
    if (digest := _digest(file)) != record["sha256"]:
        raise DpmcError(
            f"{file}: the SHA-256 digest must be {record['sha256']}, got {digest}: "
            f"put the first file back, or delete {path}"
        )
    return file


def search(path: Path | str, name: str) -> int:
    """The number of the search that a record should be of: another one if it is no longer true.

    A raw file that an earlier run could not have may have turned up. The number of its search then
    grows by one, so that all that is made from it is made again, once.
    """
    from dpmc_papers.data import uci

    if not Path(path).is_file():
        return 0
    record = read(path)
    number = int(record.get("search", 0))
    return number + 1 if ABSENT in record and uci.find(name) is not None else number


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
