"""The site in a real browser: it loads, it can be read, printed and used without a mouse."""

from __future__ import annotations

import csv
import itertools
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workflow.browser import Browser, browser, executable
from tests.workflow.conftest import PAPERS, SMOKE, TINY, Project

pytestmark = pytest.mark.slow

FRONT = "index.html"
SHARED = (FRONT, "errata.html", "verdicts.html")
PHONE, PAPER = 375, 680  # widths in pixels; the latter is that of a page of paper

needs_browser = pytest.mark.skipif(
    executable() is None, reason="no Chromium here (apt-get install chromium)"
)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


def pages(site: Path) -> list[str]:
    found = sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))
    assert set(SHARED) < set(found)
    return found


# Pictures below the first screens are loaded when a reader comes near them.
LOADED = """Promise.all([...document.images].map((image) => {
  image.loading = "eager";
  return image.decode().catch(() => null);
})).then(() => true)"""
# Of every picture: whether it has content, room and words.
IMAGES = """[...document.images].map((image) => [
  image.getAttribute("src"), image.complete && image.naturalWidth > 0, image.clientWidth > 100,
  image.clientHeight > 50, image.hasAttribute("width") && image.hasAttribute("height"),
  image.alt.trim().length > 10])"""
LEVELS = "[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map((h) => Number(h.tagName[1]))"
# Names given twice, names that nothing has, links into the page that lead nowhere, cells that
# rows lack, and what can be scrolled but not reached by keyboard.
FAULTS = """(() => {
  const all = [...document.querySelectorAll("[id]")].map((e) => e.id);
  const twice = all.filter((id, k) => all.indexOf(id) !== k);
  const known = new Set(all);
  const inside = [...document.querySelectorAll("a[href^='#']")].map((a) => a.hash.slice(1));
  const named = [...document.querySelectorAll("[aria-labelledby]")];
  const scrolled = [...document.querySelectorAll("main *")].filter((e) =>
    e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === "auto");
  return [...twice,
    ...inside.filter((id) => !known.has(decodeURIComponent(id))),
    ...named.map((e) => e.getAttribute("aria-labelledby")).filter((id) => !known.has(id)),
    ...scrolled.filter((e) => e.tabIndex < 0 || !e.ariaLabel).map((e) => e.className),
    ...[...document.querySelectorAll("table")].filter((t) => !t.tHead).map(() => "no head"),
    ...(document.documentElement.lang ? [] : ["no language"]),
    ...(document.querySelector("main") ? [] : ["no main part"])];
})()"""
# The least contrast of any text on the page with what is behind it, by the formula of WCAG 2.
CONTRAST = """(() => {
  const parts = (text) => text.match(/[0-9.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((v) => v / 255)
      .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parts(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const seen = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest("script")) continue;
    const name = element.tagName + element.className + element.parentElement.className
      + element.parentElement.tagName;
    if (seen.has(name)) continue;
    const [one, other] = [light(parts(getComputedStyle(element).color)), light(behind(element))];
    seen.set(name, (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05));
  }
  return Math.min(...seen.values());
})()"""
OVERFLOW = "document.documentElement.scrollWidth - window.innerWidth"
SHOWN = """[...document.querySelectorAll("tr[data-verdict]")]
  .filter((row) => !row.hidden).map((row) => row.dataset.verdict)"""
STATUS = "document.querySelector('[data-status]').textContent"
FOCUSED = "document.activeElement.name + '=' + document.activeElement.value"


def check_page(chromium: Browser, site: Path, page: str) -> None:
    assert chromium.open(site / page) == [], page
    chromium.run(LOADED)
    for source, *good in chromium.run(IMAGES):
        assert all(good), (page, source, good)
    levels = chromium.run(LEVELS)
    assert levels[0] == 1, page
    assert levels.count(1) == 1, page
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), page
    assert chromium.run(FAULTS) == [], page
    assert chromium.run(CONTRAST) >= 4.5, page
    assert chromium.run(OVERFLOW) <= 0, page


