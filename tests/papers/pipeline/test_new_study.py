"""A study that the package does not have yet: checked, planned and priced by its own module."""

from __future__ import annotations

import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dpmc import registry
from dpmc.types import DpmcError
from dpmc_papers.config import crosschecks
from dpmc_papers.config.pricing import Bought, Work, thousands
from dpmc_papers.config.settings import Study, StudyMethod
from dpmc_papers.config.setups import StudyPoint, StudySetup
from dpmc_papers.pipeline import costs, plan, workload
from dpmc_papers.pipeline.workload import Workload
from tests.support.papers import ROOT, load, with_paper

PAPER = "vinaroz2022dpsep"
KNOWN = costs.load(ROOT / "config" / "costs.yaml")


@dataclass(frozen=True)
class Params:
    num_tosses: int = 2000

    def __post_init__(self) -> None:
        if self.num_tosses < 1:
            raise DpmcError(f"`num_tosses` must be an integer >= 1, got {self.num_tosses}")


@pytest.fixture
def tossing(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Put a study with one method where the registry finds it."""
    study, method = types.ModuleType("tossing"), types.ModuleType("coin")
    method.Params = Params  # type: ignore[attr-defined]

    def check(point: StudyPoint) -> None:
        registry.parameters(method, point.params)

    def work(setup: StudySetup) -> Work:
        return Work(thousands(setup, "num_tosses"), seconds_per_unit=7)

    def describe_budget(point: StudyPoint) -> Bought:
        return Bought(float(point.point["epsilon"]), point.params["num_tosses"], "3")

    study.check, study.work, study.describe_budget = check, work, describe_budget  # type: ignore[attr-defined]
    load_module, listed, home = registry.load, registry.names, registry.home
    found: dict[tuple[str, str], Any] = {("study", "tossing"): study, ("tossing", "coin"): method}

    def any_names(kind: str) -> tuple[str, ...]:
        if kind == "tossing":
            return ("coin",)
        return (*listed(kind), "tossing") if kind == "study" else listed(kind)

    def any_home(kind: str, name: str) -> str:
        return "coins.coin" if kind == "tossing" else home(kind, name)

    def any_module(kind: str, name: str) -> Any:
        return found.get((kind, name)) or load_module(kind, name)

    monkeypatch.setattr(registry, "load", any_module)
    monkeypatch.setattr(registry, "names", any_names)
    monkeypatch.setattr(registry, "home", any_home)
    for digest in ("code", "code_about"):
        monkeypatch.setattr(workload.dependencies, digest, lambda *modules, **named: "code")
    return study


def with_tosses(num_tosses: int) -> Any:
    """Return the configuration of a paper whose only study is the new one."""
    entry = {
        "study": "tossing",
        "problems": ["mixture"],
        "replicates": 3,
        "grid": {"epsilon": [1, 2]},
        "together": ["epsilon"],
        "params": {"num_tosses": num_tosses},
        "methods": {"coin": {"method": "coin", "variant": "fair"}},
    }

    def change(paper: dict[str, Any]) -> None:
        paper.update(studies={"tosses": entry}, outputs={})
        outputs = load("smoke", PAPER).papers[PAPER].plain()["outputs"]
        paper["outputs"] = {"figure": {**next(iter(outputs.values())), "metrics": ["tosses"]}}

    return with_paper(load("smoke", PAPER), change)


def test_a_new_study_is_planned_and_priced_without_an_edit(tossing: types.ModuleType) -> None:
    config = with_tosses(4000)
    crosschecks.check_paper(config.papers[PAPER], PAPER, "here")
    work = Workload(config, PAPER)
    (line,) = plan.lines(work, KNOWN)
    assert (line.experiment, line.label, line.runs) == ("tosses", "coin", 6)
    assert line.bought == (Bought(1.0, 4000, "3"), Bought(2.0, 4000, "3"))
    # Two points, three replicates, four thousand tosses at seven seconds a thousand.
    assert line.seconds == pytest.approx(2 * 3 * 4 * 7)


def test_a_new_study_refuses_its_own_parameters(tossing: types.ModuleType) -> None:
    config = with_tosses(0)
    with pytest.raises(
        DpmcError, match=r"here: studies.tosses.methods.coin, .*: `num_tosses` must"
    ):
        crosschecks.check_paper(config.papers[PAPER], PAPER, "here")


@pytest.mark.parametrize("name", registry.names("study"))
def test_every_study_checks_and_prices_itself(name: str) -> None:
    module = registry.load("study", name)
    for part in ("run", "check", "work", "describe_budget"):
        assert callable(getattr(module, part))


def test_planning_names_no_paper_study_or_method() -> None:
    """Neither in the code of planning and costs nor in the structure of the measured costs."""
    folder = ROOT / "src/dpmc_papers/pipeline"
    names = {path.stem for path in (ROOT / "config" / "papers").glob("*.yaml")}
    for kind in ("study", "method", "model", *registry.names("study")):
        names |= set(registry.names(kind))
    names -= {"exact", "posterior", "selected"}  # plain words too
    for file in ("plan.py", "costs.py"):
        text = Path(folder / file).read_text(encoding="utf-8")
        assert [name for name in sorted(names) if f'"{name}"' in text] == []
    assert set(KNOWN.__struct_fields__) == {
        "machine", "start_up", "seconds", "memory_mb", "chains", "measured",
    }  # fmt: skip
    assert names.isdisjoint({*KNOWN.seconds, *KNOWN.memory_mb})


def test_types_of_settings_are_those_of_the_files() -> None:
    study = load("smoke", PAPER).papers[PAPER].studies
    assert all(isinstance(entry, Study) for entry in study.values())
    methods = [method for entry in study.values() for method in entry.methods.values()]
    assert methods
    assert all(isinstance(method, StudyMethod) for method in methods)
