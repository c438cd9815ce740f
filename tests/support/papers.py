"""Configurations that tests change and load."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpmc.types import DpmcError
from dpmc.yaml_files import typed
from dpmc_papers.config import reader
from dpmc_papers.config.reader import Config
from dpmc_papers.config.settings import Paper

ROOT = Path(__file__).parents[2]
KEY = "raisa2021dphmc"
THESIS = "raisa2021thesis"
SCALES = ("smoke", "quick", "paper")


@functools.cache
def load(scale: str = "paper", paper: str = KEY) -> Config:
    """Return the configuration of one paper; nobody changes it in place."""
    return load_changed(scale=scale, papers=(paper,))


def load_changed(**changes: Any) -> Config:
    values = {"papers": [KEY], "scale": "paper", "results_dir": "results", **changes}
    return reader.load_config({**values, "papers": list(values["papers"])}, ROOT)


def with_paper(config: Config, change: Callable[[dict[str, Any]], None]) -> Config:
    """Return `config` with its only paper changed."""
    ((key, paper),) = config.papers.items()
    values = paper.plain()
    change(values)
    return replace(config, papers={key: typed(values, Paper)})


def small_project(folder: Path, paper: dict[str, Any]) -> Path:
    """Write a project whose only paper is `paper`."""
    for name in ("papers", "scales"):
        (folder / "config" / name).mkdir(parents=True)
    scale = {"seeds_per_job": 2, "papers": {}}
    (folder / "config/scales/full.yaml").write_text(yaml.safe_dump(scale), encoding="utf-8")
    text = yaml.safe_dump(paper, allow_unicode=True)
    (folder / "config/papers/raisa2021dphmc.yaml").write_text(text, encoding="utf-8")
    return folder


def small_paper() -> dict[str, Any]:
    return {
        "paper": "raisa2021dphmc",
        "title": "T",
        "authors": "A",
        "year": 2021,
        "seed": 1,
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
                                "ratio_clip_bound": 1.0,
                                "ratio_noise_multiplier": 5.0,
                            },
                        },
                        "rwmh": {
                            "method": "rwmh",
                            "variant": "as_published",
                            "num_iterations": 10,
                            "params": {"proposal_sd": 0.1},
                            "grid": {"ratio_clip_bound": [0.5, 1]},
                        },
                    }
                },
            }
        },
        "accounting": {
            "counts": {
                "delta": 1.0e-6,
                "num_rows": 10,
                "epsilons": [1, 2],
                "settings": {
                    "dp_penalty": {
                        "method": "dp_penalty",
                        "params": {"proposal_sd": 0.1, "ratio_noise_multiplier": 5.0},
                        "accountants": ["gaussian", "zcdp"],
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
            },
            "figure2": {
                "kind": "figure",
                "function": "figure2",
                "data": ["line"],
                "accounting": ["counts"],
                "caption": "figure2.rst",
            },
        },
    }


def refused(tmp_path: Path, change: Callable[[dict[str, Any]], Any]) -> str:
    """Return the message with which a changed paper is refused."""
    paper = small_paper()
    change(paper)
    root = small_project(tmp_path, paper)
    with pytest.raises(DpmcError) as caught:
        reader.load_config(
            {"papers": ["raisa2021dphmc"], "scale": "full", "results_dir": "r"}, root
        )
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{root}/config/papers/raisa2021dphmc.yaml (scale full): ")
    return message.partition(": ")[2]


def experiment(paper: dict[str, Any]) -> dict[str, Any]:
    return paper["experiments"]["main"]  # type: ignore[no-any-return]


def method(paper: dict[str, Any], label: str = "dp_penalty") -> dict[str, Any]:
    return experiment(paper)["methods"]["line"][label]  # type: ignore[no-any-return]
