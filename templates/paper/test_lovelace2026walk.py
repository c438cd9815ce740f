"""The example of a paper: its configuration is read, and a misspelt key is refused."""

import shutil
from pathlib import Path

import pytest

from dpmc import registry
from dpmc.types import DpmcError
from dpmc_papers import outputs
from dpmc_papers.config import code, reader

HERE = Path(__file__).parent
KEY = "lovelace2026walk"


@pytest.fixture(autouse=True)
def figures(tmp_path, monkeypatch):
    """A module of figures with the name of the paper, as it would stand in dpmc_papers/outputs."""
    folder = tmp_path / "outputs"
    folder.mkdir()
    shutil.copy(HERE.parent / "figure" / "acceptance.py", folder / f"{KEY}.py")
    monkeypatch.setattr(outputs, "__path__", [*outputs.__path__, str(folder)])
    monkeypatch.setattr(code, "defined", lambda module: {"acceptance"})
    registry.names.cache_clear()
    yield
    registry.names.cache_clear()


def load(root, change=("", "")):
    for name in ("papers", "scales"):
        (root / "config" / name).mkdir(parents=True)
    shutil.copy(HERE / f"{KEY}.yaml", root / "config/papers")
    (root / "config/scales/full.yaml").write_text("seeds_per_job: 2\npapers: {}\n")
    path = root / f"config/papers/{KEY}.yaml"
    path.write_text(path.read_text().replace(*change))
    return reader.load_config({"papers": [KEY], "scale": "full", "results_dir": "results"}, root)


def test_it_is_read(tmp_path):
    paper = load(tmp_path).papers[KEY]
    assert list(paper.experiments) == ["comparison"]


def test_a_misspelt_parameter_is_refused(tmp_path):
    with pytest.raises(DpmcError, match="did you mean proposal_sd"):
        load(tmp_path, ("proposal_sd", "proposl_sd"))
