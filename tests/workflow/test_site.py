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
from tests.workflow.conftest import PAPERS, ROOT, SMOKE, TINY, Project

pytestmark = pytest.mark.slow

FRONT = "index.html"
SHARED = (FRONT, "errata.html")
PHONE, PAPER = 375, 680  # widths in pixels; the latter is that of a page of paper

needs_browser = pytest.mark.skipif(
    executable() is None, reason="no Chromium here (apt-get install chromium)"
)


@pytest.fixture(scope="package")
def published(tiny: Project) -> Path:
    """Return the folder of the site of the results under version control."""
    results = tiny.folder / "results" / "published"
    results.symlink_to(ROOT / "results" / "published")
    aside = tiny.folder / "config"
    kept = aside.rename(tiny.folder / "config.tiny")
    aside.symlink_to(ROOT / "config")
    try:
        done = tiny.snakemake(f"shown/{FRONT}", config=("site_dir=shown",))
    finally:
        aside.unlink()
        kept.rename(aside)
        results.unlink()
    assert done.returncode == 0, done.stdout[-5000:]
    return tiny.folder / "shown"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


def pages(site: Path) -> list[str]:
    found = sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))
    assert set(SHARED) < set(found)
    return found


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
def test_checks_find_what_is_wrong(chromium: Browser, published: Path, tmp_path: Path) -> None:
    """The checks of pages fail for a page that is broken in each of the ways they look for."""
    text = (published / "errata.html").read_text(encoding="utf-8")
    for name in ("style.css", "filter.js"):
        (tmp_path / name).write_bytes((published / name).read_bytes())
    broken = {
        "a script": ("</body>", "<script>missing()</script></body>"),
        "a missing file": ("</body>", '<img src="no.png" alt="a picture of nothing"></body>'),
        "the network": ("</body>", '<script src="https://example.org/a.js"></script></body>'),
        "a level": ("</body>", "<h5>too deep</h5></body>"),
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


@needs_browser
def test_the_front_page_prints(chromium: Browser, published: Path) -> None:
    chromium.open(published / FRONT)
    paper = chromium.paper()
    assert paper.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", unpacked(paper))) <= 20
    # Settings and guarantees, folded on the screen, are on paper.
    chromium.open(published / "raisa2021dphmc" / FRONT)
    chromium.run("""window.addEventListener("beforeprint", () => {
      window.unfolded = [...document.querySelectorAll("details.facts")].every((e) => e.open);
    })""")
    chromium.paper()
    assert chromium.run("window.unfolded") is True
    assert chromium.run("document.querySelector('details.facts').open") is False


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
    for _ in range(60):
        if chromium.run(FOCUSED) == "verdict=all":
            break
        chromium.press("Tab")
    assert chromium.run(FOCUSED) == "verdict=all"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert chromium.run(outline) != "none"
    whole = chromium.run(STATUS)
    told = set()
    for kind in ("reproduced", "not_reproduced", "not_comparable"):
        chromium.press("ArrowRight")
        assert chromium.run(FOCUSED) == f"verdict={kind}"
        shown = chromium.run(SHOWN)
        assert shown == [row for row in everything if kind in row.split()]
        assert 0 < len(shown) < len(everything)
        told.add(chromium.run(STATUS))
    assert len(told) == 3
    assert whole not in told
    chromium.press("ArrowRight")  # and round
    assert chromium.run(SHOWN) == everything
    assert chromium.run(STATUS) == whole


@needs_browser
def test_a_link_to_a_printed_number_unfolds_it(chromium: Browser, published: Path) -> None:
    page = published / "vinaroz2022dpsep" / FRONT
    text = page.read_text(encoding="utf-8")
    _, folded = text.split("data-cells>", 1)
    found = re.search(r'<tr role="row" id="([^"]+)"', folded)
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
        anchors = re.findall(r'<tr role="row" id="([^"]+)" data-verdict="(\w+)"', page)
        wanted = [(f"{r['id'].replace('/', '.')}-{r['variant']}", r["verdict"]) for r in rows]
        assert sorted(anchors) == sorted(wanted)
        assert f'href="{paper}/index.html#' in front
    assert f"all ({number:,})" in front


def test_every_file_that_a_page_links_to_is_there(published: Path) -> None:
    links = 0
    for page in published.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r'(?:href|src)="([^"#]+)', text):
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


def test_the_report_of_snakemake_works(tiny: Project) -> None:
    done = tiny.snakemake("--report", "whole.html", config=TINY)
    assert done.returncode == 0, done.stdout[-5000:]
    text = (tiny.folder / "whole.html").read_text(encoding="utf-8")
    for name in ("figure1.png", "verdict.csv", "guarantees.csv"):
        assert name in text
