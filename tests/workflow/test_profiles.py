"""What the profiles of clusters ask of Snakemake, from what a site says of itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yte

from tests.workflow.conftest import ROOT

SLURM = Path("profiles", "slurm")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder with the profile, on a machine without SLURM."""
    shutil.copytree(ROOT / SLURM, tmp_path / SLURM)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(folder: Path) -> dict[str, Any]:
    with (folder / SLURM / "config.yaml").open(encoding="utf-8") as file:
        found: dict[str, Any] = yte.process_yaml(file, require_use_yte=True)
    return found


def test_a_site_names_its_account_partition_and_quality_of_service(folder: Path) -> None:
    (folder / SLURM / "site.yaml").write_text("account: me\npartition: short\nqos: normal\n")
    wanted = {"slurm_account": "me", "slurm_partition": "short", "qos": "normal"}
    assert read(folder)["default-resources"] == wanted


def test_what_a_site_leaves_out_is_left_to_the_cluster(folder: Path) -> None:
    assert not read(folder).get("default-resources")


def test_the_queue_is_asked_where_no_accounts_are_kept(folder: Path) -> None:
    assert read(folder)["slurm-status-command"] == "sacct"
    for name, text in (("sacct", "exit 1"), ("scontrol", "echo 'MinJobAge = 300 sec'")):
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / "bin" / name).chmod(0o755)
    assert read(folder)["slurm-status-command"] == "squeue"


@pytest.mark.parametrize("text", ["quos: normal", "longest_minutes: 2"])
def test_a_mistake_stops_the_run_with_one_line(folder: Path, text: str) -> None:
    (folder / SLURM / "site.yaml").write_text(text)
    with pytest.raises(SystemExit, match=r"^dpmc: profiles/slurm/site\.yaml: [^\n]*$"):
        read(folder)
