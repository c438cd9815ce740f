"""The plan says what runs do: iterations and noise of finished runs, every job counted."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from msgspec.structs import replace

from dpmc import registry
from dpmc_papers.__main__ import main
from dpmc_papers.config.pricing import Bought
from dpmc_papers.config.reader import load_config
from dpmc_papers.pipeline import affordable, costs, plan
from dpmc_papers.pipeline.workload import Workload

ROOT = Path(__file__).parents[3]
PAPER = "raisa2021dphmc"
KNOWN = costs.load(ROOT / "config" / "costs.yaml")


@pytest.fixture(scope="module")
def work():
    config = load_config({"papers": [PAPER], "scale": "paper", "results_dir": "nowhere"}, ROOT)
    return Workload(config, PAPER)


def test_budgets_buy_what_finished_runs_had(work):
    """Iterations per chain of the published grid, by the accountants that are quick."""
    path = ROOT / "results" / "published" / PAPER / "budget.csv"
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    wanted = {
        (r["problem"], r["label"], float(r["epsilon"])): int(r["num_iterations"])
        for r in rows
        if r["accountant"] == "gaussian"
    }
    found = {
        (job.problem, job.label, job.setup.budget.epsilon): affordable.of_chain(
            job.setup
        ).iterations
        for job in work.jobs
        if job.experiment == "comparison" and job.setup.budget.accountant == "gaussian"
    }
    assert len(found) >= 28
    assert found == {key: wanted[key] for key in found}


def test_every_job_is_counted_once(work):
    found = list(plan.lines(work, KNOWN, budgets=False))
    assert sum(line.jobs for line in found) == len(work.jobs)
    assert sum(line.runs for line in found) == sum(j.last - j.first + 1 for j in work.jobs)
    assert {line.done for line in found} == {0}
    stages = {stage.rule: stage for stage in plan.stages(work, KNOWN)}
    assert stages["chain"].jobs == len(work.jobs)
    assert stages["chain"].seconds == pytest.approx(sum(line.seconds for line in found))
    assert stages["output"].jobs == len(work.outputs)


def test_methods_of_studies_share_jobs_and_every_run_is_counted_once():
    paper = "vinaroz2022dpsep"
    config = load_config({"papers": [paper], "scale": "quick", "results_dir": "nowhere"}, ROOT)
    work = Workload(config, paper)
    found = list(plan.lines(work, KNOWN, budgets=False))
    parts = [part for study in work.studies for part in study.parts]
    assert sum(line.runs for line in found) == sum(map(costs.runs_of, parts))
    assert sum(line.seconds for line in found) == pytest.approx(sum(map(KNOWN.seconds_of, parts)))
    starts = len(work.studies) * (KNOWN.start_up + KNOWN.seconds["study"])
    (stage,) = (stage for stage in plan.stages(work, KNOWN) if stage.rule == "study")
    assert stage.jobs == len(work.studies) < len(found)
    assert stage.seconds == pytest.approx(sum(line.seconds for line in found) + starts)


def told_of(part, point):
    module = registry.load("study", part.setup.study)
    (at,) = replace(part.setup, points=[point]).each()
    return module.describe_budget(at)


def test_noise_of_studies_is_what_their_methods_add():
    """The multiplier keeps the budget: by the accountant of the method itself."""
    from dpmc.privacy import gaussian_noise, schedules

    papers = ["vinaroz2022dpsep", "alparslan2023thesis"]
    config = load_config({"papers": papers, "scale": "paper", "results_dir": "nowhere"}, ROOT)
    study = next(
        part
        for s in Workload(config, papers[0]).studies
        for part in s.parts
        if part.label == "dp_sep-dp_valid" and s.experiment == "mixture"
    )
    told = told_of(study, {"epsilon": 1})
    schedule = schedules.Schedule(1000, 100)
    spent = schedules.guarantee(schedule, float(told.noise), 1e-5).epsilon
    assert told.iterations == 100
    assert 0.99 < spent <= 1
    regression = next(
        part
        for s in Workload(config, papers[1]).studies
        for part in s.parts
        if part.label == "mcmc_normal_x-correct" and s.problem == "simulated_2d"
    )
    told = told_of(regression, {"epsilon": 1, "num_nodes": 1})
    assert told.iterations == 10_000
    assert gaussian_noise.true_epsilon(float(told.noise), 1 / 100_000) == pytest.approx(1, rel=1e-3)


def test_the_command_prints_a_plan(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["plan", "--scale", "smoke", "--papers", PAPER, "--cores", "2"]) == 0
    told = capsys.readouterr().out
    assert "raisa2021dphmc at scale smoke" in told
    assert "on 2 cores" in told
    line = next(row for row in told.splitlines() if "dp_penalty" in row and "banana" in row)
    assert "ε 4:" in line
    assert "σ 53.76" in line


def test_a_scale_that_is_not_there_is_one_line(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["plan", "--scale", "tiny"]) == 1
    told = capsys.readouterr().err
    assert told == "dpmc: `scale` must be one of paper, quick, smoke, got 'tiny'\n"


def test_budgets_with_the_same_noise_share_a_place():
    found = [Bought(1.0, 10, "5"), Bought(2.0, 1200, "5"), Bought(4.0, 7, "9")]
    assert plan.budgets_text(found) == "ε 1/2: 10/1,200 it, σ 5; ε 4: 7 it, σ 9"
    assert plan.budgets_text([Bought(None, 30, "none")]) == "30 it"
    assert plan.budgets_text([Bought(None, None, "none")]) == "no budget"


def test_durations():
    assert [plan.duration(s) for s in (3.2, 120, 7200, 40 * 3600)] == [
        "3 s",
        "2 min",
        "2.0 h",
        "40.0 h",
    ]
