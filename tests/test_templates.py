"""Templates work as they stand; a model and a method of them pass the tests of all others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEMPLATES = ROOT / "templates"
# Where the tests of all models and of all methods are, and what else looks at the files of both.
INTERFACE = [
    "tests/properties/test_models.py",
    "tests/rows/test_model_checks.py",
    "tests/mcmc/test_compilations.py",
    "tests/mcmc/test_threads.py",
    "tests/test_fitting.py",
    "tests/test_secure_by_default.py",
    "tests/privacy/test_draws_at_home.py::test_every_draw_outside_of_privacy_is_listed",
]
CHOSEN = "poisson_rate or lazy_walk or every_draw or methods_are_listed"


def run(*arguments: str, **environment: str) -> str:
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "--disable-warnings", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


@pytest.mark.parametrize("kind", ["model", "method", "figure", "paper"])
def test_a_template_passes_its_own_test(kind):
    assert " passed" in run(str(TEMPLATES / kind))


@pytest.fixture
def copied(tmp_path):
    """Return a copy of the package that has the model and the method of the templates."""
    package = tmp_path / "dpmc"
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", tmp_path, ignore=leave, dirs_exist_ok=True)
    shutil.copy(TEMPLATES / "model/poisson_rate.py", package / "models")
    shutil.copy(TEMPLATES / "method/lazy_walk.py", package / "mcmc/methods")
    return package


def test_a_copied_model_and_method_pass_the_tests_of_all_others(copied):
    """Without another edit: no list in the library or in its tests has their names."""
    found = run(*INTERFACE, "-k", CHOSEN, PYTHONPATH=str(copied.parent))
    assert int(found.split(" passed")[0].split()[-1]) >= 9


def test_a_copied_method_that_draws_its_noise_itself_is_found(copied):
    """The broken variant: the same tests are no formality."""
    method = copied / "mcmc/methods/lazy_walk.py"
    text = method.read_text()
    right = "noisy = ledger.release(ratio, params.ratio_noise_multiplier, streams.noise)"
    assert text.count(right) == 1
    method.write_text(text.replace(right, "noisy = ratio.value + streams.noise.normal()"))
    with pytest.raises(AssertionError, match=r"lazy_walk\.py::sampler\.step normal"):
        run(INTERFACE[-1], PYTHONPATH=str(copied.parent))
