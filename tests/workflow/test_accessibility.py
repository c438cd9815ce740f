"""Every page of the site has no violation that axe-core finds, wide and narrow, light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from tests.workflow.browser import Browser, browser, executable
from tests.workflow.test_site import pages

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(executable() is None, reason="no Chromium here (apt-get install chromium)"),
]
AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
# Of rows and items that one template makes the first are enough: axe takes minutes for them all.
THIN = """(() => {
  for (const body of document.querySelectorAll("tbody")) {
    const seen = {};
    for (const row of [...body.rows]) {
      const kind = row.dataset.verdict || "";
      seen[kind] = (seen[kind] || 0) + 1;
      if (seen[kind] > 1) row.remove();
    }
  }
  for (const list of document.querySelectorAll("ul")) {
    [...list.children].slice(10).forEach((item) => item.remove());
  }
  const articles = [...document.querySelectorAll("article")];
  articles.slice(8).forEach((article) => article.remove());
})()"""
VIOLATIONS = """axe.run(document, { resultTypes: ["violations"] }).then((result) =>
  result.violations.map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 200)}`))"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("axe")) as running:
        yield running


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_pages_are_accessible(chromium: Browser, published: Path, width: int, scheme: str) -> None:
    for page in pages(published):
        assert violations(chromium, published / page, width, scheme) == [], page


def test_a_planted_violation_is_found(chromium: Browser, published: Path, tmp_path: Path) -> None:
    text = (published / "verdicts.html").read_text(encoding="utf-8")
    (tmp_path / "style.css").write_bytes((published / "style.css").read_bytes())
    planted = {
        "image-alt": '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">',
        "color-contrast": '<p style="color: #aaa; background: #fff">pale</p>',
    }
    for rule, markup in planted.items():
        page = tmp_path / f"{rule}.html"
        page.write_text(text.replace("</main>", f"{markup}</main>"), encoding="utf-8")
        assert [v.split(":")[0] for v in violations(chromium, page, 1440, "light")] == [rule]
