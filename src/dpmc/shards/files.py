"""The shards of a folder: which there are, what they hold, and whether they stay what they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from dpmc.shards import npy_files, parquet_files
from dpmc.shards.content import Content
from dpmc.types import DpmcError

FORMATS: dict[str, ModuleType] = {".parquet": parquet_files, ".npy": npy_files}


@dataclass(frozen=True)
class Shard:
    """A file of rows, as it was first seen.

    Parameters
    ----------
    path : str
    content : Content
        Rows, columns and types.
    stamp : (int, int, int, int)
        Device, number of the file, bytes, and time of the last change in nanoseconds.
    """

    path: str
    content: Content
    stamp: tuple[int, int, int, int]

    def pieces(self, first: int, last: int, columns: Sequence[int]) -> Iterator[object]:
        """Rows of this file, in order, in arrays of any length."""
        found: Iterator[object] = FORMATS[Path(self.path).suffix].pieces(
            self.path, self.content, first, last, columns
        )
        return found


def list_files(folder: Path) -> list[Path]:
    """Shards of a folder, by name.

    Names that begin with a dot or an underscore are those of notes that engines leave.
    """
    if not folder.is_dir():
        reason = "a file: read it, or give its folder" if folder.exists() else "not there"
        raise DpmcError(f"`folder` must be a folder of shards, and {folder} is {reason}")
    files = [path for path in sorted(folder.iterdir()) if path.name[0] not in "._"]
    if not files:
        raise DpmcError(f"folder {folder}: must hold Parquet or .npy files, got none")
    kinds = {path.suffix for path in files}
    for path in files:
        if path.suffix not in FORMATS or not path.is_file():
            raise DpmcError(
                f"folder {folder}: must hold Parquet or .npy files only, got {path.name!r}"
            )
    if len(kinds) > 1:
        raise DpmcError(f"folder {folder}: must hold files of one kind, got {sorted(kinds)}")
    return files


def read_shards(folders: Iterable[Path]) -> tuple[Shard, ...]:
    """Shards of folders, in the order of the folders and by name."""
    shards: list[Shard] = []
    seen: dict[tuple[int, int], str] = {}
    for folder in folders:
        for path in list_files(folder):
            stamp = stamp_of(path)
            content = FORMATS[path.suffix].content(path)
            shard = Shard(str(path), content, stamp)
            first = shards[0].content if shards else content
            first.refuse_other(content, path.name)
            if stamp[:2] in seen:
                raise DpmcError(
                    f"shard {path.name}: must be a file of its own, got the file of "
                    f"{seen[stamp[:2]]} again"
                )
            seen[stamp[:2]] = path.name
            shards.append(shard)
    return tuple(shards)


def stamp_of(path: str | Path) -> tuple[int, int, int, int]:
    """Stamp that tells a file from what it was before."""
    try:
        found = Path(path).stat()
    except OSError:
        raise DpmcError(f"shard {Path(path).name}: must be there, and is not") from None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def refuse_change(shards: Iterable[Shard]) -> None:
    """Refuse shards that are no longer the files that they were.

    On another machine a file has other numbers; its size and the time of its change stay.
    """
    for shard in shards:
        if stamp_of(shard.path)[2:] != shard.stamp[2:]:
            raise DpmcError(
                f"shard {Path(shard.path).name}: must stay as it is during a fit, and has changed"
            )
