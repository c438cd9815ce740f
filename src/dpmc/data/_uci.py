"""Files of the UCI Machine Learning Repository: from a folder, or downloaded and verified."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pooch

from dpmc.types import Array, DpmcError

FOLDER_VARIABLE = "DPMC_UCI_DIR"


def fetch(folder: str, name: str, url: str, sha256: str) -> Path:
    """Return the path of a raw file.

    ``DPMC_UCI_DIR/<folder>/<name>`` is looked at first; otherwise the file is downloaded
    to the user's cache under a temporary name, verified, then moved.

    Parameters
    ----------
    folder, name : str
        Where the file lies in a local folder of raw files.
    url : str
        Where it is published.
    sha256 : str
        Digest of the file.

    Raises
    ------
    DpmcError
        If the file is neither there nor can be downloaded, or has other contents.
    """
    local = os.environ.get(FOLDER_VARIABLE)
    if local:
        path = Path(local) / folder / name
        if not path.is_file():
            raise DpmcError(f"{FOLDER_VARIABLE}: no file {path}, allowed a folder that has it")
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != sha256:
            raise DpmcError(f"{path}: sha256 {found}, allowed {sha256}")
        return path
    try:
        return Path(
            pooch.retrieve(
                url, f"sha256:{sha256}", name, pooch.os_cache("dpmc") / folder, progressbar=False
            )
        )
    except Exception as error:  # pooch passes on whatever its downloader raises
        reason = " ".join(str(error).split())[:200]
        raise DpmcError(
            f"{url}: {reason}; allowed: a working download, or {FOLDER_VARIABLE} naming a folder "
            f"that holds {folder}/{name}"
        ) from None


def check_numbers(path: Path, matrix: Array, shape: tuple[int, int], sha256: str) -> None:
    """Refuse parsed numbers of another shape or digest (little-endian float64, row by row)."""
    found = hashlib.sha256(np.ascontiguousarray(matrix, dtype="<f8").tobytes()).hexdigest()
    if matrix.shape != shape or found != sha256:
        raise DpmcError(f"{path}: {matrix.shape} numbers with digest {found}, allowed {sha256}")
