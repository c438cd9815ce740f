"""The site of the documentation: it builds without a warning, and its links lead somewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.html_links import broken_links

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


def build(folder: Path) -> subprocess.CompletedProcess[str]:
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
def project(tmp_path_factory) -> Path:
    """A copy of docs/ beside everything that its pages link to, with the site."""
    folder = tmp_path_factory.mktemp("project")
    hidden = shutil.ignore_patterns("_generated")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=hidden)
    for path in ROOT.iterdir():
        if path.name not in ("docs", "build") and not path.name.startswith("."):
            (folder / path.name).symlink_to(path)
    done = build(folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder


def test_every_link_of_the_site_leads_somewhere(project) -> None:
    assert broken_links(project / "build/docs") == []


def test_the_site_has_every_page_and_the_api(project) -> None:
    site = project / "build/docs"
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert pages <= {path.stem for path in site.glob("*.html")}
    index = (site / "index.html").read_text(encoding="utf-8")
    for page in sorted(pages - {"index"}):
        assert f'class="reference internal" href="{page}.html"' in index
    names = (site / "_generated/public.html").read_text(encoding="utf-8")
    assert 'href="sampling.html#dpmc.fitting.fit"' in names


@pytest.mark.parametrize(
    "line", ["[nowhere](no_such_page.md)", "[nowhere](index.md#no-such-heading)"]
)
def test_a_broken_link_fails_the_build(project, line) -> None:
    page = project / "docs/cluster.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(f"{text}\n\n{line}\n", encoding="utf-8")
    done = build(project)
    page.write_text(text, encoding="utf-8")
    assert done.returncode != 0
    assert "cluster.md" in done.stderr


def test_broken_links_of_pages_are_found(tmp_path) -> None:
    (tmp_path / "a.html").write_text('<p id="here"><a href="#here">a</a><a href="b.html#c">b</a>')
    (tmp_path / "b.html").write_text('<a href="a.html#here">a</a><img src="c.png"><a href="x://y">')
    assert broken_links(tmp_path) == ["a.html: b.html#c", "b.html: c.png"]
