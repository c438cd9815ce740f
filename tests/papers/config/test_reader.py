"""The configuration: what is refused and how."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from dpmc import yaml_files
from dpmc.types import DpmcError
from dpmc_papers.config import reader
from tests.support.papers import (
    KEY,
    ROOT,
    SCALES,
    THESIS,
    experiment,
    load,
    load_changed,
    method,
    refused,
    small_paper,
    small_project,
)


def start(paper: dict[str, Any]) -> dict[str, Any]:
    return paper["problems"]["line"]["start"]  # type: ignore[no-any-return]


PARAMS = "experiments.main.methods.line.dp_penalty.params"


def line(paper: dict[str, Any]) -> dict[str, Any]:
    return paper["problems"]["line"]  # type: ignore[no-any-return]


def counted(paper: dict[str, Any]) -> dict[str, Any]:
    return paper["accounting"]["counts"]["settings"]["dp_penalty"]  # type: ignore[no-any-return]


def said_so(told: str, message: str) -> None:
    """Check a line, of which ``.*`` stands for a part that does not matter."""
    pattern = re.escape(told).replace(r"\.\*", ".*")
    assert re.search(pattern, message), message
    assert "\n" not in message


def test_the_small_paper_is_accepted(tmp_path: Path) -> None:
    root = small_project(tmp_path, small_paper())
    config = reader.load_config(
        {"papers": "raisa2021dphmc", "scale": "full", "results_dir": "r/"}, root
    )
    assert list(config.papers) == ["raisa2021dphmc"]
    assert config.results_dir == "r"


@pytest.mark.parametrize("paper", [KEY, THESIS])
@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_of_the_repository_is_accepted(scale: str, paper: str) -> None:
    assert load(scale, paper).scale == scale
    assert reader.scales(ROOT) == tuple(sorted(SCALES))


def test_the_published_settings_are_those_of_the_authors() -> None:
    """Facts of the paper and its code: tau sqrt(n) with n = 1e5 becomes a noise multiplier."""
    paper = load("paper").papers[KEY].plain()
    methods = paper["experiments"]["comparison"]["methods"]
    assert paper["experiments"]["comparison"]["epsilons"] == [2, 4, 6, 8, 10, 12, 15]
    banana, gauss = methods["paper_banana_2d"], methods["paper_gauss_10d"]
    root_n = 1e5**0.5
    taus = {
        ("dp_penalty", "ratio_noise_multiplier"): (0.17, 0.05),
        ("dp_hmc", "ratio_noise_multiplier"): (0.1, 0.1),
        ("dp_hmc", "gradient_noise_multiplier"): (0.55, 0.25),
    }
    for (label, key), (first, second) in taus.items():
        assert banana[label]["params"][key] == pytest.approx(first * root_n, rel=1e-12)
        assert gauss[label]["params"][key] == pytest.approx(second * root_n, rel=1e-12)
    for problem in paper["problems"].values():
        assert problem["delta"] == pytest.approx(0.1 / problem["data"]["params"]["num_rows"])


TAUS = {
    # Settings of 23 February 2021: DP-penalty, the same with OCU and GWMH, DP-HMC (ratio and
    # gradient), minibatch penalty, the same with OCU and GWMH; then those of the final code.
    "flat_banana_2d": (0.1, 0.1, 0.1, 0.4, 0.9, 0.9),
    "flat_banana_10d": (0.1, 0.1, 0.05, 0.2, 0.6, 0.6),
    "tempered_banana_2d": (0.2, 0.2, 0.2, 0.6, 1.9, 2.0),
    "tempered_banana_10d": (0.18, 0.1, 0.08, 0.2, 1.0, 1.6),
    "gauss_30d": (0.06, 0.2, 0.05, 0.1),
    "narrow_banana_2d": (0.2, 0.2, 0.15, 0.25),
    "corr_gauss_2d": (0.07, 0.1, 0.05, 0.2),
    "circle": (4, 4, 0.6, 1.9),
    "flat_banana_2d_final": (0.1, 0.1, 0.1, 0.4, 0.7, 0.7),
    "flat_banana_10d_final": (0.1, 0.1, 0.05, 0.2, 0.6, 0.5),
    "tempered_banana_2d_final": (0.2, 0.2, 0.2, 0.6, 1.5, 2.0),
    "tempered_banana_10d_final": (0.18, 0.1, 0.08, 0.2, 0.7, 0.8),
    "gauss_30d_final": (0.06, 0.2, 0.05, 0.1),
    "narrow_banana_2d_final": (0.2, 0.1, 0.15, 0.25),
    "corr_gauss_2d_final": (0.07, 0.1, 0.05, 0.2),
    "circle_final": (4, 4, 0.6, 1.9),
}


@pytest.mark.parametrize("problem", TAUS)
def test_noise_of_the_thesis_is_that_of_its_code(problem: str) -> None:
    paper = load("paper", THESIS).papers[THESIS].plain()
    methods = paper["experiments"]["final" if problem.endswith("_final") else "text"]["methods"]
    labels = ["dp_penalty", "dp_penalty_ocu_gwmh", "dp_hmc", "dp_hmc"]
    keys = ["ratio_noise_multiplier"] * 3 + ["gradient_noise_multiplier"]
    root_n = paper["problems"][problem]["data"]["params"]["num_rows"] ** 0.5
    for label, key, tau in zip(labels, keys, TAUS[problem], strict=False):
        found = methods[problem][label]["params"][key]
        assert found == pytest.approx(tau * root_n, rel=1e-12)
    # The final settings are run as published alone.
    factors = (
        {"as_published": 3} if problem.endswith("_final") else {"as_published": 3, "corrected": 2}
    )
    for kind, tau in zip(("", "_ocu_gwmh"), TAUS[problem][4:], strict=False):
        for variant, factor in factors.items():
            params = methods[problem][f"minibatch_penalty{kind}-{variant}"]["params"]
            assert params["ratio_noise_multiplier"] == pytest.approx(tau**0.5, rel=1e-12)
            assert params["variance_factor"] == factor
            assert bool(params.get("guided")) == bool(kind)
    found = [label for label in methods[problem] if label.startswith("minibatch")]
    assert len(found) == len(TAUS[problem][4:]) * len(factors)


def test_both_versions_of_the_thesis_differ_in_what_their_code_does() -> None:
    paper = load("paper", THESIS).papers[THESIS].plain()
    problems, experiments = paper["problems"], paper["experiments"]
    text, final = (experiments[name]["methods"] for name in ("text", "final"))
    assert [f"{name}_final" for name in text] == list(final)
    for name, methods in text.items():
        old, new = problems[name], problems[f"{name}_final"]
        assert old["start"] != new["start"]
        # Rows that an earlier version drew in single precision.
        width = {"threefry_width": 32} if name == "gauss_30d" else {}
        assert old["data"]["params"] == {**new["data"]["params"], **width}
        assert {**old, "start": None, "data": None} == {**new, "start": None, "data": None}
        assert methods["dp_hmc"]["params"]["reuse_gradient"] is True
        assert final[f"{name}_final"]["dp_hmc"]["params"]["reuse_gradient"] is False
        for entry in [*methods.values(), *final[f"{name}_final"].values()]:
            walks = entry["params"].get("one_component"), entry["params"].get("guided")
            assert walks in ((None, None), (True, True))
    for problem in problems.values():
        rows = problem["data"]["params"]["num_rows"]
        assert problem["delta"] == pytest.approx(0.1 / rows, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda p: p.update(sed=1), "`sed` must be a key (accounting, .*) (did you mean seed?)"),
        (lambda p: p.pop("seed"), "`seed` must be given"),
        (lambda p: p.update(paper="other"), "`paper` must be 'raisa2021dphmc', .*, got 'other'"),
        (lambda p: line(p).update(delta=1), "`problems.line.delta` must be a number .*, got 1"),
        (lambda p: line(p).pop("delta"), "`problems.line.delta` must be given beside model"),
        (lambda p: p.pop("reference"), "`reference` must be given beside experiments"),
        (
            lambda p: experiment(p).update(epsilons=[1, 0]),
            "epsilons.1` must be a number > 0, got 0",
        ),
        (lambda p: experiment(p).update(epsilons=[1, 1.0]), "must be a list of different numbers"),
        (
            lambda p: experiment(p).update(replicates=0),
            "replicates` must be an integer from 1 to 100000, got 0",
        ),
        (
            lambda p: experiment(p).update(methods={}),
            "methods` must be a mapping that is not empty",
        ),
        (lambda p: experiment(p).pop("epsilons"), "epsilons` must be given here or in the exper"),
        (lambda p: method(p)["params"].update(ratio_clip_bound=0), f"{PARAMS}: .*clip_bound.* 0"),
        (
            lambda p: method(p)["params"].update(ratio_clip_bond=1),
            f"{PARAMS}: `ratio_clip_bond` must be a parameter .* (did you mean ratio_clip_bound?)",
        ),
        (
            lambda p: method(p)["params"].pop("proposal_sd"),
            "`proposal_sd` must be given to dp_penal",
        ),
        (
            lambda p: method(p).update(method="dp_penlty"),
            ".method` must be one of dp_barker, .*, got 'dp_penlty' (did you mean dp_penalty?)",
        ),
        (lambda p: method(p).update(num_iterations=5), "either an accountant or num_iterations"),
        (
            lambda p: method(p, "rwmh")["grid"].update(clip=[1]),
            "`clip` must be a parameter of rwmh",
        ),
        (
            lambda p: method(p, "rwmh")["params"].update(ratio_clip_bound=1),
            "grid.ratio_clip_bound` must be left out, being in params",
        ),
        (
            lambda p: experiment(p)["methods"].update(curve={"a": method(p)}),
            "methods` must be one of line, got 'curve'",
        ),
        (lambda p: line(p)["model"].update(name="circl"), ".model.name` must be .*, got 'circl'"),
        (lambda p: line(p)["data"]["params"].update(num_rows=0), "data.params: .*num_rows.* 0"),
        (
            lambda p: p["outputs"]["figure1"].update(metrics=["man"]),
            ".metrics` must be one of main, got 'man' (did you mean main?)",
        ),
        (lambda p: p["outputs"]["figure1"].update(kind="film"), "one of figure, table, got 'film'"),
        (
            lambda p: start(p).update(rule="near"),
            "start.rule` must be one of around, .* got 'near'",
        ),
        (lambda p: start(p).pop("scale"), "start.scale` must be given with rule around_truth"),
        (lambda p: start(p).update(centre=[0]), "start.centre` must be left out, .* around_truth"),
        (lambda p: start(p).update(rule="around"), "start.centre` must be given with rule around"),
        (lambda p: start(p).update(rule="at_truth"), "since rule at_truth takes nothing else"),
        (lambda p: start(p).update(scale="near"), "a number > 0 or the word reference, got 'near'"),
        (lambda p: method(p).update(max_iterations=0), "max_iterations` must be an integer >= 1"),
        (
            lambda p: counted(p).update(accountants=["magic"]),
            "accountants` must be .*, got 'magic'",
        ),
        (
            lambda p: counted(p).update(epsilon=1),
            "`epsilon` must be a key of accounting.counts.sett",
        ),
        (lambda p: p["accounting"]["counts"].pop("num_rows"), "counts.num_rows` must be given"),
        (
            lambda p: p["outputs"]["figure2"].update(accounting=["c"]),
            "accounting` must be one of co",
        ),
        (
            lambda p: p["outputs"]["figure2"].update(
                chains={"experiment": "main", "problem": "curve", "point": "last"}
            ),
            "chains.problem` must be one of line, got 'curve'",
        ),
    ],
)
def test_bad_settings_are_refused_in_one_line(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], told: str
) -> None:
    message = refused(tmp_path, change)
    said_so(told, message)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"scale": "tiny"}, "`scale` must be one of paper, quick, smoke, got 'tiny'"),
        (
            {"papers": ["nobody"]},
            f"`papers` must be one of alparslan2023thesis, league, {KEY}, {THESIS}",
        ),
        ({"papers": []}, "`papers` must be a list of keys of config/papers, got []"),
        ({"cores": 2}, "`cores` must be a key (papers, "),
    ],
)
def test_bad_choices_are_refused_in_one_line(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(DpmcError) as caught:
        load_changed(**changes)
    said_so(told, str(caught.value))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\na: 2\n", "line 2, key 'a' is given twice"),
        ("a: &a {b: 1}\nc:\n  <<: *a\n  d: 1\n  d: 2\n", "line 5, key 'd' is given twice"),
        ("a: [1\n", "line 2"),
        ("- 1\n", "must be a mapping, got a list"),
        ("a: 1\n\0", "line 2, must hold no control character, got U\\+0000"),
        ("a: 1\n? [b, c]\n: 1\n", "line 2, a key must be a text or a number"),
        ("a: 2026-02-30\n", "values that YAML can read, got day is out of range for month"),
        ("a: &a [*a]\n", "values that YAML can read, got Circular reference detected"),
        ("a: !!timestamp x\n", "values that YAML can read"),
    ],
)
def test_bad_yaml_is_refused_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DpmcError, match=told):
        yaml_files.read_yaml(path)
    with pytest.raises(DpmcError, match="No such file"):
        yaml_files.read_yaml(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("encoding", "line"), [("latin-1", 2), ("utf-16", 1), ("cp1252", 2), ("utf-32", 1)]
)
def test_text_that_is_not_utf_8_is_refused_with_its_line(
    tmp_path: Path, encoding: str, line: int
) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes("a: 1\nb: größe\n".encode(encoding))
    with pytest.raises(DpmcError, match=f"line {line}, must be text in UTF-8, got other bytes"):
        yaml_files.read_yaml(path)
    path.write_bytes("a: 1\r\nb: größe\r\n".encode("utf-8-sig"))
    assert yaml_files.read_yaml(path) == {"a": 1, "b": "größe"}


def test_whatever_bytes_a_file_holds_it_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    text = (ROOT / "config" / "config.yaml").read_bytes() + b"m: {a: [1, &x {b: 1.5}], c: *x}\n"
    rng = np.random.default_rng(0)
    special = np.frombuffer(b"!&*{}[]:?-<|>%@`'\"#,\t\n\x00\xff\xfe", dtype=np.uint8)
    path, told = tmp_path / "a.yaml", []
    for _ in range(500):
        damaged = np.frombuffer(text, dtype=np.uint8).copy()
        places = rng.integers(len(damaged), size=3)
        damaged[places] = rng.choice(np.append(special, rng.integers(256, size=9)), 3)
        path.write_bytes(damaged.tobytes())
        try:
            yaml_files.read_yaml(path)
        except DpmcError as error:
            told.append(str(error))
    assert 100 < len(told) < 500
    assert not any("\n" in line for line in told)


def test_what_a_merge_key_adds_may_be_given_again(tmp_path: Path) -> None:
    """The reader builds outer mappings first: `b`, then what it merges, nested deeper."""
    path = tmp_path / "a.yaml"
    text = "x: {y: {a: &a {k: 1, m: 1}, b: &b {<<: *a, k: 2}}}\nc: {<<: *b, k: 3}\n"
    path.write_text(text, encoding="utf-8")
    values = yaml_files.read_yaml(path)
    assert values["c"] == {"k": 3, "m": 1}
    assert values["x"]["y"] == {"a": {"k": 1, "m": 1}, "b": {"k": 2, "m": 1}}


def test_merge_replaces_adds_and_removes_and_changes_neither_side() -> None:
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 1}
    overlay = {"a": {"c": [3], "e": 2}, "d": None}
    before = copy.deepcopy((base, overlay))
    assert reader.merge(base, overlay, "here") == {"a": {"b": 1, "c": [3], "e": 2}}
    assert (base, overlay) == before
    with pytest.raises(DpmcError, match=r"`key` must be one of b, c, to be .*, got 'x'"):
        reader.merge(base, {"a": {"x": None}}, "here")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda s: s.update(study="recession"),
            "study` must be one of league, .*, got 'recession' (did you mean regression?)",
        ),
        (lambda s: s["problems"].append("nowhere"), "problems` must be one of .*, got 'nowhere'"),
        (
            lambda s: s.update(together=["dim"]),
            "together` must be one of epsilon, num_nodes, got 'dim'",
        ),
        (lambda s: s["grid"].update(num_nodes=[0]), "J=0: .*num_nodes.* 0"),
        (
            lambda s: s["methods"].update(x={"method": "dp_hmc", "variant": "v"}),
            "methods.x.method` must be one of .*, got 'dp_hmc'",
        ),
        (
            lambda s: s["methods"]["ols"].update(params={"burn_in": 1}),
            "params.burn_in` must be left out, being in params",
        ),
        (
            lambda s: s["params"].update(burnin=5),
            "params.burnin` must be a parameter of regression .* (did you mean burn_in?)",
        ),
        (lambda s: s["params"].update(burn_in=-1), "burn_in.* -1"),
        # YAML reads 1e3 as text.
        (lambda s: s["params"].update(burn_in="1e3"), "burn_in` must be an integer, got '1e3'"),
        (lambda s: s["params"].update(burn_in=10.5), "burn_in` must be an integer, got 10.5"),
        (lambda s: s["grid"].update(epsilon=[-1]), "epsilon.* -1"),
        (
            lambda s: s["methods"]["ols"].update(params={"rho": 1}),
            "params.rho` must be a parameter of ols",
        ),
    ],
)
def test_bad_studies_are_refused_in_one_line(
    change: Callable[[Any], None], told: str, tmp_path: Path
) -> None:
    paper = yaml.safe_load((ROOT / "config/papers/alparslan2023thesis.yaml").read_text("utf-8"))
    paper.update(paper="raisa2021dphmc")
    change(paper["studies"]["real_data"])
    folder = small_project(tmp_path, paper)
    with pytest.raises(DpmcError) as caught:
        reader.load_config(
            {"papers": ["raisa2021dphmc"], "scale": "full", "results_dir": "r"}, folder
        )
    said_so(told, str(caught.value))
