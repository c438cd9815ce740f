"""Pages of published results and of invented ones: what they say, count and refuse."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from dpmc.types import DpmcError
from dpmc_papers.site import build, claims_figure, pages, tables
from dpmc_papers.site.sources import Source
from dpmc_papers.verdicts.verdict import VERDICTS, Verdict
from tests.support.figures import shown

ROOT = Path(__file__).parents[3]
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in ROOT.glob("workflow/report/*.rst")}
PAPERS = sorted(path.parent.name for path in ROOT.glob("results/published/*/verdict.csv"))


def source_of(paper: str) -> Source:
    config = yaml.safe_load((ROOT / f"config/papers/{paper}.yaml").read_text(encoding="utf-8"))
    config = {"paper": paper, "studies": {}, "experiments": {}, **config}
    folder = ROOT / "results/published" / paper
    return Source.of_document(config, folder, "paper", ROOT).of_what_is_there()


@pytest.fixture(scope="module", params=PAPERS)
def document(request) -> tuple[Source, dict[str, str]]:
    source = source_of(request.param)
    made = {
        name: text
        for name, text in pages.pages(dataclasses.replace(source), TEXTS).items()
        if name != "settings.md"
    }
    return source, made


def rows(text: str) -> list[tuple[str, str]]:
    """Anchor and verdict of each row of a page."""
    found = re.findall(r'<tr id="([^"]+)" data-verdict="([^"]+)">', text)
    return [(unescape(anchor), kind) for anchor, kind in found]


def test_every_verdict_has_one_row_with_its_word(document) -> None:
    source, made = document
    shown = [row for name, text in made.items() if name.startswith("series") for row in rows(text)]
    shown += rows(made["claims.md"])
    assert sorted(shown) == sorted((entry.anchor, entry.verdict) for entry in source.verdicts)


def test_counts_of_a_series_add_up(document) -> None:
    source, made = document
    lines = re.findall(r"of (\d+) printed numbers (.*)", made["claims.md"])
    assert len(lines) == sum(name.startswith("series") for name in made)
    for size, told in lines:
        counts = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) [a-z]", told)]
        assert sum(counts) == int(size)
    printed = Counter(entry.verdict for entry in pages.single(source.verdicts))
    found = re.search(r"^Printed numbers: (.*)\.$", made["index.md"], re.MULTILINE)
    assert (found is None) == (not printed)
    for name in printed:
        assert f"{printed[name]:,} {name}" in found[1]


def test_every_output_has_a_page_with_its_files_and_claims(document) -> None:
    source, made = document
    for name in source.config["outputs"]:
        text = made[f"{name}.md"]
        assert all(f"]({file})" in text for file in source.files(name))
        about = {e.anchor for e in source.verdicts if name in e.output and not e.series}
        assert {anchor for anchor, _ in rows(text)} == about
        assert f"]({name}.md)" in made["index.md"]


def test_names_lead_to_rows_that_are_there(document) -> None:
    _, made = document
    for name, place in pages.addresses(document[0]).items():
        page, _, anchor = place.partition("#")
        text = made[page.replace(".html", ".md")]
        assert not anchor or f'<tr id="{anchor}"' in text, name


def test_the_finding_leads_its_page(document) -> None:
    source, made = document
    assert source.finding.startswith("**")
    assert "](" not in source.finding
    assert source.finding in made["index.md"]


def test_settings_in_print_stand_beside_ours() -> None:
    """Those that are other than print are known, and the errata or the text tell each."""
    other = {}
    for paper in PAPERS:
        source = source_of(paper)
        defaults = {"reference": {"num_draws": 1000}}
        config = {**defaults, **source.config}
        text = pages.settings.page(dataclasses.replace(source, config=config), "Settings")
        assert text.count("<td>yes</td>") + text.count("<td>no</td>") >= len(source.printed) - 1
        other[paper] = text.count("<td>no</td>")
    assert other["raisa2021dphmc"] == 1  # sigma_0 of the banana


def test_what_is_missing_is_refused(tmp_path: Path) -> None:
    source = source_of("raisa2021dphmc")
    outputs = {**source.config["outputs"], "figure9": {"kind": "figure", "caption": "figure1.rst"}}
    more = dataclasses.replace(source, config={**source.config, "outputs": outputs})
    with pytest.raises(DpmcError, match=r"figure9\.pdf is missing: the run must be finished"):
        more.all_files()
    assert more.of_what_is_there().left_out == ("figure9",)
    empty = dataclasses.replace(source, folder=tmp_path)
    with pytest.raises(DpmcError, match=r"verdict.csv: "):
        _ = empty.verdicts
    with pytest.raises(DpmcError, match=r"provenance.json: "):
        _ = empty.provenance


def test_pages_are_written_whole_and_old_files_go(tmp_path: Path) -> None:
    source = source_of("vinaroz2022dpsep")
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "old.csv").touch()
    pages.write(source, TEXTS, folder / "index.md")
    made = {path.name for path in folder.iterdir()}
    assert made == {*pages.pages(source, TEXTS), *source.all_files()}
    assert (folder / "figure1.svg").read_bytes() == (source.folder / "figure1.svg").read_bytes()


def judged(reason: str) -> Verdict:
    return Verdict("a<b", "here", (), "as_published", "|x|", 1.0, 0.1, "r", "undecided", reason)


def test_what_pages_are_told_is_shown_as_it_is() -> None:
    text = pages.claims_table("Claims", [judged("about 152,665 runs would decide <b>")])
    assert "a&lt;b" in text
    assert "more than 1,000 runs would decide &lt;b&gt;" in text
    assert "1 ± 0.1" in text
    assert "about 5 runs" in pages.claims_table("Claims", [judged("about 5 runs would decide")])
    assert pages.plain("a_b | [c] *d*") == r"a\_b \| \[c\] \*d\*"


def test_tables_merge_quartiles_and_leave_out_what_is_empty() -> None:
    values = pd.DataFrame({"a_q1": [1.0], "a_median": [2.5], "a_q3": [3.0], "b_median": [np.nan]})
    shown = tables.compact(values)
    assert list(shown.columns) == ["a", "b_median"]
    text = tables.frame("T", shown)
    assert "<td>2.5 [1, 3]</td>" in text
    assert "b median" not in text


def test_links_of_pages_lead_to_the_site_or_become_plain(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    for name in ("index.md", "claims.md", "figure1.md"):
        (tmp_path / "pages" / name).touch()
    folders, kept = {"one2020": tmp_path / "pages"}, "../results/published/one2020"
    for link, wanted in {
        "errata.md#x": "(errata.md#x)",
        "#here": "(#here)",
        "https://a.b": "(https://a.b)",
        f"{kept}/figure1.png": "(results/one2020/figure1.md)",
        f"{kept}/verdict.csv": "(results/one2020/claims.md)",
        kept: "(results/one2020/index.md)",
        "../results/published": "(results/index.md)",
        "../CHANGELOG.md": "(changelog.md)",
        "../src": None,
        "../results/published/two2021": None,
    }.items():
        text = build.rewritten(f"[a]({link})", ROOT / "docs/x.md", ROOT, tmp_path, folders)
        assert text == ("a" if wanted is None else f"[a]{wanted}"), link
    text = build.rewritten("[a](../src/dpmc/rng.py)", ROOT / "docs/x.md", ROOT, tmp_path, folders)
    assert (tmp_path / text[4:-1]).resolve() == ROOT / "src/dpmc/rng.py"


def test_the_page_of_all_results_leads_with_findings_and_says_what_is_missing() -> None:
    sources = [source_of(paper) for paper in PAPERS]
    text = build.front(sources)
    lacking = [sum(e.verdict == "not run" for e in source.verdicts) for source in sources]
    for source, number in zip(sources, lacking, strict=True):
        assert f"]({source.key}/index.md)" in text
        assert (f"verdicts {number:,} are not run: their data" in text) == bool(number)
    quick = build.front([dataclasses.replace(source, scale="quick") for source in sources])
    assert quick.count("they need `--config scale=paper`") == sum(map(bool, lacking))


def test_the_figure_counts_claims_in_two_bars_of_each_document() -> None:
    keys = [(out, held) for out in claims_figure.OUT for held in claims_figure.HELD]
    cells = [claims_figure.Cell(out, held) for out, held in keys] * 6
    figure = claims_figure.draw({"dpmc 2026": [], "One 2020": cells})
    (axes,) = shown(figure)
    for part, kinds in ((0, claims_figure.OUT), (1, claims_figure.HELD)):
        bars = [bar for bar in axes.patches if round(bar.get_y() + 0.18, 1) == (-0.2, 0.2)[part]]
        assert [bar.get_width() for bar in bars] == [24] * len(kinds)
        assert [bar.get_x() for bar in bars] == [0, 24, 48, 72]
    assert [text.get_text() for text in axes.texts] == ["24"] * 8
    assert [text.get_text() for text in axes.get_yticklabels()][1] == "dpmc 2026\n(our own claims)"
    outs = {claims_figure.cells([dataclasses.replace(judged(""), verdict=v)])[0] for v in VERDICTS}
    assert {cell.out for cell in outs} == set(claims_figure.OUT)