@needs_browser
@pytest.mark.parametrize("which", ["tiny", "published", "finished"])
def test_every_page_loads_and_can_be_read(
    chromium: Browser, which: str, request: pytest.FixtureRequest
) -> None:
    made = request.getfixturevalue(which)
    scale = {"tiny": "tiny", "finished": "smoke"}.get(which)
    site = made if scale is None else made.folder / "results" / scale / "site"
    for page in pages(site):
        check_page(chromium, site, page)


@needs_browser
def test_the_largest_page_starts_with_little(chromium: Browser, published: Path) -> None:
    """What is loaded before a reader moves is below 1.8 megabytes; the pictures are 6.5."""
    page = published / "raisa2021thesis" / FRONT
    chromium.open(page)
    rest = "[...document.images].filter((image) => !image.complete).length"
    assert chromium.run(rest) > 10
    asked = {
        event["params"]["request"]["url"]
        for event in chromium.events
        if event.get("method") == "Network.requestWillBeSent"
    }
    files = [Path(url.removeprefix("file://")) for url in asked if url.startswith("file:")]
    assert {page.resolve(), published.resolve() / "filter.js"} <= set(files)
    assert sum(file.stat().st_size for file in files) < 1.8 * 2**20
    chromium.run(LOADED)
    assert chromium.run(rest) == 0


@needs_browser
def test_checks_find_what_is_wrong(chromium: Browser, published: Path, tmp_path: Path) -> None:
    """The checks of pages fail for a page that is broken in each of the ways they look for."""
    text = (published / "errata.html").read_text(encoding="utf-8")
    for name in ("style.css", "filter.js", "sort.js"):
        (tmp_path / name).write_bytes((published / name).read_bytes())
    broken = {
        "a script": ("</body>", "<script>missing()</script></body>"),
        "a missing file": ("</body>", '<img src="no.png" alt="a picture of nothing"></body>'),
        "the network": ("</body>", '<script src="https://example.org/a.js"></script></body>'),
        "a level": ("</body>", "<h6>too deep</h6></body>"),
        "a link": ("</body>", '<a href="#nowhere">lost</a></body>'),
        "contrast": ("</body>", '<p style="color: #999">pale</p></body>'),
        "width": ("</body>", '<div style="width: 5000px">wide</div></body>'),
    }
    for name, (old, new) in broken.items():
        page = tmp_path / f"{name}.html"
        page.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(AssertionError, match=name):
            check_page(chromium, tmp_path, page.name)
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    check_page(chromium, tmp_path, "page.html")


@needs_browser
def test_pages_fit_a_phone_and_paper(chromium: Browser, published: Path) -> None:
    for page in pages(published):
        chromium.open(published / page, PHONE)
        assert chromium.run(OVERFLOW) <= 0, page
        chromium.open(published / page, PAPER)
        chromium.media("print")
        try:
            assert chromium.run(OVERFLOW) <= 0, page
            hidden = "getComputedStyle(document.querySelector('nav.site')).display"
            assert chromium.run(hidden) == "none", page
            cut = """[...document.querySelectorAll(".scroll")]
              .filter((e) => e.clientHeight && e.scrollWidth > e.clientWidth + 1).length"""
            assert chromium.run(cut) == 0, page
        finally:
            chromium.media("")


# How light the page is and what is behind a figure: 0 for black, 255 for white.
LIGHT = """["body", "figure img"].map((name) => document.querySelector(name)).map((e) =>
  e && Number(getComputedStyle(e).backgroundColor.match(/[0-9]+/)[0]))"""


@needs_browser
def test_pages_are_dark_where_that_is_preferred(chromium: Browser, published: Path) -> None:
    try:
        for page in pages(published):
            chromium.media("", "dark")
            chromium.open(published / page)
            chromium.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
            behind, figure = chromium.run(LIGHT)
            assert behind < 60, page
            assert figure in (None, 255), page  # figures are drawn for white
            assert chromium.run(CONTRAST) >= 4.5, page
            chromium.media("print", "dark")
            assert chromium.run(LIGHT)[0] == 255, page
            chromium.media("", "light")
            assert chromium.run(LIGHT)[0] == 255, page
    finally:
        chromium.media("")


