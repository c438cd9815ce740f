"""Pages from invented runs: what they say, count and refuse."""

from __future__ import annotations

import dataclasses
import html.parser
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib.figure import Figure

from dpmc.numerics.source_digest import short_digest
from dpmc.types import DpmcError
from dpmc_papers.outputs import _guarantees, _tables
from dpmc_papers.outputs import raisa2021dphmc as outputs
from dpmc_papers.plots import drawn, panels, save
from dpmc_papers.plots.style import look
from dpmc_papers.site import build, captions, claims, errata, grids
from dpmc_papers.site.sources import Source
from dpmc_papers.verdicts import claim_file, judge, verdict
from dpmc_papers.verdicts.verdict import Verdict
from tests.support import synthetic

ROOT = Path(__file__).parents[3]
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in ROOT.glob("workflow/report/*.rst")}
SHOWN = ("figure1", "figure3", "budget", "comparison")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.images = [], set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids.add(values.get("id"))
        if tag == "a":
            self.links.append(values["href"])
        if tag == "img":
            self.images.append(values)
        if tag not in ("meta", "img", "link", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def context():
    config = yaml.safe_load((ROOT / "config/papers/raisa2021dphmc.yaml").read_text())
    config["outputs"] = {name: config["outputs"][name] for name in SHOWN}
    return dataclasses.replace(synthetic.context(), config=config)


@pytest.fixture(scope="module")
def source(context, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    claimed = claim_file.load(ROOT / "config/published/raisa2021dphmc.yaml")
    verdicts = judge.verdicts(
        {**claimed, "resamples": 50}, context.metrics, context.baselines, context
    )
    tables = {
        "verdict": verdicts,
        "guarantees": _guarantees.summary(context.metrics),
        "budget": outputs.budget_table(context),
        "comparison": outputs.comparison_table(context),
    }
    for name, table in tables.items():
        _tables.write(table, folder / f"{name}.csv")
    for name in ("figure1", "figure3"):
        figure = getattr(outputs, name)(context)
        save(figure, folder / f"{name}.svg")
        for ending in ("png", "pdf"):
            (folder / f"{name}.{ending}").write_text("copied as it is", encoding="utf-8")
        _tables.write(drawn.table(figure), folder / f"{name}.data.csv")
    record = {
        "settings": short_digest(context.config), "command": "snakemake <script>", "cores": 2,
        "jobs": {"all": {"jobs": 3, "cpu_seconds": 7300.0, "wall_seconds": 1.0, "max_rss_mb": 1.0}},
    }  # fmt: skip
    (folder / "provenance.json").write_text(json.dumps(record), encoding="utf-8")
    return Source(context.config, folder, "quick")


@pytest.fixture(scope="module")
def page(source):
    return build.render_document(source, TEXTS)


def test_a_page_is_well_formed_and_asks_for_nothing_from_elsewhere(page):
    parsed = Page(page)
    assert parsed.open == []
    assert [image["src"] for image in parsed.images] == ["figure1.svg", "figure3.svg"]
    assert all(int(image["width"]) > 500 and image["alt"] for image in parsed.images)
    assert all(int(image["height"]) > 100 for image in parsed.images)
    assert {image["loading"] for image in parsed.images} == {"lazy"}
    for target in (link[1:] for link in parsed.links if link.startswith("#")):
        assert target in parsed.ids
    assert not re.search(r'(src|rel="stylesheet" href)="https?:', page)


def test_a_page_tells_what_is_private_and_what_is_not(page):
    assert "No noise was added: there is no privacy guarantee." in page
    assert "Not covered by any guarantee: tuning; start points; clip fractions" in page
    assert "ε = 1 (asked for 2), 2 (asked for 4)" in page
    assert "substitution of one row" in page


def test_a_page_escapes_what_it_is_told(page):
    assert "snakemake &lt;script&gt;" in page
    assert "2.0 h in 3 jobs" in page


def test_a_page_links_to_the_data_behind_a_figure(source, page):
    assert source.data_of("figure1") == ["figure1.data.csv", "budget.csv", "comparison.csv"]
    assert source.data_of("figure3") == ["figure3.data.csv"]
    assert '<a href="figure3.data.csv">' in page


def test_other_settings_and_missing_files_are_told(source, tmp_path):
    assert not source.settings_changed
    other = {**source.config, "seed": 1}
    text = build.render_document(Source(other, source.folder, "quick"), TEXTS)
    assert "settings have changed since" in text
    config = {
        **source.config,
        "outputs": {**source.config["outputs"], "figure9": {"kind": "figure"}},
    }
    with pytest.raises(DpmcError, match=r"figure9.svg is missing"):
        Source(config, source.folder, "quick").all_files()
    with pytest.raises(DpmcError, match=r"verdict.csv: "):
        _ = Source(source.config, tmp_path, "quick").verdicts


def test_earlier_results_lack_what_is_new_and_say_so(source):
    new = {**source.config["outputs"]["figure1"]}
    config = {**source.config, "outputs": {**source.config["outputs"], "figure_new": new}}
    with pytest.raises(DpmcError, match=r"figure_new\.svg is missing"):
        Source(config, source.folder, "quick").all_files()
    earlier = Source.of_earlier(config, source.folder, "quick", source.folder)
    assert earlier.left_out == ("figure_new",)
    assert earlier.all_files() == source.all_files()
    assert "Not among these results: figure_new." in build.render_document(earlier, TEXTS)
    assert Source.of_earlier(source.config, source.folder, "quick", source.folder) == source


def test_a_document_is_written_whole_and_old_files_go(source, tmp_path):
    target = tmp_path / "site" / source.key / "index.html"
    target.parent.mkdir(parents=True)
    (target.parent / "old.csv").touch()
    build.document(source, TEXTS, target)
    made = {path.name for path in target.parent.iterdir()}
    assert made == {"index.html", *source.all_files()}
    assert (target.parent / "figure1.svg").read_bytes() == (
        source.folder / "figure1.svg"
    ).read_bytes()


def test_the_front_page_counts_every_verdict(source):
    files = build.front(
        [source],
        [{"paper": "none2020", "title": "T", "authors": "A B", "year": 1}],
        "",
        "",
        "quick",
    )
    assert tuple(files) == (*build.PAGES, *build.STATIC)
    front = Page(files["index.html"])
    assert front.open == []
    counts = claims.counts(source.verdicts)
    assert f"all ({sum(counts.values()):,})" in files["index.html"]
    assert "no results here" in files["index.html"]
    assert sum(link.startswith(f"{source.key}/index.html#") for link in front.links) > 50


def test_captions_refuse_what_they_cannot_fill(source):
    with pytest.raises(DpmcError, match="caption of figure1: 'nothing' is undefined"):
        captions.caption("figure1", "{{ nothing }}", source.facts)
    parts = captions.paragraphs("One\ntwo.\n\nSettings:\n\n- a\n- b\n")
    assert parts == [("text", ["One two."]), ("list", ["Settings", "a", "b"])]


def test_titles_name_outputs_as_documents_do():
    names = ("figure6_2_published", "table5_1", "figure_mala", "figure1_variants", "budget")
    assert [captions.title(name) for name in names] == [
        "Figure 6.2, published", "Table 5.1", "Figure: mala", "Figure 1, variants", "Budget",
    ]  # fmt: skip


def judged(name, output, outcome="reproduced"):
    """Return a verdict on a claim that `output` shows."""
    return Verdict(name, "here", output, "as_published", "text", 1.0, 0.1, "r", outcome, "why")


def test_verdicts_stand_under_the_first_output_that_their_claims_name():
    entries = [
        judged("a", ("figure1",)), judged("b", ("figure2", "figure1")), judged("c", ()),
        judged("d", ("absent", "figure2")), judged("e", ("absent",)),
    ]  # fmt: skip
    groups = claims.by_output(entries, ["figure1", "figure2"])
    stand = {name: [entry.id for entry in group.verdicts] for name, group in groups.items()}
    assert stand == {"figure1": ["a"], "figure2": ["b", "d"], "": ["c", "e"]}
    refer = {name: [entry.id for entry in group.elsewhere] for name, group in groups.items()}
    assert refer == {"figure1": ["b"], "figure2": [], "": []}


def test_series_count_their_cells():
    outcomes = ["reproduced", "reproduced", "contradicted", "undecided"]
    cells = pd.DataFrame(
        [
            {"id": f"box/model/{k}", "where": "Figure 9", "output": "figure9",
             "variant": "as_published", "published": f"{k}", "ours": 1.0,
             "ours_se": 0.1, "rule": "r", "verdict": outcome,
             "reason": "why", "privacy": "broken", "digits": "same", "resolution": 1.2,
             "runs_needed": np.nan}
            for k, outcome in enumerate(outcomes)
        ]
    )  # fmt: skip
    group = claims.group(verdict.from_table(cells))
    (series,) = group.series
    assert group.claims == ()
    found = {key: number for key, number in series.counts.items() if number}
    assert found == {"reproduced": 2, "contradicted": 1, "undecided": 1}
    assert (series.size, series.cells[0].privacy) == (4, "broken")
    assert (series.cells[0].ours, series.cells[0].ours_se) == (1.0, 0.1)
    assert series.cells[0].output == ("figure9",)
    assert series.cells[0].anchor == "box.model.0-as_published"
    assert series.terms == ""
    rules = [f"mean in [{k}, 9]; exact" for k in range(len(cells))]
    (alike,) = claims.group(verdict.from_table(cells.assign(rule=rules))).series
    assert alike.terms == "exact"
    rules[0] = "mean in [0, 9]; error rate 0.05"
    (other,) = claims.group(verdict.from_table(cells.assign(rule=rules))).series
    assert other.terms == ""
    with pytest.raises(DpmcError, match=r"`verdict` must be one of reproduced, .* got 'maybe'"):
        verdict.from_table(cells.assign(verdict="maybe"))
    with pytest.raises(DpmcError, match="column `reason` is missing"):
        verdict.from_table(cells.drop(columns="reason"))


def test_verdicts_are_read_back_as_they_were_judged(source):
    read = verdict.read(source.folder / "verdict.csv")
    table = verdict.table(read)
    assert repr(verdict.from_table(table)) == repr(read)  # NaN differs from itself
    outputs = {entry.output for entry in read}
    assert {(), ("figure1",), ("figure1", "figure3")} <= outputs


def test_a_page_shows_what_was_measured_with_its_error(page):
    assert re.search(r'data-label="Ours" class="number">[0-9.]+ ± [0-9.e-]+<', page)
    assert 'class="number">–<' in page


def test_an_output_refers_to_claims_that_stand_under_another(page):
    assert re.search(r'Also about Figure 3: <a href="#P-5-non-private-as_published">', page)


def test_compact_merges_quartiles_only():
    table = pd.DataFrame({"a_q1": [1.0], "a_median": [2.5], "a_q3": [3.0], "b_median": [np.nan]})
    shown = grids.compact(table)
    assert list(shown.columns) == ["a", "b_median"]
    assert shown["a"][0] == "2.5 [1, 3]"
    assert grids.grid(shown).columns == ("a",)


def errata_page(*points, parts=errata.PARTS):
    """Return errata with a point of each title in the chapter of one document."""
    said = "".join(f"- **{part}.** See `table1.csv` & `-k x`.\n" for part in parts)
    body = "".join(f"#### {title}\n\n{said}\n" for title in points)
    return (
        "# What is wrong\n\nFor readers.\n\n## The gravest\n\n- [one](#the-first)\n\n"
        f"## A title (`paper2020`)\n\nA word.\n\n### Paper: privacy\n\n{body}"
    )


def test_errata_have_a_place_for_each_document_and_point_and_links():
    links = {"paper2020": {"table1.csv": "paper2020/index.html#table1"}}
    found = errata.read(errata_page("The first", "Of x, not `y`"), links)
    assert (found.title, found.body) == ("What is wrong", "<p>For readers.</p>\n")
    gravest, chapter = found.chapters
    assert (gravest.anchor, gravest.points) == ("the-gravest", ())
    assert (chapter.anchor, chapter.title) == ("paper2020", "A title")
    assert [point.anchor for point in chapter.points] == ["the-first", "of-x-not-y"]
    assert found.points == {"the-gravest": 0, "paper2020": 2}
    assert '<h3 id="paper-privacy">' in chapter.body
    assert '<h4 id="the-first">The first' in chapter.body
    assert '<a class="here" href="#the-first"' in chapter.body
    assert chapter.body.count('<ul class="parts">') == 2
    assert '<a href="paper2020/index.html#table1"><code>table1.csv</code></a> &amp;' in chapter.body
    assert Page(chapter.body).open == []


def test_errata_refuse_points_without_their_parts_and_one_address_for_two():
    for parts in (errata.PARTS[:2], errata.PARTS[::-1], [*errata.PARTS, "Remark"], []):
        with pytest.raises(DpmcError, match="errata: 'The first' must be a list of"):
            errata.read(errata_page("The first", parts=parts), {})
    with pytest.raises(DpmcError, match="several headings have the address the-first"):
        errata.read(errata_page("The first", "Another", "The first!"), {})


def test_the_errata_of_the_repository_name_every_paper():
    found = errata.read((ROOT / "docs/errata.md").read_text(encoding="utf-8"), {})
    papers = {path.stem for path in ROOT.glob("config/papers/*.yaml")} - {"league"}  # our own
    assert found.chapters[0].anchor == "the-gravest"
    assert papers <= set(found.points)
    assert all(found.points[key] > 5 for key in papers)
    assert all(Page(chapter.body).open == [] for chapter in found.chapters)


def test_the_page_of_the_errata_has_one_place_for_each_link(source):
    text = (ROOT / "docs/errata.md").read_text(encoding="utf-8")
    files = build.front([source], [], text, "", "quick")
    page = Page(files["errata.html"])
    assert page.open == []
    assert {link[1:] for link in page.links if link.startswith("#")} <= page.ids
    ids = re.findall(r' id="([^"]+)"', files["errata.html"])
    assert len(ids) == len(set(ids)) > 100
    fronts = [link for link in Page(files["index.html"]).links if link.startswith("errata.html#")]
    assert {link.partition("#")[2] for link in fronts} <= page.ids


def test_the_numbers_behind_a_figure_are_those_of_its_runs(context):
    table = drawn.table(outputs.figure1(context))
    assert list(table.columns) == drawn.COLUMNS
    chosen = (table["panel"] == "Banana: MMD") & (table["series"] == "DP-HMC") & (table["x"] == 8)
    runs = context.metrics.query(
        "experiment == 'comparison' and problem == 'paper_banana_2d' and label == 'dp_hmc' "
        "and epsilon == 8"
    )["mmd"]
    assert sorted(table.loc[chosen, "y"]) == sorted(runs)
    exact = table[(table["panel"] == "Banana: MMD") & (table["series"] == "exact sample")]
    assert sorted(exact["y"]) == sorted(context.exact("paper_banana_2d", "mmd"))


def test_lines_points_and_words_at_ticks_are_told():
    figure = Figure()
    plain, boxed = figure.subplots(1, 2)
    plain.plot([1, 2], [3, 4], label="curve")
    plain.plot([5], [6])
    plain.scatter([7], [8])
    plain.axhline(9)
    plain.set_xticks([1, 2], ["first", "second"])
    runs = pd.DataFrame({"e": [1.0, 1.0, 2.0], "m": [0.1, 0.2, 0.3], "k": "dp_hmc"})
    panels.boxes(boxed, runs, "e", "m", "k", {"dp_hmc": look("dp_hmc")})
    table = drawn.table(figure)
    first = table[table["panel"] == "panel 1"]
    assert list(first["series"]) == ["curve", "curve", "line 2", "points 1"]
    assert list(first.loc[first["series"] == "curve", "x_tick"]) == ["first", "second"]
    second = table[table["panel"] == "panel 2"]
    assert list(second["y"]) == [0.1, 0.2, 0.3]
    assert list(second["x"]) == [1, 1, 2]
    assert drawn.table(Figure()).empty
