"""What a change makes a run do: all that depends on it, and nothing else, by the list of jobs.

Code counts by module, as imports show: the style of figures also holds the names and the order of
methods, so that what shows them in words is written again with the figures, in seconds.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.workflow.conftest import TINY, Project

PAPER = "raisa2021dphmc"
CONFIG = f"config/papers/{PAPER}.yaml"
MODEL = "src/dpmc/models/gaussian_mean.py"
FUTURE = "from __future__ import annotations\n"
METHODS = ("dp_penalty", "dp_hmc")
EPSILONS = (2, 4)

# At the end of every run that does anything.
END = {
    "all results are there",
    f"provenance of {PAPER}",
    f"page about {PAPER}",
    "front page at scale tiny",
}
OUTPUTS = {f"figure1 of {PAPER}", f"table budget of {PAPER}"}
JUDGED = {f"verdicts on {PAPER}", f"guarantees in {PAPER}"}
# Whatever is made from metrics.
SHOWN = OUTPUTS | JUDGED | END
SAMPLES = {"exact posterior sample of plane", "metrics of exact samples of plane"}


def settings(*names: str) -> set[str]:
    return {f"settings of {name}" for name in names}


def chains(
    methods: tuple[str, ...] = METHODS,
    epsilons: tuple[int, ...] = EPSILONS,
    replicates: str = "0 to 1",
) -> set[str]:
    return {
        f"{method} on plane, eps={epsilon}, replicates {replicates} (comparison)"
        for method in methods
        for epsilon in epsilons
    }


def metrics(*methods: str) -> set[str]:
    return {f"metrics of {method} on plane (comparison)" for method in methods}


ALL_SETTINGS = settings("figure1", "budget", "verdict", "guarantees", "page")


def jobs(project: Project) -> set[str]:
    """Return the messages of the jobs that a run would do, one of each."""
    planned = project.planned(config=TINY)
    assert len(planned) == len(set(planned)), planned
    return set(planned)


@contextmanager
def without(path: Path) -> Iterator[None]:
    """Put a folder aside for a while."""
    aside = path.rename(path.with_name(f"{path.name}-aside"))
    try:
        yield
    finally:
        if path.exists():
            shutil.rmtree(path)
        aside.rename(path)


def test_with_no_change_nothing_runs(tiny: Project) -> None:
    assert jobs(tiny) == set()


def test_an_added_epsilon_runs_alone(tiny: Project) -> None:
    with tiny.edited(CONFIG, "epsilons: [2, 4]", "epsilons: [2, 4, 8]"):
        found = jobs(tiny)
    assert found == chains(epsilons=(8,)) | metrics(*METHODS) | SHOWN | ALL_SETTINGS


def test_added_seeds_run_alone(tiny: Project) -> None:
    with tiny.edited(CONFIG, "replicates: 2", "replicates: 4"):
        found = jobs(tiny)
    assert found == chains(replicates="2 to 3") | metrics(*METHODS) | SHOWN | ALL_SETTINGS


def test_one_hyperparameter_reruns_its_method(tiny: Project) -> None:
    with tiny.edited(CONFIG, "proposal_sd: 0.05", "proposal_sd: 0.06"):
        found = jobs(tiny)
    assert found == chains(("dp_penalty",)) | metrics("dp_penalty") | SHOWN | ALL_SETTINGS


def test_a_number_written_otherwise_and_other_guesses_of_time_rerun_no_chain(tiny: Project) -> None:
    with tiny.edited(CONFIG, "proposal_sd: 0.05", "proposal_sd: 0.050"):
        assert jobs(tiny) == set()
    with tiny.edited(CONFIG, "timed_at_epsilon: 4", "timed_at_epsilon: 5"):
        assert jobs(tiny) & (chains() | metrics(*METHODS) | SAMPLES) == set()


def test_a_style_of_figures_redraws(tiny: Project) -> None:
    with tiny.edited("src/dpmc/experiments/plots/style.py", FUTURE, f"{FUTURE}NEW = 1\n"):
        found = jobs(tiny)
    shown = OUTPUTS | {f"verdicts on {PAPER}", "code of the site"} | END
    assert found == shown | settings("figure1", "budget", "verdict", "page")


def test_another_label_redoes_what_shows_it(tiny: Project) -> None:
    with tiny.edited(CONFIG, "label: Plane", "label: Level"):
        found = jobs(tiny)
    assert found == SHOWN | ALL_SETTINGS


def test_an_edited_model_reruns_all_but_its_rows(tiny: Project) -> None:
    with tiny.edited(MODEL, FUTURE, f"{FUTURE}NEW = 1\n"):
        found = jobs(tiny)
    assert found == SAMPLES | chains() | metrics(*METHODS) | SHOWN | ALL_SETTINGS


def test_an_edited_method_reruns_its_chains(tiny: Project) -> None:
    with tiny.edited("src/dpmc/mcmc/methods/dp_penalty.py", FUTURE, f"{FUTURE}NEW = 1\n"):
        found = jobs(tiny)
    assert found == chains(("dp_penalty",)) | metrics("dp_penalty") | SHOWN | ALL_SETTINGS


def test_a_docstring_reruns_nothing(tiny: Project) -> None:
    text = (tiny.folder / MODEL).read_text(encoding="utf-8")
    first = text.splitlines()[0]
    assert first.startswith('"""')
    with tiny.edited(MODEL, first, f'"""Other words. {first[3:]}'):
        assert jobs(tiny) == set()