@needs_browser
def test_the_front_page_prints(chromium: Browser, published: Path) -> None:
    chromium.open(published / FRONT)
    paper = chromium.paper()
    assert paper.startswith(b"%PDF")
    documents = len(list((published / FRONT).parent.glob("*/index.html")))
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", unpacked(paper))) <= 7 * documents


# What is folded while a page is printed, what is not there yet, and which controls are.
PRINTED = """window.addEventListener("beforeprint", () => {
  const seen = (e) => e.checkVisibility();
  window.printed = {
    folded: [...document.querySelectorAll("details.facts")].filter((e) => !e.open)
      .map((e) => e.querySelectorAll("li").length),
    lazy: [...document.images].filter((image) => image.loading === "lazy").length,
    controls: [...document.querySelectorAll("nav, .filter fieldset, .filter input")].filter(seen)
      .length,
    told: [...document.querySelectorAll("[data-status]")].filter(seen).map((e) => e.textContent),
  };
})"""


@needs_browser
@pytest.mark.parametrize("paper", ["raisa2021dphmc", "alparslan2023thesis"])
def test_paper_has_what_is_folded_on_the_screen(
    chromium: Browser, published: Path, paper: str
) -> None:
    chromium.open(published / paper / FRONT)
    folded = "[...document.querySelectorAll('details.facts')].filter((e) => !e.open).length"
    before = chromium.run(folded)
    assert before > 5
    chromium.run(PRINTED)
    chromium.media("print")
    try:
        chromium.paper()
        printed = chromium.run("window.printed")
        assert all(lines > 20 for lines in printed.pop("folded"))
        assert printed == {"lazy": 0, "controls": 0, "told": []}
        assert chromium.run(folded) == before
        # A page that shows some of its verdicts says so on paper too.
        chromium.run(typed("epsilon"))
        chromium.paper()
        (told,) = chromium.run("window.printed.told")
        assert told.endswith("verdicts shown: “epsilon”")
    finally:
        chromium.media("")


def unpacked(paper: bytes) -> bytes:
    """Return a PDF with its compressed parts beside it, as far as they are compressed alike."""
    parts = [paper]
    for packed in re.findall(rb"stream\r?\n(.*?)endstream", paper, re.DOTALL):
        try:
            parts.append(zlib.decompress(packed))
        except zlib.error:
            continue
    return b"".join(parts)


@needs_browser
@pytest.mark.parametrize("page", [FRONT, "raisa2021dphmc/index.html"])
def test_the_filter_works_by_keyboard(chromium: Browser, published: Path, page: str) -> None:
    chromium.open(published / page)
    everything = chromium.run(SHOWN)
    passed = []
    for _ in range(150):
        if chromium.run(FOCUSED) == "verdict=all":
            break
        chromium.press("Tab")
        passed.append(chromium.run("document.activeElement.outerHTML.slice(0, 80)"))
    assert chromium.run(FOCUSED) == "verdict=all", passed
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert chromium.run(outline) != "none"
    whole = chromium.run(STATUS)
    told = set()
    radios = "[...document.querySelector('[data-filter]').elements.verdict]"
    kinds = chromium.run(f"{radios}.map((radio) => radio.value).slice(1)")
    assert {"contradicted", "as_configured"} < set(kinds)
    for kind in kinds:
        chromium.press("ArrowRight")
        assert chromium.run(FOCUSED) == f"verdict={kind}"
        shown = chromium.run(SHOWN)
        assert shown == [row for row in everything if kind in row.split()]
        assert 0 < len(shown) < len(everything)
        told.add(chromium.run(STATUS))
    assert len(told) == len(kinds)
    assert whole not in told
    chromium.press("ArrowRight")  # and round
    assert chromium.run(SHOWN) == everything
    assert chromium.run(STATUS) == whole


def typed(text: str) -> str:
    """Return a script that types into the search of the filter."""
    return f"""(() => {{
      const {{ find }} = document.querySelector("[data-filter]").elements;
      find.value = {json.dumps(text)};
      find.dispatchEvent(new Event("input", {{ bubbles: true }}));
    }})()"""


