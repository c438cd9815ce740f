"""``python -m dpmc_papers.site OUT``: documentation, API and published results as one site."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from dpmc import yaml_files
from dpmc.__main__ import run
from dpmc_papers.config import reader
from dpmc_papers.site import pages
from dpmc_papers.site.build import PUBLISHED, build
from dpmc_papers.site.sources import Source


def _site(asked: argparse.Namespace) -> str:
    root, out = Path(asked.root).resolve(), Path(asked.out)
    defaults = yaml_files.read_yaml(root / "config" / "config.yaml")
    every = {**defaults, "scale": "paper", "papers": list(reader.papers(root))}
    sources = [
        Source.of_document(paper.determining(), root / PUBLISHED / key, "paper", root)
        for key, paper in reader.load_config(every, root).papers.items()
        if (root / PUBLISHED / key).is_dir()
    ]
    texts = (root / "workflow" / "report").glob("*.rst")
    captions = {path.name: path.read_text(encoding="utf-8") for path in texts}
    with tempfile.TemporaryDirectory(prefix="dpmc-pages-") as name:
        folders = {source.key: Path(name) / source.key for source in sources}
        shown = [source.of_what_is_there() for source in sources]
        for source in shown:
            pages.write(source, captions, folders[source.key] / "index.md")
        build(root, shown, folders, out, api=not asked.no_api, strict=True)
    return str(out / "index.html")


def main() -> int:
    """Build the site; return 0, or 1 after one line on standard error."""
    parser = argparse.ArgumentParser(prog="python -m dpmc_papers.site", description=__doc__)
    parser.add_argument("out", metavar="OUT", help="folder to write; replaced if it is there")
    parser.add_argument("--no-api", action="store_true", help="leave the API reference out")
    parser.add_argument("--root", default=".", help="folder that holds docs/ and results/")
    parser.set_defaults(run=_site)
    return run(parser, None)


if __name__ == "__main__":
    sys.exit(main())
