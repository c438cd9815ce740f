"""Files of the UCI Machine Learning Repository: from a folder, or downloaded and verified."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import numpy as np

from dpmc.numerics import user_cache
from dpmc.types import Array, DpmcError, UnavailableError

FOLDER_VARIABLE = "DPMC_UCI_DIR"


class InterruptedDownloadError(UnavailableError):
    """A download that failed although a server answered: the next one may succeed."""


def cache_folder() -> Path:
    """Where downloads are kept: the user's cache, a folder for each data set in it."""
    return user_cache.folder()


def find(folder: str, name: str) -> Path | None:
    """Path of a raw file if it is on this machine, without reading it.

    ``DPMC_UCI_DIR/<folder>/<name>`` is looked at first, then the user's cache.
    """
    local = os.environ.get(FOLDER_VARIABLE)
    if local and not Path(local).is_dir():
        raise DpmcError(f"`{FOLDER_VARIABLE}` must be a folder of raw files, got {local!r}")
    roots = ([Path(local)] if local else []) + [cache_folder()]
    paths = (root / folder / name for root in roots)
    return next((path for path in paths if path.is_file()), None)


def fetch(
    folder: str,
    name: str,
    url: str,
    sha256: str | None,
    check: Callable[[Path], object] | None = None,
) -> Path:
    """Path of a raw file, downloading it where it is not on this machine.

    A download has a temporary name until it is verified; then it is moved to the cache.

    Parameters
    ----------
    folder, name : str
        Where the file lies in a folder of raw files, see :func:`find`.
    url : str
        Where it is published: the file, or a zip archive that has it in any folder.
    sha256 : str or None
        Digest of one copy of the file.
    check : callable ``(path) -> object``, optional
        Raises a ``DpmcError`` for a file with the wrong content. It decides on files of
        another digest, since copies of one table differ in line ends and dates.

    Raises
    ------
    UnavailableError
        If the file is not there and cannot be downloaded; of its kind
        InterruptedDownloadError if a server answered.
    DpmcError
        If the file has other contents.
    """
    path = find(folder, name)
    if path is None:
        return _download(folder, name, url, sha256, check)
    _verify(path, sha256, check)
    return path


def _verify(path: Path, sha256: str | None, check: Callable[[Path], object] | None) -> None:
    """Refuse a file of another digest, unless `check` is there and has nothing against it."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest == sha256:
        return
    if check is None:
        raise DpmcError(f"{path}: the SHA-256 digest must be {sha256}, got {digest}")
    check(path)


def _download(
    folder: str, name: str, url: str, sha256: str | None, check: Callable[[Path], object] | None
) -> Path:
    """Download, verify, and move to the cache."""
    # A tenth of the start of a job that reads what is there.
    import pooch.downloaders
    import requests

    target = cache_folder() / folder / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Next to the target: a move within one file system is a single step.
        with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
            raw, part = Path(temporary) / "download", Path(temporary) / name
            pooch.downloaders.choose_downloader(url)(url, str(raw), None)
            if url.endswith(".zip"):
                _extract(raw, name, part)
            else:
                raw.rename(part)
            _verify(part, sha256, check)
            part.replace(target)
    except Exception as error:  # pooch passes on whatever its downloader raises
        reason = " ".join(str(error).split())[:200]
        silent = isinstance(error, requests.ConnectionError)
        raise (UnavailableError if silent else InterruptedDownloadError)(
            f"{url} must be downloadable, or `{FOLDER_VARIABLE}` a folder that holds "
            f"{folder}/{name}, got: {reason}"
        ) from None
    return target


def _extract(archive: Path, name: str, target: Path) -> None:
    """Write the member called `name`, in whatever folder of the archive, to `target`."""
    with zipfile.ZipFile(archive) as book:
        members = [m for m in book.namelist() if PurePosixPath(m).name == name]
        if not members:
            raise DpmcError(f"{name} is missing in the archive")
        with book.open(members[0]) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink)


def check_numbers(path: Path, matrix: Array, shape: tuple[int, int], sha256: str | None) -> None:
    """Refuse parsed numbers of another shape or digest (little-endian float64, row by row).

    Where no digest is known, ``None``, the shape is checked and that all are finite.
    """
    if matrix.shape != shape:
        raise DpmcError(f"{path} must hold numbers of shape {shape}, got {matrix.shape}")
    if sha256 is None:
        if not np.isfinite(np.sum(matrix)):
            row, column = np.argwhere(~np.isfinite(matrix))[0]
            where = f"{path}: row {row}, column {column}"
            raise DpmcError(f"{where} must be finite, got {matrix[row, column]}")
        return
    digest = hashlib.sha256(np.ascontiguousarray(matrix, dtype="<f8").ravel().data).hexdigest()
    if digest != sha256:
        raise DpmcError(f"{path}: the digest of all numbers must be {sha256}, got {digest}")
