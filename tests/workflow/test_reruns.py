"""What a change makes a run do: all that depends on it, and nothing else, by the list of jobs.

Code counts by module, as imports show: the style of figures also holds the names and the order of
methods, so that what shows them in words is written again with the figures, in seconds.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.workflow.conftest import JOB, TINY, Project, copy_tiny

PAPER = "raisa2021dphmc"
CONFIG = f"config/papers/{PAPER}.yaml"
CLAIMS = f"config/published/{PAPER}.yaml"
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


METRICS = {"metrics of dp_penalty, dp_hmc on plane (comparison)"}
ALL_SETTINGS = settings("figure1", "budget", "verdict", "guarantees", "page")


def jobs(project: Project) -> set[str]:
    """Return the messages of the jobs that a run would do, one of each."""
    planned = project.planned(config=TINY)
    assert len(planned) == len(set(planned)), planned
    return set(planned)


def test_with_no_change_nothing_runs(tiny: Project) -> None:
    assert jobs(tiny) == set()


@pytest.mark.slow
def test_one_hyperparameter_reruns_its_method(tiny: Project) -> None:
    """By dry runs of processes of their own; those of other tests are forks of one process."""
    with tiny.edited(CONFIG, "proposal_sd: 0.05", "proposal_sd: 0.06"):
        done = tiny.alone("-n", config=TINY)
        assert done.returncode == 0
        assert set(JOB.findall(done.stdout)) == jobs(tiny)
    made = chains(("dp_penalty",)) | METRICS | SHOWN | ALL_SETTINGS
    assert set(JOB.findall(done.stdout)) == made
    done = tiny.alone("-n", config=TINY)
    assert "Nothing to be done" in done.stdout


Change = Callable[[Project], AbstractContextManager[None]]


def what_reruns(project: Project, changes: dict[str, Change]) -> dict[str, set[str]]:
    """Return the jobs of each change that makes any run; all of them together are tried first."""
    with ExitStack() as together:
        for change in changes.values():
            together.enter_context(change(project))
        if not jobs(project):
            return {}
    found = {}
    for name, change in changes.items():
        with change(project):
            found[name] = jobs(project)
    return {name: made for name, made in found.items() if made} or {"together": {"any"}}


def edit(path: str, old: str, new: str) -> Change:
    return lambda project: project.edited(path, old, new)


def line_added(path: str, line: str = "NEW = 1\n") -> Change:
    return edit(path, FUTURE, f"{FUTURE}{line}")


def other_start(path: str, old: str, new: str) -> Change:
    """Replace the start of the first line of a file."""

    def change(project: Project) -> AbstractContextManager[None]:
        first = (project.folder / path).read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith(old)
        return project.edited(path, first, new + first.removeprefix(old))

    return change


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


@contextmanager
def touched(project: Project) -> Iterator[None]:
    """Give rows, chains, captions, code, scripts and settings new dates for a while."""
    paths = [
        path
        for part in ("config", "src", "workflow", "docs", "results/tiny")
        for path in (project.folder / part).rglob("*")
        if path.suffix in {".yaml", ".py", ".rst", ".md", ".css", ".html", ".smk"}
        or path.match("data/*.parquet")
        or path.match("0-1.parquet")
    ]
    assert len(paths) > 300
    before = {path: path.stat() for path in paths}
    try:
        for path in paths:
            path.touch()
        yield
    finally:
        for path, stat in before.items():
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


NEW_FILES = {
    "models/another.py": "gaussian_mean.py",
    "mcmc/methods/another.py": "dp_penalty.py",
    "experiments/data/another.py": "gaussian_rows.py",
    "experiments/studies/another.py": "mixture.py",
    "statsel/statistics/another.py": "median.py",
}


@contextmanager
def new_files(project: Project) -> Iterator[None]:
    """Add a file to each registry for a while."""
    source = project.folder / "src/dpmc"
    made = [source / name for name in NEW_FILES]
    for path, like in zip(made, NEW_FILES.values(), strict=True):
        shutil.copy2(path.with_name(like), path)
    try:
        yield
    finally:
        for path in made:
            path.unlink()


SCRIPT = "workflow/scripts/chain.py"
FIRST_IMPORT = "from _job import job\n"
HARMLESS = {
    "a number written otherwise": edit(CONFIG, "proposal_sd: 0.05", "proposal_sd: 0.050"),
    "times at another budget": edit(CONFIG, "timed_at_epsilon: 4", "timed_at_epsilon: 5"),
    "another guess of time": edit(
        CONFIG, "halton\n          seconds: 1", "halton\n          seconds: 30"
    ),
    "measured costs": edit("config/costs.yaml", "start_up: 0.65", "start_up: 6.5"),
    "a docstring": other_start(MODEL, '"""', '"""Other words. '),
    "the layout of claims": other_start(CLAIMS, "", "# Another comment.\n\n"),
    "a comment in a script": edit(SCRIPT, FIRST_IMPORT, f"{FIRST_IMPORT}\n# A comment.\n"),
    # Neither the locks nor what the scripts share are part of any result.
    "what carries settings": line_added("src/dpmc_papers/pipeline/jobs.py"),
    "how runs are kept apart": line_added("src/dpmc_papers/pipeline/folders.py"),
    "how scripts write files": line_added("workflow/scripts/_job.py"),
    "new files that nothing uses": new_files,
    "new dates": touched,
}


def test_what_is_part_of_no_result_reruns_nothing(tiny: Project) -> None:
    assert what_reruns(tiny, HARMLESS) == {}


def test_a_change_among_others_is_found(tiny: Project) -> None:
    """That of the code of a script, which is part of all that it makes."""
    code = edit(SCRIPT, FIRST_IMPORT, f"{FIRST_IMPORT}NEW = 1\n")
    found = what_reruns(tiny, {"costs": HARMLESS["measured costs"], "code": code})
    assert found == {"code": chains() | METRICS | SHOWN | ALL_SETTINGS}


def chain_of(project: Project) -> Path:
    folder = project.folder / "results" / "tiny" / PAPER
    (chain,) = folder.glob("chains/comparison/plane/dp_hmc/eps=4-*/0-1.parquet")
    return chain


LOST = {
    "records of Snakemake": lambda tiny: without(tiny.folder / ".snakemake"),
    "logs": lambda tiny: without(tiny.folder / "results" / "tiny" / PAPER / "logs"),
    "benchmarks": lambda tiny: without(tiny.folder / "results" / "tiny" / PAPER / "benchmarks"),
    # Nobody asks for a chain once its metrics are there.
    "a chain": lambda tiny: lost(chain_of(tiny)),
}


def test_what_may_be_lost_reruns_nothing(tiny: Project) -> None:
    assert what_reruns(tiny, LOST) == {}


def test_without_records_a_change_makes_the_same_jobs(tiny: Project) -> None:
    other = edit(CONFIG, "proposal_sd: 0.05", "proposal_sd: 0.06")
    with without(tiny.folder / ".snakemake"), other(tiny):
        found = jobs(tiny)
    assert found == chains(("dp_penalty",)) | METRICS | SHOWN | ALL_SETTINGS


def test_other_names_of_the_folder_and_other_batches_rerun_nothing(tiny: Project) -> None:
    name = f"results_dir=.././{tiny.folder.name}/results/"
    assert tiny.planned(config=(*TINY, name, "seeds_per_job=1")) == []


def test_other_batches_of_chains_that_are_gone_rerun_nothing(tiny: Project) -> None:
    """How replicates are divided among files is no reason to measure them again."""
    with without(tiny.folder / "results" / "tiny" / PAPER / "chains"):
        assert tiny.planned(config=(*TINY, "seeds_per_job=1")) == []


@contextmanager
def changed(path: Path) -> Iterator[None]:
    """Give a file other contents for a while: those that are the same count as no change."""
    content, stat = path.read_bytes(), path.stat()
    path.write_bytes(content + b" ")
    try:
        yield
    finally:
        path.write_bytes(content)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_dates_count_where_an_option_forces_jobs_and_not_where_it_looks_alike(
    tiny: Project,
) -> None:
    by_dates = ("--rerun-triggers", "mtime")
    with changed(chain_of(tiny)):
        for option in ("--force-use-threads", "-sSnakefile", "-p"):
            assert tiny.planned(option, *by_dates, config=TINY) == [], option
        for options in (("-pR", "accounting"), ("--forcer=accounting",)):
            assert set(tiny.planned(*options, *by_dates, config=TINY)) >= METRICS, options


def test_another_folder_of_results_has_nothing(tiny: Project) -> None:
    elsewhere = set(tiny.planned(config=(*TINY, "results_dir=other")))
    assert elsewhere >= {"rows of plane"} | SAMPLES | chains() | METRICS | SHOWN


def test_an_added_epsilon_runs_alone(tiny: Project) -> None:
    with tiny.edited(CONFIG, "epsilons: [2, 4]", "epsilons: [2, 4, 8]"):
        found = jobs(tiny)
    assert found == chains(epsilons=(8,)) | METRICS | SHOWN | ALL_SETTINGS


def test_added_seeds_run_alone(tiny: Project) -> None:
    with tiny.edited(CONFIG, "replicates: 2", "replicates: 4"):
        found = jobs(tiny)
    assert found == chains(replicates="2 to 3") | METRICS | SHOWN | ALL_SETTINGS


def test_one_more_seed_runs_alone(tiny: Project) -> None:
    """Although batches of two do not divide three."""
    with tiny.edited(CONFIG, "replicates: 2", "replicates: 3"):
        found = jobs(tiny)
    assert found == chains(replicates="2 to 2") | METRICS | SHOWN | ALL_SETTINGS


def test_an_epsilon_of_one_method_runs_alone(tiny: Project) -> None:
    method = "method: dp_hmc\n"
    with tiny.edited(CONFIG, method, f"{method}          epsilons: [2, 4, 8]\n"):
        found = jobs(tiny)
    assert found == chains(("dp_hmc",), (8,)) | METRICS | SHOWN | ALL_SETTINGS


def test_another_seed_of_the_paper_reruns_all_of_it(tiny: Project) -> None:
    with tiny.edited(CONFIG, "seed: 1\n", "seed: 2\n"):
        found = jobs(tiny)
    made = {"rows of plane"} | SAMPLES | chains() | METRICS
    assert found == made | SHOWN | ALL_SETTINGS


def test_a_figure_that_is_asked_for_by_its_path_is_never_stale(tiny: Project) -> None:
    """Although it exists, and of what it is made from only the file of settings is missing."""
    target = f"results/tiny/{PAPER}/figure1.png"
    assert tiny.planned(target, config=TINY) == []
    with tiny.edited(CONFIG, "proposal_sd: 0.05", "proposal_sd: 0.06"):
        found = set(tiny.planned(target, config=TINY))
    assert found >= chains(("dp_penalty",)) | METRICS | settings("figure1")


def test_a_style_of_figures_redraws(tiny: Project) -> None:
    with tiny.edited("src/dpmc_papers/plots/style.py", FUTURE, f"{FUTURE}NEW = 1\n"):
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
    assert found == SAMPLES | chains() | METRICS | SHOWN | ALL_SETTINGS


def test_an_edited_method_reruns_its_chains(tiny: Project) -> None:
    with tiny.edited("src/dpmc/mcmc/methods/dp_penalty.py", FUTURE, f"{FUTURE}NEW = 1\n"):
        found = jobs(tiny)
    assert found == chains(("dp_penalty",)) | METRICS | SHOWN | ALL_SETTINGS


def test_another_claim_is_judged_alone(tiny: Project) -> None:
    with tiny.edited(f"config/published/{PAPER}.yaml", "high: 2", "high: 3"):
        found = jobs(tiny)
    assert found == {f"verdicts on {PAPER}"} | END | settings("verdict", "page")


def test_a_lost_table_is_written_alone_and_a_lost_chain_if_it_is_needed(tiny: Project) -> None:
    """Both a chain and its metrics are made where neither is there."""
    folder = tiny.folder / "results" / "tiny" / PAPER
    with lost(folder / "budget.csv"):
        assert jobs(tiny) == {f"table budget of {PAPER}"} | END
    (measured,) = folder.glob("metrics/comparison/plane-*.parquet")
    with lost(chain_of(tiny)), lost(measured), lost(folder / "budget.csv"):
        found = jobs(tiny)
    assert found == chains(("dp_hmc",), (4,)) | METRICS | SHOWN


def test_what_follows_a_forced_job_is_made_and_so_is_what_is_missing(tiny: Project) -> None:
    folder = tiny.folder / "results" / "tiny" / PAPER
    forced = set(tiny.planned("--forcerun", "figure", config=TINY))
    assert forced == {f"figure1 of {PAPER}"} | END
    with lost(folder / "budget.csv"):
        forced = set(tiny.planned("--forcerun", "figure", config=TINY))
        assert forced == OUTPUTS | END
        forced = set(tiny.planned("-R", "baseline", config=TINY))
        followed = SHOWN - {f"guarantees in {PAPER}"}
        assert forced == {"metrics of exact samples of plane"} | followed


def test_a_result_that_is_made_by_its_path_ends_the_record_of_older_ones(
    tiny: Project, tmp_path: Path
) -> None:
    """What says which commit made it, and the pages that show this."""
    clone = copy_tiny(tmp_path / "clone")
    shutil.copytree(tiny.folder / "results", clone.folder / "results")
    target = f"results/tiny/{PAPER}/budget.csv"
    before = (clone.folder / target).read_bytes()
    (clone.folder / target).unlink()
    done = clone.snakemake(target, config=TINY)
    assert done.returncode == 0, done.stdout
    assert (clone.folder / target).read_bytes() == before
    assert not (clone.folder / target).with_name("provenance.json").exists()
    assert jobs(clone) == END


def test_a_helper_of_scripts_is_part_of_what_they_make(tiny: Project) -> None:
    """Of all that reads metrics; nothing before them."""
    with tiny.edited("workflow/scripts/_context.py", FUTURE, f"{FUTURE}NEW = 1\n"):
        found = jobs(tiny)
    assert found == SHOWN | ALL_SETTINGS


def test_what_scripts_import_is_part_of_what_they_make(tiny: Project) -> None:
    """How tables are added to, of metrics; how they are laid out, of tables alone."""
    with line_added("src/dpmc_papers/pipeline/run_parts.py")(tiny):
        assert jobs(tiny) == METRICS | SHOWN | ALL_SETTINGS
    with line_added("src/dpmc_papers/outputs/_layout.py")(tiny):
        assert jobs(tiny) == {f"table budget of {PAPER}"} | END | settings("budget", "page")


def scramble(folder: Path, seed: int) -> None:
    """Give all files random dates, as copies have that come over a network in any order."""
    rng = random.Random(seed)
    for path in sorted(folder.rglob("*")):
        date = 1e9 + rng.randrange(10**8)
        os.utime(path, (date, date))


def test_copies_of_any_dates_are_as_good(tiny: Project, tmp_path: Path) -> None:
    """Of results, their records aside: what a browser, rsync or git leaves of them."""
    clone = copy_tiny(tmp_path / "clone")
    shutil.copytree(tiny.folder / "results", clone.folder / "results")
    for seed in range(2):
        scramble(clone.folder / "results", seed)
        assert jobs(clone) == set()
    with clone.edited(CONFIG, "proposal_sd: 0.05", "proposal_sd: 0.06"):
        assert jobs(clone) == chains(("dp_penalty",)) | METRICS | SHOWN | ALL_SETTINGS


def test_a_run_that_is_killed_between_settings_and_output_leaves_no_old_output(
    tiny: Project, tmp_path: Path
) -> None:
    """Settings remove what answered others, so that no date and no record is needed."""
    clone = copy_tiny(tmp_path / "clone")
    shutil.copytree(tiny.folder / "results", clone.folder / "results")
    folder = clone.folder / "results" / "tiny"
    with clone.edited(CONFIG, "proposal_sd: 0.05", "proposal_sd: 0.06"):
        done = clone.snakemake("--until", "request", config=TINY)
        assert done.returncode == 0, done.stdout
        shutil.rmtree(clone.folder / ".snakemake")
        assert not (folder / PAPER / "figure1.png").exists()
        scramble(folder, 0)
        assert jobs(clone) == chains(("dp_penalty",)) | METRICS | SHOWN


def test_a_fresh_clone_on_finished_results_has_nothing_to_do(tiny: Project, tmp_path: Path) -> None:
    """Its files are newer than all results, and no records of earlier runs are there."""
    clone = copy_tiny(tmp_path / "clone")
    for path in clone.folder.rglob("*"):
        path.touch()
    shutil.copytree(tiny.folder / "results", clone.folder / "results")
    assert jobs(clone) == set()


def test_another_version_of_a_package_reruns_what_rests_on_it(
    tiny: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version that is installed decides, as its metadata tell."""
    metadata = tmp_path / "scipy-9.9.9.dist-info"
    metadata.mkdir()
    text = "Metadata-Version: 2.1\nName: scipy\nVersion: 9.9.9\n"
    (metadata / "METADATA").write_text(text, encoding="utf-8")
    path = os.pathsep.join([str(tiny.folder / "src"), str(tmp_path)])
    monkeypatch.setattr(Project, "environment", lambda self: {**os.environ, "PYTHONPATH": path})
    assert jobs(tiny) >= chains() | METRICS | {"figure1 of raisa2021dphmc"}


