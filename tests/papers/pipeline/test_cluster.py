"""Limits of a site, submissions that Snakemake joins, and the command that tells states of jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake.target_jobs import parse_target_jobs_cli_args
from snakemake_interface_executor_plugins.utils import TargetSpec, encode_target_jobs_cli_args

from dpmc.types import DpmcError
from dpmc_papers.pipeline import cluster

NAME = "chains_paper_somebody_3"
CONFIGURED = "AccountingStorageType   = accounting_storage/none\nMinJobAge               = {} sec\n"


@dataclass
class Groups:
    group_components: dict[str, int]
    overwrite_groups: dict[str, str] = field(default_factory=dict)


def workflow(components: dict[str, int], remote: bool = False) -> Any:
    """Return what has the attributes of a workflow that are used."""
    return SimpleNamespace(
        group_settings=Groups(components, {"rule": "group"}), parent_groupids={}, remote_exec=remote
    )


@pytest.fixture(autouse=True)
def untold():
    cluster._tell.cache_clear()


def test_a_submission_is_a_child_of_the_group_that_the_profile_knows():
    made = workflow({cluster.BATCH: 50})
    assert cluster.join(made, lambda: NAME) == NAME
    assert made.parent_groupids == {NAME: cluster.BATCH}
    assert made.group_settings.group_components == {cluster.BATCH: 50}


def test_on_a_node_all_jobs_are_one_group():
    made = workflow({}, remote=True)
    assert cluster.join(made, lambda: NAME) == cluster.BATCH
    assert made.group_settings == Groups({cluster.BATCH: cluster.MANY}, {"rule": "group"})
    assert made.parent_groupids == {}


@pytest.mark.parametrize("components", [{}, {"batch": 1}, {"other": 9}])
def test_without_a_profile_nothing_is_joined_and_no_name_is_made(components, capsys):
    made = workflow(components)
    assert cluster.join(made, lambda: pytest.fail("called")) is None
    assert made.parent_groupids == {}
    assert capsys.readouterr() == ("", "")


def without(name: str) -> Any:
    made = workflow({cluster.BATCH: 50})
    delattr(made, name)
    return made


def with_another(name: str, value: Any, **options: bool) -> Any:
    made = workflow({cluster.BATCH: 50}, **options)
    setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    "made",
    [
        *map(without, ("group_settings", "parent_groupids", "remote_exec")),
        with_another("group_settings", {}),
        with_another("group_settings", Groups(["batch=50"])),  # type: ignore[arg-type]
        with_another("group_settings", SimpleNamespace(group_components={}), remote=True),
        with_another("parent_groupids", ("batch",)),
        with_another("parent_groupids", None),
    ],
)
def test_another_snakemake_submits_every_job_alone_and_says_so_once(made, capsys):
    assert [cluster.join(made, lambda: NAME) for _ in range(3)] == [None] * 3
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith("dpmc: this version of Snakemake joins no jobs (")
    assert told[0].endswith("): each is submitted alone")


def test_a_fault_of_this_project_is_not_taken_for_one_of_snakemake():
    def name() -> str:
        raise AttributeError("no such thing")

    with pytest.raises(AttributeError, match="no such thing"):
        cluster.join(workflow({cluster.BATCH: 50}), name)


@pytest.mark.parametrize(
    "handed",
    [{"point": "eps=4", "digest": "1"}, {"point": "J=2,eps=1,dim=3", "first": "0"}, {"first": "0"}],
)
def test_wildcards_with_commas_are_whole_on_a_node(handed):
    """They are divided as `snakemake.target_jobs` does it."""
    (text,) = encode_target_jobs_cli_args([TargetSpec("chain", handed)])
    (spec,) = parse_target_jobs_cli_args([text])
    made = SimpleNamespace(remote_exec=True, get_rule=str.upper)
    cluster.mend_targets(made, ["point", "digest", "first"])
    made.dag_settings = SimpleNamespace(target_jobs=[spec])  # Snakemake knows them later
    assert [made.get_rule("chain") for _ in range(2)] == ["CHAIN"] * 2
    assert spec == TargetSpec("chain", handed)


def test_elsewhere_a_workflow_is_left_as_it_is():
    for made in (SimpleNamespace(), SimpleNamespace(remote_exec=False, get_rule=str.upper)):
        before = vars(made).copy()
        cluster.mend_targets(made, ["point"])
        assert vars(made) == before


def test_a_site_is_read_and_null_leaves_a_key_to_the_cluster(tmp_path):
    path = tmp_path / "site.yaml"
    assert cluster.load_site(path) == cluster.Site()
    path.write_text("account: 123\npartition: null\nqos: short\nlongest_minutes: 720\n")
    assert cluster.load_site(path) == cluster.Site(account=123, qos="short", longest_minutes=720)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("longest_minutes: 9", "`longest_minutes` must be an integer >= 10, got 9"),
        ("longest_minutes: 1.5", "`longest_minutes` must be an integer >= 10, got 1.5"),
        ("largest_memory_mb: 0", "`largest_memory_mb` must be an integer >= 1, got 0"),
        ("qos: [a]", "`qos` must be a name, got ['a']"),
        ("quos: a", "(did you mean qos?)"),
    ],
)
def test_a_site_that_says_something_else_is_refused_in_one_line(tmp_path, text, line):
    path = tmp_path / "site.yaml"
    path.write_text(text)
    with pytest.raises(DpmcError) as caught:
        cluster.load_site(path)
    assert str(path) in str(caught.value)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(SystemExit, match=r"^dpmc: "):
        cluster.or_stop(cluster.load_site, path)


def commands(folder, monkeypatch, **scripts: str) -> None:
    """Put commands of SLURM into an otherwise empty search path."""
    for name, text in scripts.items():
        file = folder / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


OFF = "echo 'Slurm accounting storage is disabled' >&2; exit 1"


def shown(age: object) -> str:
    return f"printf '{CONFIGURED.format(age)}'".replace("\n", r"\n")


@pytest.mark.parametrize(
    ("scripts", "command"),
    [
        ({"sacct": "exit 0", "scontrol": shown(2)}, "sacct"),
        ({"sacct": OFF, "scontrol": shown(300)}, "squeue"),
        ({"scontrol": shown(300)}, "squeue"),
        ({"sacct": "exit 1", "scontrol": "exit 1"}, "sacct"),
        ({}, "sacct"),
    ],
)
def test_states_are_asked_of_whoever_knows_them(tmp_path, monkeypatch, scripts, command):
    commands(tmp_path, monkeypatch, **scripts)
    assert cluster.status_command() == command


@pytest.mark.parametrize("age", [180, 2, "?"])
def test_a_cluster_that_forgets_jobs_at_once_is_refused(tmp_path, monkeypatch, age):
    commands(tmp_path, monkeypatch, sacct=OFF, scontrol=shown(age))
    with pytest.raises(DpmcError, match=r"`MinJobAge` .* must be > 180 seconds, got") as caught:
        cluster.status_command()
    assert "profiles/generic" in str(caught.value)
