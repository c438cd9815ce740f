"""Folders of results: one run at a time, names of one's own, and files that are what they were."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmc.types import DpmcError
from dpmc_papers.pipeline import files, folders, store

HOLD = """
import sys, time
from pathlib import Path
from dpmc_papers.pipeline import folders
folders.hold(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """Return another process once it holds `folder`."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_second_run_is_told_who_holds_the_folder_until_it_is_killed(tmp_path):
    folder = tmp_path / "new"
    other = holder(folder)
    try:
        with pytest.raises(DpmcError) as told:
            folders.hold(folder)
        line = str(told.value)
        assert f"process {other.pid} on {folders.host()} writes to it" in line
        assert "\n" not in line
    finally:
        end(other)
    assert folders.hold(folder)


def test_folders_beside_each_other_are_held_by_different_runs(tmp_path):
    other = holder(tmp_path / "paper")
    try:
        assert folders.hold(tmp_path / "smoke")
    finally:
        end(other)


def test_what_cannot_be_written_to_is_told_in_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DpmcError, match=r"must be a place .*: Not a directory"):
        folders.hold(tmp_path / "file" / "results")


def test_leftovers_of_dead_processes_alone_are_removed(tmp_path):
    deep = tmp_path / "chains" / "eps=4"
    deep.mkdir(parents=True)
    host = folders.host()

    def leave(name: str, age: float = 0.0) -> Path:
        path = deep / name
        path.touch()
        os.utime(path, (time.time() - age, time.time() - age))
        return path

    dead = dead_pid()
    removed = [
        leave(f".partial.{host}.{dead}.0-1.parquet"),
        leave(f".partial..partial.{host}.{dead}.0-1.parquet"),
        leave(".partial.elsewhere.1.0-1.parquet", 2 * folders.OLD),
        leave(".partial.0-1.parquet", 2 * folders.OLD),
    ]
    kept = [
        folders.own_name(leave("0-1.parquet")),
        leave(f".partial.{host}.{os.getppid()}.0-1.parquet"),
        leave(".partial.elsewhere.1.2-3.parquet"),
        leave("0-1.parquet", 2 * folders.OLD),
    ]
    kept[0].touch()
    assert folders.sweep(tmp_path) == len(removed)
    assert not any(path.exists() for path in removed)
    assert all(path.exists() for path in kept)


def write_slowly(path: Path, own: bool, first: int, begun: Any, go_on: Any) -> None:
    """Write ten bytes, `first` of them before it waits."""
    name = folders.own_name(path) if own else path
    with files.replacing(name) as partial, partial.open("wb") as file:
        file.write(b"1" * first)
        file.flush()
        begun.set()
        go_on.wait(60)
        file.write(b"1" * (10 - first))
    if own:
        name.replace(path)


@pytest.mark.parametrize("own", [True, False])
def test_two_writers_at_once_never_show_half_a_file(tmp_path, own):
    """The second begins when the first is halfway; one temporary name for both breaks it."""
    context = multiprocessing.get_context("fork")
    path = tmp_path / "result"
    writers, goes = [], []
    for first in (5, 0):
        begun, go_on = context.Event(), context.Event()
        writers.append(context.Process(target=write_slowly, args=(path, own, first, begun, go_on)))
        writers[-1].start()
        assert begun.wait(60)
        goes.append(go_on)
    seen = []
    for writer, go_on in zip(writers, goes, strict=True):
        go_on.set()
        writer.join(60)
        seen.append(path.read_bytes() if path.exists() else b"")
    if own:
        assert [writer.exitcode for writer in writers] == [0, 0]
        assert seen == [b"1" * 10] * 2
        assert list(tmp_path.iterdir()) == [path]
    else:
        assert seen[0] == b"\0" * 5 + b"1" * 5


def made(folder: Path) -> tuple[Path, Path]:
    """Return a result, and the log that tells of it."""
    path = folder / "chains" / "eps=4" / "0-1.parquet"
    store.write_array(path, np.arange(12.0).reshape(4, 3))
    log = folder / "logs" / "chains" / "eps=4" / "0-1.log"
    log.parent.mkdir(parents=True)
    log.write_text(f"sha256 {'0' * 64} 0-1.parquet\nother\n{folders.told(path)}\ndone\n")
    return path, log


def test_a_file_that_is_what_it_was_passes(tmp_path):
    path, log = made(tmp_path)
    folders.check([path, tmp_path / "absent"])
    log.write_text("nothing of it\n")
    folders.check([path])
    log.unlink()
    folders.check([path])


def test_every_flipped_byte_and_every_cut_is_noticed(tmp_path):
    """The file format notices most of them: not those in what it says of itself at its end."""
    path, log = made(tmp_path)
    whole = path.read_bytes()
    unnoticed = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(DpmcError, match="truncated or damaged") as told:
            folders.check([path])
        try:
            store.read_array(path)
            unnoticed += 1
        except Exception:
            continue
    assert str(log) in str(told.value)
    assert "\n" not in str(told.value)
    assert unnoticed > 0
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(DpmcError, match="truncated or damaged"):
            folders.check([path])


def test_one_log_tells_of_several_files(tmp_path):
    paths = [tmp_path / f"figure1.{ending}" for ending in ("png", "data.csv")]
    (tmp_path / "logs").mkdir()
    for path in paths:
        path.write_text(path.name)
    log = tmp_path / "logs" / "figure1.log"
    log.write_text("".join(f"{folders.told(path)}\n" for path in paths))
    folders.check(paths)
    for path in paths:
        path.write_text("other")
        with pytest.raises(DpmcError, match=rf"{path.name}: truncated or damaged"):
            folders.check(paths)
        path.write_text(path.name)


def test_nothing_that_a_result_depends_on_imports_it():
    from dpmc.numerics.source_digest import closure

    reached = closure(
        "dpmc_papers.pipeline.run_chains",
        "dpmc_papers.pipeline.store",
        "dpmc_papers.pipeline.chain_metrics",
        "dpmc_papers.studies.regression",
    )
    assert "dpmc_papers.pipeline.folders" not in reached


def test_the_lock_is_not_inherited_by_jobs(tmp_path):
    """A job that outlives the run that started it must not keep the next one out."""
    code = textwrap.dedent(
        """
        import subprocess, sys
        from pathlib import Path
        from dpmc_papers.pipeline import folders
        folders.hold(Path(sys.argv[1]))
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                                 stdout=subprocess.DEVNULL)
        print(child.pid, flush=True)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, timeout=120
    )
    try:
        assert folders.hold(tmp_path)
    finally:
        os.kill(int(done.stdout), signal.SIGKILL)