def test_another_claim_is_judged_alone(tiny: Project) -> None:
    with tiny.edited(f"config/published/{PAPER}.yaml", "high: 2", "high: 3"):
        found = jobs(tiny)
    assert found == {f"verdicts on {PAPER}"} | END | settings("verdict")


def test_how_files_are_written_and_runs_kept_apart_reruns_nothing(tiny: Project) -> None:
    """Neither the locks nor what the scripts share are part of any result."""
    for path in ("src/dpmc/experiments/pipeline/folders.py", "workflow/scripts/_job.py"):
        with tiny.edited(path, FUTURE, f"{FUTURE}NEW = 1\n"):
            assert jobs(tiny) == set()


def test_lost_records_change_nothing(tiny: Project) -> None:
    with without(tiny.folder / ".snakemake"):
        assert jobs(tiny) == set()
        with tiny.edited(CONFIG, "proposal_sd: 0.05", "proposal_sd: 0.06"):
            found = jobs(tiny)
    assert found == chains(("dp_penalty",)) | metrics("dp_penalty") | SHOWN | ALL_SETTINGS


def test_lost_logs_change_nothing(tiny: Project) -> None:
    folder = tiny.folder / "results" / "tiny" / PAPER
    with without(folder / "logs"), without(folder / "benchmarks"):
        assert jobs(tiny) == set()


@contextmanager
def lost(path: Path) -> Iterator[None]:
    """Delete a file for a while."""
    content, stat = path.read_bytes(), path.stat()
    path.unlink()
    try:
        yield
    finally:
        path.write_bytes(content)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_lost_table_is_written_alone_and_a_lost_chain_is_not_missed(tiny: Project) -> None:
    """Nobody asks for a chain once its metrics are there; without both, both are made."""
    folder = tiny.folder / "results" / "tiny" / PAPER
    with lost(folder / "budget.csv"):
        assert jobs(tiny) == {f"table budget of {PAPER}"} | END
    (chain,) = folder.glob("chains/comparison/plane/dp_hmc/eps=4-*/0-1.parquet")
    (measured,) = folder.glob("metrics/comparison/plane/dp_hmc-*.parquet")
    with lost(chain):
        assert jobs(tiny) == set()
        with lost(measured), lost(folder / "budget.csv"):
            found = jobs(tiny)
    assert found == chains(("dp_hmc",), (4,)) | metrics("dp_hmc") | SHOWN
