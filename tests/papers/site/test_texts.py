"""What the site takes from the text on a document, and the figure of all claims."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dpmc_papers.plots.style import SMALLEST, WIDTH
from dpmc_papers.site import claims_figure, findings, strip, texts
from dpmc_papers.site.sources import Source

ROOT = Path(__file__).parents[3]
PAPERS = sorted(path.parent.name for path in ROOT.glob("results/published/*/verdict.csv"))


def source(paper: str) -> Source:
    config = yaml.safe_load((ROOT / f"config/papers/{paper}.yaml").read_text(encoding="utf-8"))
    folder = ROOT / "results/published" / paper
    return Source.of_earlier({"paper": paper, **config}, folder, "paper", ROOT / "docs")


@pytest.mark.parametrize("paper", PAPERS)
def test_the_text_leads_with_its_finding(paper: str) -> None:
    found = texts.read(source(paper), PAPERS, "..", {})
    text = (ROOT / f"docs/{paper}.md").read_text(encoding="utf-8")
    assert f"**{found.words}**" in " ".join(text.split())
    assert found.figure in source(paper).outputs("figure")
    assert "../src/" not in found.body
    assert ".md" not in "".join(part.split('"')[0] for part in found.body.split('href="')[1:])


def test_links_lead_to_the_site_or_become_plain() -> None:
    places = texts.Places(("a", "b"), "..", source("vinaroz2022dpsep"))
    kept = "../results/published/vinaroz2022dpsep"
    assert places.resolve("errata.md") == "../errata.html#vinaroz2022dpsep"
    assert places.resolve("verdicts.md#claims") == "../verdicts.html#claims"
    assert places.resolve("b.md") == "../b/index.html"
    assert places.resolve(f"{kept}/figure1.png") == "figure1.svg"
    assert places.resolve(f"{kept}/nothing.csv") is None
    assert places.resolve("../src/dpmc/rng.py") is None


def test_settings_whose_epsilon_holds_are_counted() -> None:
    assert findings.private_settings(source("vinaroz2022dpsep"))[0] == 0
    held, asked = findings.private_settings(source("raisa2021dphmc"))
    assert held == asked > 0


def test_the_figure_has_a_cell_per_claim_and_legible_words() -> None:
    cells = [strip.Cell("a", out, held, "p") for out in strip.OUT for held in strip.HELD] * 6
    figure = claims_figure.draw({"One 2020": cells, "None 2021": []})
    (axes,) = figure.axes
    assert figure.get_figwidth() == WIDTH
    assert min(text.get_fontsize() for text in axes.texts) >= SMALLEST
    squares = [patch for patch in axes.patches if patch.get_height() == 0.88]
    assert len(squares) == len(cells) + len(strip.OUT)
    assert any("24 undecided" in text.get_text() for text in axes.texts)
