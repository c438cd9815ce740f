"""The site that ``make docs`` builds: whole, without a network, and readable by everybody."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from tests.support.browser import Browser, browser, executable
from tests.support.html_links import broken_links

ROOT = Path(__file__).parents[2]
LARGEST = 300_000  # bytes of a page
PHONE = 375  # pixels
# Of each kind of page one: front pages, a figure, a table, claims, a series, settings, a text.
KINDS = (
    "index.html",
    "errata.html",
    "results/index.html",
    "results/raisa2021dphmc/index.html",
    "results/raisa2021dphmc/figure1.html",
    "results/alparslan2023thesis/table7_2.html",
    "results/raisa2021thesis/comparison.html",
    "results/alparslan2023thesis/claims.html",
    "results/raisa2021thesis/settings.html",
)
CLAIMS = "results/alparslan2023thesis/claims.html"
FIGURE = "results/raisa2021dphmc/figure1.html"

pytestmark = pytest.mark.slow
needs_browser = pytest.mark.skipif(
    executable() is None, reason="no Chromium here (apt-get install chromium)"
)
AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
# Of the rows of a table two of each verdict are enough: axe takes minutes for them all.
THIN = """(() => {
  for (const body of document.querySelectorAll("tbody")) {
    const seen = {};
    for (const row of [...body.rows]) {
      const kind = row.dataset.verdict || "";
      seen[kind] = (seen[kind] || 0) + 1;
      if (seen[kind] > 2) row.remove();
    }
  }
})()"""
VIOLATIONS = """axe.run(document, { resultTypes: ["violations"] }).then((result) =>
  result.violations.map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 200)}`))"""
SHOWN = """[...document.querySelectorAll("table.claims tbody tr")]
  .filter((row) => !row.hidden).map((row) => row.dataset.verdict)"""


def make(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run ``make docs`` in a copy of the project, with the packages of these tests."""
    packages = {"UV_NO_SYNC": "1", "UV_PROJECT_ENVIRONMENT": sys.prefix}
    return subprocess.run(
        ["make", "docs"],
        cwd=folder,
        env=os.environ | packages,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of docs/ beside everything that its pages link to, with the site."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "docs", folder / "docs")
    for path in ROOT.iterdir():
        if path.name not in ("docs", "build") and not path.name.startswith("."):
            (folder / path.name).symlink_to(path)
    done = make(folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def site(project: Path) -> Path:
    return project / "build/docs"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


def test_every_link_leads_somewhere(site: Path) -> None:
    assert broken_links(site) == []


def test_the_site_has_every_page_the_results_and_the_api(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert pages <= {path.stem for path in site.glob("*.html")}
    index = (site / "index.html").read_text(encoding="utf-8")
    for page in sorted(pages - {"index"}):
        assert f'class="reference internal" href="{page}.html"' in index
    for path in (ROOT / "results/published").glob("*/verdict.csv"):
        assert f'href="results/{path.parent.name}/index.html"' in index
    names = (site / "api/public.html").read_text(encoding="utf-8")
    assert 'href="sampling.html#dpmc.fitting.fit"' in names
    assert (site / "_downloads").is_dir()  # code and licence
    found = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "results/raisa2021dphmc/figure1" in found


def test_no_page_of_results_is_large_and_none_asks_the_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        if "api" not in page.relative_to(site).parts[0]:
            assert len(text.encode()) < LARGEST, page
        assert not re.search(r'(src|rel="stylesheet" [^>]*href)="(https?:)?//', text), page


def test_a_broken_link_fails_the_build(project: Path, tmp_path: Path) -> None:
    page = project / "docs/glossary.md"
    text = page.read_text(encoding="utf-8")
    lost = "[nowhere](no_such_page.md)\n\n[nowhere](index.md#no-such-heading)"
    page.write_text(f"{text}\n\n{lost}\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "dpmc_papers.site", str(tmp_path / "out"), "--no-api"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    page.write_text(text, encoding="utf-8")
    assert done.returncode == 1
    assert re.search(r"glossary.md:\d+: WARNING: .*no_such_page.md", done.stderr)
    assert re.search(r"glossary.md:\d+: WARNING: .*no-such-heading", done.stderr)


def test_broken_links_of_pages_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<p id="here"><a href="#here">a</a><a href="b.html#c">b</a>')
    (tmp_path / "b.html").write_text('<a href="a.html#here">a</a><img src="c.png"><a href="x://y">')
    assert broken_links(tmp_path) == ["a.html: b.html#c", "b.html: c.png"]


def violations(chromium: Browser, page: Path, width: int, scheme: str) -> list[str]:
    chromium.media("", scheme)
    try:
        chromium.open(page, width)
        chromium.run(THIN)
        chromium.run(f"{AXE}; true")
        found: list[str] = chromium.run(VIOLATIONS)
        return found
    finally:
        chromium.media("")


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_pages_are_accessible(chromium: Browser, site: Path, width: int, scheme: str) -> None:
    found = {page: violations(chromium, site / page, width, scheme) for page in KINDS}
    assert {page: faults for page, faults in found.items() if faults} == {}


@needs_browser
def test_a_planted_violation_is_found(chromium: Browser, site: Path) -> None:
    text = (site / "results/index.html").read_text(encoding="utf-8")
    planted = {
        "image-alt": '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">',
        "color-contrast": '<p style="color: #aaa; background: #fff">pale</p>',
    }
    for rule, markup in planted.items():
        page = site / "results" / f"{rule}.html"
        page.write_text(text.replace("</article>", f"{markup}</article>"), encoding="utf-8")
        found = violations(chromium, page, 1440, "light")
        page.unlink()
        assert [fault.split(":")[0] for fault in found] == [rule]


@needs_browser
@pytest.mark.parametrize("page", KINDS)
def test_a_page_loads_without_complaint_and_fits_a_phone(
    chromium: Browser, site: Path, page: str
) -> None:
    assert chromium.open(site / page, PHONE) == []
    assert chromium.run("document.documentElement.scrollWidth") <= PHONE
    images = "[...document.images].every((image) => image.alt.trim().length > 10)"
    assert chromium.run(images)


@needs_browser
def test_claims_are_filtered_and_the_address_keeps_it(chromium: Browser, site: Path) -> None:
    chromium.open(site / CLAIMS)
    everything = chromium.run(SHOWN)
    typed = """(() => {
      const verdict = document.querySelector(".find select");
      const find = document.querySelector(".find input");
      verdict.value = "contradicted";
      find.value = "table  7";
      find.dispatchEvent(new Event("input", { bubbles: true }));
    })()"""
    chromium.run(typed)
    shown = chromium.run(SHOWN)
    assert 0 < len(shown) < everything.count("contradicted")
    assert set(shown) == {"contradicted"}
    status = chromium.run("document.querySelector('.find output').textContent")
    assert status == f"{len(shown)} of {len(everything)} rows"
    address = chromium.run("location.search")
    assert address.startswith("?verdict=contradicted&find=table")
    chromium.open(site / CLAIMS, place=address)
    assert chromium.run(SHOWN) == shown
    row = re.search(r'<tr id="([^"]+)" data-verdict="reproduced"', (site / CLAIMS).read_text())
    chromium.open(site / CLAIMS, place=f"{address}#{row[1]}")
    assert chromium.run(SHOWN) == everything  # a link to a row shows it
    chromium.open(site / CLAIMS, place="?verdict=other")
    assert chromium.run(SHOWN) == everything


@needs_browser
def test_the_filter_is_reached_by_keyboard(chromium: Browser, site: Path) -> None:
    chromium.open(site / CLAIMS)
    for _ in range(150):
        chromium.press("Tab")
        if chromium.run("document.activeElement.name") == "verdict":
            break
    assert chromium.run("document.activeElement.name") == "verdict"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert chromium.run(outline) != "none"


@needs_browser
def test_long_tables_are_sorted_by_buttons(chromium: Browser, site: Path) -> None:
    chromium.open(site / "results/raisa2021thesis/comparison.html")
    column = """(() => {
      const table = document.querySelector("table.results");
      const heads = [...table.tHead.rows[0].cells];
      const at = heads.findIndex((head) => head.textContent === "num iterations");
      heads[at].querySelector("button").focus();
      return [heads[at].ariaSort, [...table.tBodies[0].rows].map((r) => r.cells[at].textContent)];
    })()"""
    _, before = chromium.run(column)
    numbers = [float(text.replace(",", "")) for text in before if text]
    assert numbers != sorted(numbers)
    for direction, reverse in (("ascending", False), ("descending", True)):
        chromium.press(" ")
        said, now = chromium.run(column)
        assert said == direction
        found = [float(text.replace(",", "")) for text in now if text]
        assert found == sorted(numbers, reverse=reverse)
    chromium.press(" ")
    assert chromium.run(column) == [None, before]


@needs_browser
def test_a_figure_is_zoomed_and_closed_by_keyboard(chromium: Browser, site: Path) -> None:
    chromium.open(site / FIGURE)
    chromium.run("document.querySelector('a:has(img)').focus()")
    chromium.run("document.activeElement.click()")
    assert chromium.run("document.querySelector('dialog.zoom img').clientWidth") > 1000
    chromium.press("Escape")
    closed = """new Promise((tell) => {
      const start = performance.now();
      const look = () => {
        const gone = !document.querySelector("dialog");
        if (gone || performance.now() - start > 10000) tell(gone); else setTimeout(look, 20);
      };
      look();
    })"""
    assert chromium.run(closed)
    assert chromium.run("document.activeElement.querySelector('img') !== null")


@needs_browser
def test_paper_shows_the_content_without_controls(chromium: Browser, site: Path) -> None:
    chromium.open(site / CLAIMS, 680)
    chromium.media("print")
    try:
        controls = "[...document.querySelectorAll('.find, .sidebar-drawer')]"
        seen = f"{controls}.filter((e) => e.getClientRects().length).length"
        assert chromium.run(seen) == 0
        assert chromium.paper().startswith(b"%PDF")
    finally:
        chromium.media("")


def test_a_run_is_told_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dpmc_papers.site", "out", "--root", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert re.fullmatch(r"dpmc: .*config\.yaml: .*\n", done.stderr)
    assert list(tmp_path.iterdir()) == []