def test_a_caption_is_shown_on_its_page_alone(tiny: Project) -> None:
    path = tiny.folder / "workflow/report/figure1.rst"
    first = path.read_text(encoding="utf-8").splitlines()[0]
    with tiny.edited("workflow/report/figure1.rst", first, f"In other words, {first}"):
        found = jobs(tiny)
    assert found == END | settings("page")


def test_errata_and_styles_redo_pages_alone(tiny: Project) -> None:
    front = {"all results are there", "code of the site", "front page at scale tiny"}
    with tiny.edited("docs/errata.md", "For a reader of the papers.", "For readers."):
        assert jobs(tiny) == front
    with tiny.edited("workflow/scripts/build_site.py", FIRST_IMPORT, f"{FIRST_IMPORT}NEW = 1\n"):
        assert jobs(tiny) == front
    with tiny.edited("workflow/scripts/page.py", FIRST_IMPORT, f"{FIRST_IMPORT}NEW = 1\n"):
        assert jobs(tiny) == END | settings("page")
    style = tiny.folder / "docs/static/results.css"
    first = style.read_text(encoding="utf-8").splitlines()[0]
    first += "\n" + style.read_text(encoding="utf-8").splitlines()[1]
    with tiny.edited(str(style.relative_to(tiny.folder)), first, f"/* New. */ {first}"):
        found = jobs(tiny)
    assert found == front | END | settings("page")


def test_a_new_accountant_may_be_tighter_and_reruns_what_has_a_budget(tiny: Project) -> None:
    folder = tiny.folder / "src/dpmc/privacy/accountants"
    path = folder / "another.py"
    shutil.copy2(folder / "rdp.py", path)
    try:
        assert chains() <= jobs(tiny)
    finally:
        path.unlink()


def test_the_file_of_results_is_read_by_all(tiny: Project) -> None:
    """How files are written is code of every result."""
    with tiny.edited("src/dpmc_papers/pipeline/store.py", FUTURE, f"{FUTURE}NEW = 1\n"):
        found = jobs(tiny)
    assert found >= {"rows of plane"} | SAMPLES | chains() | METRICS | OUTPUTS | JUDGED


def test_a_dry_run_writes_nothing(tiny: Project) -> None:
    def there() -> dict[Path, int]:
        found = (tiny.folder / "results").rglob("*")
        return {path: path.stat().st_mtime_ns for path in found}

    before = there()
    with tiny.edited(CONFIG, "seed: 1\n", "seed: 2\n"):
        assert jobs(tiny)
    assert there() == before
