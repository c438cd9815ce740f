"""Raw files in the workflow: fetched by one local job, remade once they can be had, never guessed.

The rows of the tiny configuration come from a table of 40 wines that a server of this machine has.
"""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml

from dpmc_papers.data import uci
from tests.support import tables
from tests.workflow.conftest import JOB, LAST, Project, copy_tiny

CONFIG = ("scale=paper", "papers=vinaroz2022dpsep")
PAPER = Path("results", "paper", CONFIG[1].removeprefix("papers="))
TABLES = "src/dpmc_papers/data/_uci_tables.py"
NAME, ROWS = "wine_red", 40
RAW, DATA = f"raw file of {NAME}", "rows of wine"
TABLE = dataclasses.replace(uci.TABLES[NAME], num_rows=ROWS)
NUMBERS = tables.some_numbers(TABLE, ROWS)


class Server(http.server.ThreadingHTTPServer):
    """A server of one file, which refuses some requests before it gives it."""

    refused = asked = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/wine.csv"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked += 1
        if self.server.asked <= self.server.refused:
            self.send_error(503)
            return
        content = tables.lines(TABLE, NUMBERS).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def leave_out(project: Project, *studies: str) -> None:
    """Have no studies of some names, which need no raw file."""
    path = project.folder / "config" / "papers" / f"{PAPER.name}.yaml"
    paper = yaml.safe_load(path.read_text(encoding="utf-8"))
    for name in studies:
        del paper["studies"][name]
    del paper["problems"]["timed"]
    path.write_text(yaml.safe_dump(paper, sort_keys=False), encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a copy whose wines are those of the server, with no raw file on this machine."""
    made = copy_tiny(tmp_path / "project")
    leave_out(made, "regression", "run_times")
    file = made.folder / TABLES
    text = file.read_text(encoding="utf-8")
    digest = hashlib.sha256(NUMBERS.astype("<f8").tobytes()).hexdigest()
    for old, new in (
        ('f"{ARCHIVE}/wine-quality/winequality-red.csv"', f'"{server.address}"'),
        ("num_rows=1599", f"num_rows={ROWS}"),
        (str(uci.TABLES[NAME].numbers_sha256), digest),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    (tmp_path / "raw").mkdir()
    monkeypatch.setenv("DPMC_UCI_DIR", str(tmp_path / "raw"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return made


def place(content: str | None = None) -> Path:
    """Write the raw file to the folder of raw files."""
    path = Path(os.environ["DPMC_UCI_DIR"], NAME, TABLE.file)
    path.parent.mkdir(exist_ok=True)
    path.write_text(content or tables.lines(TABLE, NUMBERS), encoding="utf-8", newline="")
    return path


def data(project: Project, *arguments: str) -> tuple[int, list[str], str]:
    """Run the workflow as far as rows; return its code, the jobs done or planned, what it said."""
    done = project.snakemake("--until", "rows", *arguments, config=CONFIG)
    return done.returncode, [job for job in JOB.findall(done.stdout) if job != LAST], done.stdout


def records(project: Project) -> list[dict[str, str]]:
    paths = sorted((project.folder / PAPER / "raw").glob("*.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.slow
def test_an_answer_that_is_refused_is_asked_for_again(project: Project, server: Server) -> None:
    server.refused = 2
    code, jobs, told = data(project)
    assert code == 0, told
    assert jobs.count(RAW) == 3 == server.asked
    assert jobs.count(DATA) == 1
    ((file, digest),) = [(one["file"], one["sha256"]) for one in records(project)]
    assert Path(file).is_relative_to(os.environ["XDG_CACHE_HOME"])
    assert hashlib.sha256(Path(file).read_bytes()).hexdigest() == digest
    assert data(project, "-n")[1] == []


@pytest.mark.slow
def test_rows_that_were_unavailable_are_made_once_their_file_is_there(
    project: Project, server: Server
) -> None:
    server.refused = 99
    done = project.snakemake(config=CONFIG)
    assert done.returncode == 0, done.stdout
    (record,) = records(project)
    assert "503" in record["unavailable"]
    assert f"Open {project.folder}/results/paper/site/index.html in a browser." in done.stdout
    assert f"Without data that could not be had here: {NAME}. Put their files into a" in done.stdout
    studies = project.folder / PAPER / "studies" / "networks"
    (table,) = studies.glob("wine/*.parquet")
    first = table.read_bytes()
    place()
    before = everything(project.folder / "results")
    planned = project.planned(config=CONFIG)
    assert everything(project.folder / "results") == before
    assert {RAW, DATA} < set(planned)
    assert len([job for job in planned if job.startswith("networks on wine, ")]) == 1
    assert "rows of mixture" not in planned
    done = project.snakemake(config=CONFIG)
    assert done.returncode == 0, done.stdout
    assert server.asked == 3
    assert "Open " in done.stdout
    assert "Without data" not in done.stdout
    assert table.read_bytes() != first
    # Rows stay when their file goes, and wherever another copy of it is found.
    place().unlink()
    assert project.planned(config=CONFIG) == []


@pytest.mark.slow
def test_a_replaced_file_is_refused_before_its_record_and_after(
    project: Project, server: Server
) -> None:
    other = NUMBERS + np.eye(*NUMBERS.shape)
    file = place(tables.lines(TABLE, other))
    code, _, told = data(project)
    assert code != 0
    assert f"dpmc: {file}: the digest of all numbers must be" in told
    assert records(project) == []
    place()
    assert data(project)[0] == 0
    rows = project.folder / PAPER / "data" / "wine.parquet"
    first = rows.read_bytes()
    rows.unlink()
    place(tables.lines(TABLE, other))
    code, _, told = data(project)
    assert code != 0
    assert f"dpmc: {file}: the SHA-256 digest must be" in told
    place()
    assert data(project)[0] == 0
    assert rows.read_bytes() == first
    assert server.asked == 0


@pytest.mark.slow
def test_a_download_that_failed_can_be_asked_for_again(project: Project, server: Server) -> None:
    """The command of docs/reproduction.md."""
    server.refused = 3
    assert data(project)[0] == 0
    done = project.snakemake("--forcerun", "raw", "--until", "raw", config=CONFIG)
    assert done.returncode == 0, done.stdout
    assert [sorted(one) for one in records(project)] == [["file", "search", "sha256"]]
    code, jobs, told = data(project)
    assert code == 0, told
    assert jobs == [DATA]
