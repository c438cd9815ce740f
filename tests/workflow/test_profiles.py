"""What the profiles of clusters ask of Snakemake, from what a site says of itself."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yte

from dpmc_papers.pipeline import cluster, profiles
from tests.workflow.conftest import ROOT

SLURM, GENERIC = Path("profiles", "slurm"), Path("profiles", "generic")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the profiles, as a checkout has them, on a machine without SLURM."""
    for profile in (SLURM, GENERIC):
        shutil.copytree(ROOT / profile, tmp_path / "checkout" / profile)
    (tmp_path / "checkout" / "bin").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "checkout" / "bin"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "of_users"))
    monkeypatch.setenv(profiles.CHOSEN, "")  # what a test leaves there is undone
    monkeypatch.chdir(tmp_path / "checkout")
    monkeypatch.setattr("sys.argv", ["snakemake", "--profile", str(SLURM)])
    return tmp_path / "checkout"


def read(folder: Path, profile: Path = SLURM) -> dict[str, Any]:
    with (folder / profile / "config.yaml").open(encoding="utf-8") as file:
        found: dict[str, Any] = yte.process_yaml(file, require_use_yte=True)
    return found


def describe(folder: Path, minutes: int) -> None:
    """Say in a folder how long jobs may take there, and whose they are by the same number."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "site.yaml").write_text(f"account: of_{minutes}\nlongest_minutes: {minutes}\n")


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
    with pytest.raises(
        SystemExit, match=r"^dpmc: [^\n]*/checkout/profiles/slurm/site\.yaml: [^\n]*$"
    ):
        read(folder)


CHECKOUT, ELSEWHERE, COPY = "checkout/profiles/slurm", "elsewhere/profiles/slurm", "copy"
FROM_ELSEWHERE = "-s ../checkout/Snakefile --profile ../checkout/profiles/slurm"


@pytest.mark.parametrize(
    ("place", "command", "told_in", "wanted"),
    [
        ("checkout", "--profile profiles/slurm -d ../elsewhere", [CHECKOUT], CHECKOUT),
        ("checkout", "--profile profiles/slurm -d ../elsewhere", [CHECKOUT, ELSEWHERE], ELSEWHERE),
        ("elsewhere", FROM_ELSEWHERE, [CHECKOUT], CHECKOUT),
        ("elsewhere", FROM_ELSEWHERE, [CHECKOUT, ELSEWHERE], ELSEWHERE),
        ("checkout", "--profile ../copy", [CHECKOUT, COPY], COPY),
        ("checkout", "--profile ../copy/config.yaml -d ../elsewhere", [CHECKOUT, COPY], COPY),
        (
            "checkout",
            "--profile mine",
            [CHECKOUT, "of_users/snakemake/mine"],
            "of_users/snakemake/mine",
        ),
        ("elsewhere", "-s ../checkout/Snakefile --profile ../generic", [CHECKOUT], CHECKOUT),
    ],
)
def test_the_profile_and_the_rules_read_the_same_site(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    command: str,
    told_in: list[str],
    wanted: str,
) -> None:
    """The folder of the run comes first, then the copy of a profile, then the checkout."""
    shutil.copytree(folder / GENERIC, folder.parent / "generic")
    for minutes, where in enumerate(told_in, start=100):
        describe(folder.parent / where, minutes)
        shutil.copy(ROOT / SLURM / "config.yaml", folder.parent / where)
    monkeypatch.chdir(folder.parent / place)
    monkeypatch.setattr("sys.argv", ["snakemake", "-n", *shlex.split(command)])
    minutes = 100 + told_in.index(wanted)
    assert read(folder)["default-resources"] == {"slurm_account": f"of_{minutes}"}
    # Snakemake goes there before it reads the rules.
    monkeypatch.chdir(folder.parent / "elsewhere" if "-d" in command else folder.parent / place)
    assert profiles.site_of_run(folder).longest_minutes == minutes


def test_without_a_profile_the_folder_of_the_run_comes_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = folder.parent / "elsewhere"
    monkeypatch.chdir(elsewhere)
    assert profiles.site_of_run(folder) == cluster.Site()
    for minutes, place in ((100, folder), (101, elsewhere)):
        describe(place / SLURM, minutes)
        assert profiles.site_of_run(folder).longest_minutes == minutes


def test_a_site_that_is_nowhere_is_told_of_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profiles._tell.cache_clear()
    (folder / SLURM / "site.yaml").unlink()
    for _ in range(2):
        read(folder)
    told = capsys.readouterr().err
    assert told.startswith(f"dpmc: profiles/slurm/site.yaml: not in {folder}, nor beside")
    assert told.count("\n") == 1
    assert profiles.site_of_run(folder) == cluster.Site()


def test_scripts_are_those_beside_the_profile(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = folder.parent / "it's a copy"
    shutil.copytree(folder / GENERIC, copy)
    monkeypatch.chdir(folder.parent / "elsewhere")
    monkeypatch.setattr("sys.argv", ["snakemake", "--profile", "../it's a copy"])
    found = read(folder, GENERIC)
    assert shlex.split(found["cluster-generic-submit-cmd"])[:2] == ["sh", f"{copy}/submit.sh"]
    assert shlex.split(found["cluster-generic-status-cmd"]) == ["sh", f"{copy}/status.sh"]
    assert found["cluster-generic-cancel-cmd"] == f"{copy}/cancel.sh"
    (copy / "status.sh").unlink()
    with pytest.raises(
        SystemExit, match=r"^dpmc: status\.sh: must be beside the profile, got [^\n]*$"
    ):
        read(folder, GENERIC)
