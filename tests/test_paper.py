"""The paper and the entry of the workflow catalogue have what their publishers ask for."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
_, HEAD, BODY = (ROOT / "paper/paper.md").read_text(encoding="utf-8").split("---\n", 2)
BIBLIOGRAPHY = (ROOT / "paper/paper.bib").read_text(encoding="utf-8")
# Of the Journal of Open Source Software, in its order; authors add their disclosures.
SECTIONS = [
    "Summary",
    "Statement of need",
    "State of the field",
    "Software design",
    "Research impact statement",
    "Acknowledgements",
    "References",
]


def test_the_paper_has_the_sections_and_the_length_of_its_journal():
    assert re.findall(r"^# (.*)$", BODY, re.MULTILINE) == SECTIONS
    assert 750 <= len(BODY.split()) <= 1000
    head = yaml.safe_load(HEAD)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= set(head)
    places = {entry["index"] for entry in head["affiliations"]}
    assert {entry["affiliation"] for entry in head["authors"]} <= places
    assert "`" not in head["title"]


def test_what_the_paper_cites_is_in_its_bibliography_and_nothing_else():
    cited = set(re.findall(r"@(\w+)", BODY))
    assert cited == set(re.findall(r"^@\w+\{(\w+),", BIBLIOGRAPHY, re.MULTILINE))
    entries = re.split(r"^@", BIBLIOGRAPHY, flags=re.MULTILINE)[1:]
    assert all(re.search(r"\bdoi +=|\burl +=|Manuscript", entry) for entry in entries)


def test_the_figure_of_the_paper_is_one_that_the_pipeline_makes():
    (figure,) = re.findall(r"^!\[[^\]]*\]\((.*?)\)$", BODY, re.MULTILINE)
    path = (ROOT / "paper" / figure).resolve()
    assert path.is_file()
    paper, name = path.relative_to(ROOT / "results/published").parts
    config = yaml.safe_load((ROOT / f"config/papers/{paper}.yaml").read_text(encoding="utf-8"))
    assert Path(name).stem in config["outputs"]


def test_the_catalogue_of_workflows_finds_what_standardised_usage_needs():
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment"}
    assert set(usage["mandatory-flags"]) == {"desc", "flags"}
    deployment = {"conda", "apptainer", "apptainer+conda", "report"}
    assert set(usage["software-stack-deployment"]) == deployment
    assert all((ROOT / name).is_file() for name in ("workflow/Snakefile", "config/README.md"))
    assert any((ROOT / "workflow/rules").glob("*.smk"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8").lower()
    assert "snakemake" in readme
    assert "workflow" in readme


def test_scripts_styles_and_data_in_the_repository_are_our_own():
    """Whoever adds those of others says under which licence, here and in LICENSE."""
    folders = (
        "benchmarks",
        "config",
        "docs",
        "envs",
        "paper",
        "src",
        "templates",
        "tests",
        "workflow",
    )
    kinds = (".js", ".css", ".woff2", ".ttf", ".csv", ".data", ".xlsx", ".npz", ".parquet")
    ours = {"docs/static/results.js", "docs/static/results.css"}
    files = (path for folder in folders for path in (ROOT / folder).rglob("*"))
    found = {path.relative_to(ROOT).as_posix() for path in files if path.suffix in kinds}
    assert found == ours
