"""What budgets buy is asked for once, and again where settings or code have changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from dpmc.privacy import accounting, noise_calibration
from dpmc_papers.__main__ import main
from dpmc_papers.config.reader import load_config, papers
from dpmc_papers.pipeline import affordable, dependencies
from dpmc_papers.pipeline.workload import Workload

ROOT = Path(__file__).parents[3]
PAPERS = ("raisa2021dphmc", "vinaroz2022dpsep")


@pytest.fixture(scope="module")
def works():
    source = {"papers": list(PAPERS), "scale": "smoke", "results_dir": "nowhere"}
    config = load_config(source, ROOT)
    return {paper: Workload(config, paper) for paper in PAPERS}


@pytest.fixture
def chain(works):
    jobs = works[PAPERS[0]].jobs
    return next(j.setup for j in jobs if j.setup.budget and j.setup.budget.accountant == "gaussian")


@pytest.fixture
def study(works):
    parts = [part for job in works[PAPERS[1]].studies for part in job.parts]
    return next(part.setup for part in parts if part.setup.study == "perturbation")


@pytest.fixture
def asked(monkeypatch):
    """Return a list that gets an entry whenever an accountant is asked."""
    found: list[str] = []
    true = accounting.max_iterations

    def ask(releases, budget, num_chains):
        found.append(budget.accountant)
        return true(releases, budget, num_chains)

    monkeypatch.setattr(accounting, "max_iterations", ask)
    return found


@pytest.fixture
def forget(monkeypatch):
    """Return a function that forgets all, as a new process has."""
    return lambda: monkeypatch.setattr(affordable, "_known", {})


def everything(works):
    """Return what all budgets buy but those whose accountants take long."""
    work = works[PAPERS[0]]
    return [affordable.of_chain(job.setup) for job in work.jobs]


def in_new_process(forget, path, setup):
    forget()
    with affordable.kept(path):
        return affordable.of_chain(setup)


def test_another_process_asks_no_accountant(tmp_path, forget, asked, chain, study):
    path = tmp_path / "below" / "budgets.json"
    forget()
    with affordable.kept(path):
        first = [affordable.of_chain(chain), *affordable.of_study(study)]
    assert asked == ["gaussian"]
    forget()
    with affordable.kept(path):
        assert [affordable.of_chain(chain), *affordable.of_study(study)] == first
    assert asked == ["gaussian"]


def test_other_settings_are_asked_for(tmp_path, forget, asked, chain):
    path = tmp_path / "budgets.json"
    first = in_new_process(forget, path, chain)
    larger = replace(chain.budget, epsilon=2 * chain.budget.epsilon)
    second = in_new_process(forget, path, replace(chain, budget=larger))
    assert second.iterations > first.iterations
    assert in_new_process(forget, path, chain) == first
    assert len(asked) == 2


def test_other_code_is_asked(tmp_path, forget, asked, chain, monkeypatch):
    path = tmp_path / "budgets.json"
    in_new_process(forget, path, chain)
    true = dependencies.code_about
    seen = []

    def changed(package, *modules, **options):
        seen.extend(modules)
        return f"{true(package, *modules, **options)} changed"

    monkeypatch.setattr(dependencies, "code_about", changed)
    in_new_process(forget, path, chain)
    assert len(asked) == 2
    assert "dpmc.privacy.accountants.gaussian" in seen
    assert f"dpmc.mcmc.methods.{chain.method}" in seen


def test_code_that_only_samples_does_not_count(monkeypatch):
    """Planted: another digest of a module that knows of releases, of rows, and of the ledger."""
    modules = ("dpmc.mcmc.methods.dp_hmc", "dpmc.privacy.accountants.gaussian")
    true = dependencies.module_digest

    def digest(edited):
        dependencies.code_about.cache_clear()
        monkeypatch.setattr(
            dependencies, "module_digest", lambda name: true(name) + "x" * (name == edited)
        )
        return dependencies.code_about("dpmc.privacy", *modules, without=affordable.SPENDING)

    before = digest("")
    for edited in (*modules, "dpmc.privacy.events", "dpmc.privacy.accounting"):
        assert digest(edited) != before, edited
    for edited in ("dpmc.rows.kernels", "dpmc.mcmc.chains", "dpmc.privacy.ledger", "dpmc.types"):
        assert digest(edited) == before, edited
    dependencies.code_about.cache_clear()


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"a": [["x", 1, "2"]]}', b"\xff"])
def test_a_damaged_file_is_made_anew(tmp_path, forget, asked, chain, content):
    path = tmp_path / "budgets.json"
    path.write_bytes(content)
    first = in_new_process(forget, path, chain)
    assert in_new_process(forget, path, chain) == first
    assert len(asked) == 1


def test_a_folder_that_cannot_be_made_is_left(tmp_path, forget, chain):
    (tmp_path / "file").write_text("", encoding="utf-8")
    found = in_new_process(forget, tmp_path / "file" / "budgets.json", chain)
    assert found.iterations is not None


def test_what_was_found_before_an_error_is_kept(tmp_path, forget, asked, chain):
    path = tmp_path / "budgets.json"
    forget()
    stopped = affordable.kept(path)
    stopped.__enter__()
    affordable.of_chain(chain)
    assert not stopped.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    in_new_process(forget, path, chain)
    assert len(asked) == 1


def test_the_oldest_are_forgotten(tmp_path, forget, asked, chain, monkeypatch):
    monkeypatch.setattr(affordable, "MOST_KEPT", 1)
    path = tmp_path / "budgets.json"
    other = replace(chain, num_chains=chain.num_chains + 1)
    for setup in (chain, other, other, chain):
        in_new_process(forget, path, setup)
    assert len(asked) == 3


def test_the_command_prints_the_same_again(tmp_path, forget, asked, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(affordable, "shipped", lambda root: tmp_path / "none.json")
    told, counts = [], []
    for _ in range(2):
        forget()
        assert main(["plan", "--scale", "smoke", "--papers", PAPERS[0]]) == 0
        told.append(capsys.readouterr().out)
        counts.append(len(asked))
    assert told[0] == told[1]
    assert "ε 4:" in told[0]
    assert counts[0] == counts[1] > 0
    assert (tmp_path / "dpmc" / "budgets.json").is_file()


def test_a_plan_of_the_published_grids_asks_no_accountant(forget, monkeypatch, tmp_path):
    """If not, ``uv run python benchmarks/write_budgets.py`` brings the file up to date."""

    def refuse(*asked):
        raise AssertionError(f"config/budgets.json is out of date: it lacks {asked}")

    monkeypatch.setattr(accounting, "max_iterations", refuse)
    monkeypatch.setattr(noise_calibration, "_calibrated", refuse)
    source = {"papers": list(papers(ROOT)), "scale": "paper", "results_dir": "nowhere"}
    config = load_config(source, ROOT)
    forget()
    with affordable.kept(tmp_path / "budgets.json", affordable.shipped(ROOT)):
        for paper in config.papers:
            work = Workload(config, paper)
            assert all(affordable.of_chain(job.setup) for job in work.jobs)
            parts = [part for study in work.studies for part in study.parts]
            assert all(affordable.of_study(part.setup) for part in parts)
    assert not (tmp_path / "budgets.json").exists()


def test_what_is_shipped_is_what_accountants_say(forget, works, tmp_path):
    """Of scale smoke, whose questions take a second together."""
    forget()
    with affordable.kept(tmp_path / "budgets.json", affordable.shipped(ROOT)):
        told = everything(works)
    forget()
    assert everything(works) == told