@needs_browser
@pytest.mark.parametrize("page", [FRONT, "vinaroz2022dpsep/index.html"])
def test_the_address_keeps_the_filter(chromium: Browser, published: Path, page: str) -> None:
    texts = """[...document.querySelectorAll("tr[data-verdict]")]
      .filter((row) => !row.hidden && !row.dataset.counts)
      .map((row) => row.textContent.toLowerCase())"""
    kind = "contradicted"
    chromium.open(published / page, place=f"?verdict={kind}&find=TABLE+unwritten")
    assert chromium.run(texts) == []  # both words have to occur
    name = "dp-sep" if page == FRONT else "dp_sep"
    chromium.run(typed(f"{name}  EPSILON" if page != FRONT else name))
    shown, status = chromium.run(texts), chromium.run(STATUS)
    assert shown
    assert all(name in text and kind in text for text in shown)
    if page != FRONT:
        assert all("epsilon" in text for text in shown)
    address = chromium.run("location.search")
    assert re.fullmatch(rf"\?verdict={kind}&find={name}(\+\+?EPSILON)?", address)
    chromium.open(published / page, place=address)
    assert (chromium.run(texts), chromium.run(STATUS)) == (shown, status)
    chromium.open(published / page, place="?verdict=other")
    assert "?" not in chromium.run("document.querySelector('[data-status]').textContent")
    assert chromium.run("document.querySelector('[data-filter]').elements.verdict.value") == "all"
    chromium.run(typed("wine"))
    chromium.run(typed(""))
    assert chromium.run("location.search") == ""


@needs_browser
def test_a_link_to_a_verdict_shows_it_whatever_the_filter(
    chromium: Browser, published: Path
) -> None:
    name = "P-5-non-private-as_published"
    chromium.open(published / "raisa2021dphmc" / FRONT, place=f"?find=nowhere#{name}")
    assert chromium.run(f"document.getElementById({json.dumps(name)}).getClientRects().length") == 1
    assert chromium.run("location.search") == ""


# Of a column whose numbers have another order than their texts: what the headers of its table say,
# its cells, and its place.
COLUMN = """(() => {
  const cells = (table, at) => [...table.tBodies[0].rows].map((row) => row.cells[at].textContent);
  for (const table of document.querySelectorAll("table.grid")) {
    const headers = [...table.tHead.rows[0].cells];
    for (const [at, header] of headers.entries()) {
      const texts = cells(table, at);
      const numbers = [...texts].sort((a, b) => a - b);
      if (!header.querySelector("button") || texts.some((text) => !text || isNaN(text))) continue;
      if (String(numbers.map(Number)) === String([...texts].sort().map(Number))) continue;
      window.sorter = header.querySelector("button");
      return [headers.map((other) => other.ariaSort), texts, at];
    }
  }
})()"""


@needs_browser
def test_long_tables_are_sorted_by_buttons(chromium: Browser, published: Path) -> None:
    chromium.open(published / "raisa2021thesis" / FRONT)
    said, before, at = chromium.run(COLUMN)
    assert set(said) == {None}
    assert list(map(float, before)) != sorted(map(float, before))
    chromium.run("""{
      for (let up = window.sorter; (up = up.parentElement); ) if ("open" in up) up.open = true;
      window.sorter.focus();
    }""")
    for direction in ("ascending", "descending"):
        chromium.press(" ")
        said, now, _ = chromium.run(COLUMN)
        assert said[at] == direction
        assert said.count(None) == len(said) - 1
        numbers = [float(text) for text in now]
        assert numbers == sorted(map(float, before), reverse=direction == "descending")
    chromium.press(" ")
    said, now, _ = chromium.run(COLUMN)
    assert (set(said), now) == ({None}, before)
    short = """[...document.querySelectorAll("table")]
      .filter((t) => t.tBodies[0].rows.length <= 8 && t.querySelector("th button")).length"""
    assert chromium.run(short) == 0


@needs_browser
def test_a_count_leads_to_what_it_counts(chromium: Browser, published: Path) -> None:
    chromium.open(published / FRONT)
    counts = """[...document.querySelectorAll(".documents a.count")]
      .map((link) => [link.getAttribute("href"), link.querySelector(".badge").lastChild.data])"""
    links = chromium.run(counts)
    assert len(links) > 8
    for address, count in links[:3]:
        page, _, place = address.partition("?")
        chromium.open(published / page, place=f"?{place}")
        assert chromium.run(STATUS).split(" of ")[0] == count.split()[0]


