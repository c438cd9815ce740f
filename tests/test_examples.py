"""Every public name has an example in its docstring, and the example runs as printed."""

from __future__ import annotations

import doctest
import importlib
import inspect
import sys

import numpy as np
import pytest

import dpmc
from dpmc import privacy, statsel

# Entries of the packages that have no list of public names.
ENTRIES = {
    "dpmc.models": ("banana.build", "circle.build", "gaussian_mean.build"),
    "dpmc.linreg": ("sufficient_statistics.node_statistics", "release.release"),
    "dpmc.ep": ("mixture.model.MixtureModel",),
    "dpmc.diagnostics": (
        "mmd.gaussian_mmd",
        "convergence.split_rhat",
        "convergence.bulk_ess",
        "autocorrelation.autocorrelation_time",
    ),
}


def public() -> dict[str, object]:
    """Functions and classes that users are meant to use, by their full names."""
    values = {
        f"{package.__name__}.{name}": getattr(package, name)
        for package in (dpmc, privacy, statsel)
        for name in package.__all__
    }
    for package, entries in ENTRIES.items():
        for entry in entries:
            module, _, name = entry.rpartition(".")
            values[f"{package}.{entry}"] = getattr(
                importlib.import_module(f"{package}.{module}"), name
            )
    return {name: value for name, value in values.items() if not inspect.ismodule(value)}


def failures(name: str, value: object) -> list[str]:
    """Return what is wrong with the examples of a docstring: there are none, or they fail."""
    text = inspect.getdoc(value) or ""
    if "\nExamples\n--------\n" not in text:
        return [f"{name}: no Examples section"]
    names = dict(vars(sys.modules[value.__module__]))
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    if not test.examples:
        return [f"{name}: no example"]
    reports: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=reports.append)
    return reports


@pytest.mark.parametrize("name", sorted(public()))
def test_examples_of_public_names_run(name) -> None:
    assert failures(name, public()[name]) == []


def test_a_name_without_an_example_and_one_with_a_wrong_result_fail() -> None:
    assert failures("sum", np.sum.__call__) != []

    def wrong() -> int:
        """Return 1.

        Examples
        --------
        >>> 1 + 1
        3
        """
        return 1

    (report,) = failures("wrong", wrong)
    assert "Expected:\n    3\nGot:\n    2" in report
