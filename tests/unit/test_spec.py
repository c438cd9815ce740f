"""The configuration: what is refused and how, and the jobs that it becomes."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpmc import registry, spec
from dpmc.digest import module_names
from dpmc.spec import Config
from dpmc.types import DpmcError
from dpmc.workload import Workload

ROOT = Path(__file__).parents[2]
KEY = "raisa2021dphmc"
SCALES = ("smoke", "quick", "paper")


def load(scale: str = "paper", **changes: Any) -> Config:
    values = {"papers": [KEY], "scale": scale, "results_dir": "results", **changes}
    return spec.load_config(values, ROOT)


def with_paper(config: Config, change: Callable[[dict[str, Any]], None]) -> Config:
    paper = copy.deepcopy(config.papers[KEY])
    change(paper)
    return replace(config, papers={KEY: paper})


def small_project(folder: Path, paper: dict[str, Any]) -> Path:
    """Write a project whose only paper is `paper`."""
    for name in ("papers", "scales"):
        (folder / "config" / name).mkdir(parents=True)
    (folder / "workflow").mkdir()
    (folder / "workflow" / "schemas").symlink_to(ROOT / "workflow" / "schemas")
    scale = {"seeds_per_job": 2, "seconds_per_job": 60, "papers": {}}
    (folder / "config/scales/full.yaml").write_text(yaml.safe_dump(scale), encoding="utf-8")
    text = yaml.safe_dump(paper, allow_unicode=True)
    (folder / "config/papers/small.yaml").write_text(text, encoding="utf-8")
    return folder


def small_paper() -> dict[str, Any]:
    return {
        "paper": "small",
        "title": "T",
        "authors": "A",
        "year": 2021,
        "seed": 1,
        "timed_at_epsilon": 15,
        "reference": {"num_draws": 10, "num_baselines": 2},
        "problems": {
            "line": {
                "label": "Line",
                "data": {
                    "name": "gaussian_rows",
                    "params": {"num_rows": 10, "mean": [0.0], "covariance": [[1.0]]},
                },
                "model": {
                    "name": "gaussian_mean",
                    "params": {"dim": 1, "covariance": [[1.0]], "prior_variance": 1.0},
                },
                "start": {"rule": "around_truth", "scale": "reference"},
                "delta": 1.0e-6,
            }
        },
        "experiments": {
            "main": {
                "num_chains": 2,
                "replicates": 4,
                "epsilons": [1, 2],
                "methods": {
                    "line": {
                        "dp_penalty": {
                            "method": "dp_penalty",
                            "variant": "as_published",
                            "accountant": "gaussian",
                            "params": {
                                "proposal_sd": 0.1,
                                "clip_bound": 1.0,
                                "noise_multiplier": 5.0,
                            },
                        },
                        "rwmh": {
                            "method": "rwmh",
                            "variant": "as_published",
                            "num_iterations": 10,
                            "params": {"proposal_sd": 0.1},
                            "grid": {"clip_bound": [0.5, 1]},
                        },
                    }
                },
            }
        },
        "outputs": {
            "figure1": {
                "kind": "figure",
                "function": "figure1",
                "metrics": ["main"],
                "caption": "figure1.rst",
            }
        },
    }


def refused(tmp_path: Path, change: Callable[[dict[str, Any]], Any]) -> str:
    """Return the message with which a changed paper is refused."""
    paper = small_paper()
    change(paper)
    root = small_project(tmp_path, paper)
    with pytest.raises(DpmcError) as caught:
        spec.load_config({"papers": ["small"], "scale": "full", "results_dir": "r"}, root)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{root}/config/papers/small.yaml (scale full): ")
    return message.partition(": ")[2]


def experiment(paper: dict[str, Any]) -> dict[str, Any]:
    return paper["experiments"]["main"]  # type: ignore[no-any-return]


def method(paper: dict[str, Any], label: str = "dp_penalty") -> dict[str, Any]:
    return experiment(paper)["methods"]["line"][label]  # type: ignore[no-any-return]


def test_the_small_paper_is_accepted(tmp_path: Path) -> None:
    root = small_project(tmp_path, small_paper())
    config = spec.load_config({"papers": "small", "scale": "full", "results_dir": "r/"}, root)
    assert list(config.papers) == ["small"]
    assert config.results_dir == "r"


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_of_the_repository_is_accepted(scale: str) -> None:
    assert load(scale).scale == scale
    assert spec.scales(ROOT) == tuple(sorted(SCALES))


def test_the_published_settings_are_those_of_the_authors() -> None:
    """Facts of the paper and its code: tau sqrt(n) with n = 1e5 becomes a noise multiplier."""
    paper = load("paper").papers[KEY]
    methods = paper["experiments"]["comparison"]["methods"]
    assert paper["experiments"]["comparison"]["epsilons"] == [2, 4, 6, 8, 10, 12, 15]
    banana, gauss = methods["paper_banana_2d"], methods["paper_gauss_10d"]
    root_n = 1e5**0.5
    taus = {
        ("dp_penalty", "noise_multiplier"): (0.17, 0.05),
        ("dp_hmc", "ratio_noise_multiplier"): (0.1, 0.1),
        ("dp_hmc", "gradient_noise_multiplier"): (0.55, 0.25),
    }
    for (label, key), (first, second) in taus.items():
        assert banana[label]["params"][key] == pytest.approx(first * root_n, rel=1e-12)
        assert gauss[label]["params"][key] == pytest.approx(second * root_n, rel=1e-12)
    for problem in paper["problems"].values():
        assert problem["delta"] == pytest.approx(0.1 / problem["data"]["params"]["num_rows"])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda p: p.update(sed=1), "unknown key 'sed', allowed authors"),
        (lambda p: p.pop("seed"), "seed is missing"),
        (lambda p: p.update(paper="other"), "paper: 'other', allowed 'small'"),
        (lambda p: p["problems"]["line"].update(delta=1), "problems.line.delta: 1, allowed"),
        (lambda p: p["problems"]["line"].update(delta=0), "problems.line.delta: 0, allowed"),
        (lambda p: p["problems"]["line"].update(delta=float("nan")), "allowed a finite number"),
        (lambda p: p["problems"]["line"].update(delta="1e-6"), "'1e-6', allowed a number in"),
        (lambda p: experiment(p).update(epsilons=[1, 0]), "epsilons.1: 0, allowed a number > 0"),
        (lambda p: experiment(p).update(epsilons=[-1]), "epsilons.0: -1, allowed a number > 0"),
        (lambda p: experiment(p).update(epsilons=[float("nan")]), "epsilons.0: nan, allowed"),
        (lambda p: experiment(p).update(epsilons=[float("inf")]), "epsilons.0: inf, allowed"),
        (lambda p: experiment(p).update(epsilons=[1, 1.0]), "allowed a list of different numbers"),
        (lambda p: experiment(p).update(replicates=0), "replicates: 0, allowed an integer >= 1"),
        (lambda p: experiment(p).update(replicates=1.5), "replicates: 1.5, allowed an integer"),
        (lambda p: experiment(p).pop("epsilons"), "epsilons is missing here"),
        (lambda p: method(p)["params"].update(clip_bound=0), "clip_bound: 0, allowed a number > 0"),
        (lambda p: method(p)["params"].update(clip_bound=-2), "clip_bound: -2, allowed"),
        (lambda p: method(p)["params"].update(noise_multiplier=0), "noise_multiplier: 0, allowed"),
        (lambda p: method(p)["params"].update(clip_bond=1), "parameter 'clip_bond', allowed clip"),
        (lambda p: method(p)["params"].pop("proposal_sd"), "parameter 'proposal_sd' is missing"),
        (lambda p: method(p).update(method="dp_penlty"), "method 'dp_penlty', allowed dp_hmc"),
        (lambda p: method(p).update(accountant="magic"), "accountant 'magic', allowed gaussian"),
        (lambda p: method(p).update(num_iterations=5), "either an accountant or num_iterations"),
        (lambda p: method(p, "rwmh").update(epsilons=[1]), "allowed only with an accountant"),
        (lambda p: method(p, "rwmh")["grid"].update(clip_bound=[0]), "clip_bound.0: 0, allowed"),
        (lambda p: method(p, "rwmh")["grid"].update(clip=[1]), "parameter 'clip', allowed clip_b"),
        (lambda p: method(p, "rwmh")["params"].update(clip_bound=1), "allowed in params or in gr"),
        (
            lambda p: experiment(p)["methods"].update(curve={"a": method(p)}),
            "'curve', allowed l",
        ),
        (lambda p: p["problems"]["line"]["model"].update(name="circl"), "model 'circl', allowed"),
        (lambda p: p["problems"]["line"]["data"].update(name="rows"), "data 'rows', allowed"),
        (lambda p: p["outputs"]["figure1"].update(metrics=["man"]), "experiment 'man', allowed m"),
        (lambda p: p["outputs"]["figure1"].update(kind="film"), "'film', allowed figure, table"),
    ],
)
def test_bad_settings_are_refused_in_one_line(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], told: str
) -> None:
    assert told in refused(tmp_path, change)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"scale": "tiny"}, "scale: 'tiny', allowed paper, quick, smoke"),
        ({"papers": ["nobody"]}, f"paper: 'nobody', allowed {KEY}"),
        ({"papers": []}, "papers: [], allowed a list of keys"),
        ({"seeds_per_job": 0}, "seeds_per_job: 0, allowed an integer >= 1"),
        ({"cores": 2}, "unknown key 'cores', allowed papers"),
    ],
)
def test_bad_choices_are_refused_in_one_line(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(DpmcError) as caught:
        load(**changes)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\na: 2\n", "line 2, key 'a' is given twice"),
        ("a: [1\n", "line 2"),
        ("- 1\n", "list, allowed a mapping"),
    ],
)
def test_bad_yaml_is_refused_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DpmcError, match=told):
        spec.read_yaml(path)
    with pytest.raises(DpmcError, match="No such file"):
        spec.read_yaml(tmp_path / "none.yaml")


def test_merge_replaces_adds_and_removes_and_changes_neither_side() -> None:
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 1}
    overlay = {"a": {"c": [3], "e": 2}, "d": None}
    before = copy.deepcopy((base, overlay))
    assert spec.merge(base, overlay, "here") == {"a": {"b": 1, "c": [3], "e": 2}}
    assert (base, overlay) == before
    with pytest.raises(DpmcError, match="here: a: x: null removes it, allowed b, c"):
        spec.merge(base, {"a": {"x": None}}, "here")


@pytest.mark.parametrize("kind", ["method", "model", "data"])
def test_parameters_read_from_the_source_are_those_of_the_class(kind: str) -> None:
    from dataclasses import MISSING, fields

    for name in module_names(spec.KINDS[kind]):
        declared = fields(registry.load(kind, name).Params)
        needed = {
            entry.name
            for entry in declared
            if entry.default is MISSING and entry.default_factory is MISSING
        }
        assert spec.parameters(kind, name) == ({entry.name for entry in declared}, needed)


def test_planning_imports_nothing_heavy() -> None:
    heavy = "{'numba', 'scipy', 'pandas', 'pyarrow', 'arviz', 'dp_accounting', 'matplotlib'}"
    code = f"import sys, dpmc.spec, dpmc.workload; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_paths_say_what_a_job_is() -> None:
    work = Workload(load("paper"), KEY)
    job = next(j for j in work.jobs if (j.label, j.point) == ("dp_penalty", "eps=4"))
    folder = f"results/paper/{KEY}/chains/comparison/paper_banana_2d/dp_penalty"
    assert job.path == f"{folder}/eps=4-{job.digest}/0-9.parquet"
    assert len({j.path for j in work.jobs}) == len(work.jobs)
    assert job.chain["budget"] == {
        "epsilon": 4,
        "delta": 1e-6,
        "accountant": "gaussian",
        "split": "chains",
    }
    clipped = next(j for j in work.jobs if j.experiment == "clipping" and j.label == "hmc")
    assert clipped.point == "clip_bound=0.01"
    assert clipped.chain["params"]["ratio_clip_bound"] == 0.01
    assert clipped.chain["budget"] is None


def test_jobs_do_not_depend_on_batches_order_or_notation() -> None:
    config = load("paper")
    before = {job.path.rpartition("/")[0] for job in Workload(config, KEY).jobs}
    for other in (
        load("paper", seeds_per_job=1),
        with_paper(config, lambda p: p["experiments"]["comparison"].update(replicates=30)),
        with_paper(config, lambda p: p["experiments"]["comparison"]["epsilons"].reverse()),
        with_paper(config, lambda p: p["problems"]["paper_banana_2d"].update(label="Other")),
        with_paper(config, lambda p: p["reference"].update(num_baselines=3)),
    ):
        assert {job.path.rpartition("/")[0] for job in Workload(other, KEY).jobs} == before


def test_batches_cover_every_replicate_once() -> None:
    for size in (1, 3, 10):
        work = Workload(load("paper", seeds_per_job=size), KEY)
        for entry in work.metrics:
            for point in set(entry.points):
                batches = [range(j.first, j.last + 1) for j in entry.jobs if j.point == point]
                replicates = work.paper["experiments"][entry.experiment]["replicates"]
                assert [k for batch in batches for k in batch] == list(range(replicates))
                assert max(map(len, batches)) <= size


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.update(seed=1),
        lambda p: p["reference"].update(num_draws=500),
        lambda p: p["problems"]["paper_banana_2d"]["data"]["params"].update(num_rows=9),
        lambda p: p["problems"]["paper_banana_2d"]["start"].update(scale=0.1),
        lambda p: p["problems"]["paper_banana_2d"].update(delta=1e-7),
        lambda p: p["experiments"]["comparison"].update(num_chains=3),
    ],
)
def test_what_determines_a_result_changes_its_digest(change: Callable[[Any], None]) -> None:
    config = load("paper")

    def digests(config: Config) -> set[str]:
        jobs = Workload(config, KEY).jobs
        return {j.digest for j in jobs if (j.experiment, j.problem) == chosen}

    chosen = ("comparison", "paper_banana_2d")
    assert digests(config).isdisjoint(digests(with_paper(config, change)))


def test_an_output_depends_on_its_own_experiments_alone() -> None:
    config = load("paper")

    def requests(config: Config) -> dict[str, str]:
        return {name: entry.request for name, entry in Workload(config, KEY).outputs.items()}

    before = requests(config)
    after = requests(
        with_paper(config, lambda p: p["experiments"]["clipping"].update(replicates=11))
    )
    touched = {name for name in before if before[name] != after[name]}
    assert touched == {"figure3", "clipping", "verdict", "report"}