@needs_browser
def test_a_link_to_a_printed_number_unfolds_it(chromium: Browser, published: Path) -> None:
    page = published / "vinaroz2022dpsep" / FRONT
    text = page.read_text(encoding="utf-8")
    _, folded = text.split("data-cells>", 1)
    found = re.search(r'<tr id="([^"]+)"', folded)
    assert found is not None
    chromium.open(page, place=f"#{found[1]}")
    seen = f"document.getElementById({json.dumps(found[1])}).getClientRects().length"
    assert chromium.run(seen) == 1


def test_every_verdict_is_told(published: Path) -> None:
    """Counts of the front page, and rows of the pages, are those of the files."""
    front = (published / FRONT).read_text(encoding="utf-8")
    number = 0
    for paper in sorted(path.parent.name for path in published.glob(f"*/{FRONT}")):
        with (published / paper / "verdict.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        number += len(rows)
        page = (published / paper / FRONT).read_text(encoding="utf-8")
        anchors = re.findall(r'<tr (?:role="row" )?id="([^"]+)" data-verdict="(\w+)"', page)
        wanted = [(f"{r['id'].replace('/', '.')}-{r['variant']}", r["verdict"]) for r in rows]
        assert sorted(anchors) == sorted(wanted)
        assert f'href="{paper}/index.html#' in front
    assert f"all ({number:,})" in front


def test_every_file_that_a_page_links_to_is_there(published: Path) -> None:
    links = 0
    for page in published.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r'(?:href|src)="([^"#?]+)', text):
            if not target.startswith(("https:", "http:", "data:")):
                assert (page.parent / target).is_file(), (page, target)
                links += 1
    assert links > 100


def test_pages_of_other_papers_stay_on_the_front_page(finished: Project) -> None:
    front = f"results/smoke/site/{FRONT}"
    text = (finished.folder / front).read_text(encoding="utf-8")
    assert all(f'href="{paper}/index.html"' in text for paper in PAPERS)
    alone = finished.planned(front, config=(*SMOKE, f"papers={PAPERS[0]}"))
    assert alone == []


def test_changed_settings_are_told(tiny: Project) -> None:
    site = tiny.folder / "results" / "tiny" / "site"
    told = "settings have changed since"
    texts = [path.read_text(encoding="utf-8") for path in site.glob(f"*/{FRONT}")]
    assert texts
    assert not any(told in text for text in texts)
    (record,) = (tiny.folder / "results" / "tiny").glob("*/provenance.json")
    assert json.loads(record.read_text(encoding="utf-8"))["settings"]


@pytest.fixture(scope="module")
def report(tiny: Project) -> str:
    """Return the text of the report that Snakemake makes of a run."""
    done = tiny.snakemake("--report", "whole.html", config=TINY)
    assert done.returncode == 0, done.stdout[-5000:]
    return (tiny.folder / "whole.html").read_text(encoding="utf-8")


def test_the_report_of_snakemake_works(report: str) -> None:
    for name in ("figure1.png", "verdict.csv", "guarantees.csv"):
        assert name in report


def test_the_report_of_snakemake_has_the_caption_of_each_output(tiny: Project, report: str) -> None:
    assert "Runs (dots) in each box: 2 runs; a run has 2 chains" in report
    assert (
        "<li>Plane, DP-penalty: proposal_sd 0.05, ratio_clip_bound 2, "
        "ratio_noise_multiplier 100</li>" in report
    )
    table = (tiny.folder / "workflow" / "report" / "budget.rst").read_text(encoding="utf-8")
    assert re.split(r"[.:{]", table)[0] in report


def test_a_caption_makes_no_figure_anew(tiny: Project) -> None:
    with tiny.edited("workflow/report/figure1.rst", "MMD (left)", "The MMD (left)"):
        jobs = tiny.planned(config=TINY)
    assert "page about raisa2021dphmc" in jobs
    assert not any(job.startswith(("figure1", "table")) for job in jobs)
