"""Setups of chains and studies from plain mappings, as the scripts of the workflow make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpmc.yaml_files import typed
from dpmc_papers.config.setups import ChainSetup, ProblemSetup, StudySetup

CHAIN = {
    "paper": "p",
    "variant": "as_published",
    "budget": None,
    "num_iterations": None,
    "outside": [],
    "seed": 5,
}


def problem(values: Mapping[str, Any]) -> ProblemSetup:
    return typed(values, ProblemSetup)


def chain(values: Mapping[str, Any]) -> ChainSetup:
    return typed({**CHAIN, **values}, ChainSetup)


def study(values: Mapping[str, Any]) -> StudySetup:
    return typed(values, StudySetup)
