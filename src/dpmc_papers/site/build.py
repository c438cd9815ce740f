"""Site by Sphinx: the pages of ``docs`` and the results of documents, with one search."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

from dpmc.types import DpmcError
from dpmc_papers.pipeline import files
from dpmc_papers.site import claims_figure, pages
from dpmc_papers.site.sources import Source, cited

# Pages that live elsewhere in the checkout, by their names on the site.
ELSEWHERE = {
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "configuration.md": "config/README.md",
    "planted_bugs.md": "tests/mutation/README.md",
    "security.md": "SECURITY.md",
}
RESULTS = "results"
FRONT = f"{RESULTS}/index.md"
PUBLISHED = Path("results/published")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\(([^)\s]+)\)")
# A claim, figure or table in the text on a document: a name of lower case or with a hyphen.
CODE = re.compile(r"(?<![`\[])`([A-Za-z][\w./-]*)`(?![`\]])")


def build(
    checkout: Path,
    sources: Sequence[Source],
    folders: Mapping[str, Path],
    out: Path,
    *,
    api: bool = False,
    strict: bool = False,
) -> None:
    """Build the site as HTML, which opens from the file system and asks for nothing else.

    Parameters
    ----------
    checkout : Path
        Folder that holds ``docs``.
    sources : sequence of Source
        The documents with results, in their order.
    folders : mapping of str to Path
        The pages of each of them, as :func:`dpmc_papers.site.pages.write` makes them.
    out : Path
        Replaced.
    api : bool
        Whether to render the API reference from the docstrings.
    strict : bool
        Whether a warning, such as a broken link, is a fault.
    """
    from sphinx.cmd.build import build_main

    with tempfile.TemporaryDirectory(prefix="dpmc-site-") as name:
        source = Path(name).resolve() / "source"
        assemble(checkout, sources, folders, source, api)
        shutil.rmtree(out, ignore_errors=True)
        options = [*(["-t", "api"] if api else []), *(["-W", "--keep-going"] if strict else [])]
        faults = StringIO()
        with redirect_stderr(faults):
            code = build_main(["-q", *options, "-d", f"{name}/doctrees", str(source), str(out)])
    if code:
        raise DpmcError(f"site: Sphinx says {faults.getvalue().strip() or code}")


def assemble(
    checkout: Path, sources: Sequence[Source], folders: Mapping[str, Path], target: Path, api: bool
) -> None:
    """Put the pages of ``docs`` and those of results into one folder, as Sphinx reads them.

    Links of the pages of ``docs`` are as GitHub follows them, relative to themselves. On the site
    one to a published result leads to its page, one to another page of the project to that page,
    one to another file offers the file, and one to a folder is plain text.
    """
    docs = checkout / "docs"
    target.mkdir(parents=True)
    for path in docs.iterdir():
        if path.suffix != ".md" and not path.name.startswith((".", "_")):
            (target / path.name).symlink_to(path.resolve())
    (target / RESULTS).mkdir()
    for key, folder in folders.items():
        # No link: pages name each other by where they really are.
        shutil.copytree(folder, target / RESULTS / key)
    shown = {source.key: pages.addresses(source) for source in sources}
    texts = {path.name: path for path in sorted(docs.glob("*.md"))}
    others = {name: checkout / path for name, path in ELSEWHERE.items()}
    texts |= {name: path for name, path in others.items() if path.is_file()}
    for name, path in texts.items():
        text = rewritten(path.read_text(encoding="utf-8"), path, checkout, target, folders)
        if name == "errata.md" or name.removesuffix(".md") in shown:
            text = named(text, name.removesuffix(".md"), shown)
        if name == "index.md":
            text += navigation(text, [source.key for source in sources], api)
        files.write_text(target / name, text)
    claims_figure.write({cited(s.config): s.verdicts for s in sources}, target / RESULTS)
    files.write_text(target / FRONT, front(sources))


def front(sources: Sequence[Source]) -> str:
    """Markdown of the page of all results: of each document its finding and how claims came out."""
    parts = [
        "# Results\n",
        "Every figure, table and claim of the documents, run again. Of each document the upper bar "
        "counts how its claims come out, the lower one whether the runs have the privacy that they "
        "were given.\n",
        "![Claims of all documents, by how they came out](claims.svg)\n",
    ]
    for source in sources:
        claims = [entry for entry in source.verdicts if not entry.series]
        numbers = pages.single(source.verdicts)
        bold = re.match(r"\*\*.+?\*\*", source.finding, re.DOTALL)
        parts += [f"## [{pages.plain(source.config['title'])}]({source.key}/index.md)\n"]
        parts += [f"{bold[0]}\n"] if bold else []
        parts.append(f"[Claims]({source.key}/claims.md): {pages.counted(claims) or 'none'}.")
        if numbers:
            parts.append(f"Printed numbers: {pages.counted(numbers)}.")
        if lacking := sum(entry.verdict == "not run" for entry in source.verdicts):
            why = "their data could not be had"
            if source.scale != "paper":
                why = f"they need `--config scale=paper`, or {why}"
            parts.append(f"Of {len(source.verdicts):,} verdicts {lacking:,} are not run: {why}.")
        parts.append("")
    return "\n".join(parts)


def rewritten(
    text: str, path: Path, checkout: Path, target: Path, folders: Mapping[str, Path]
) -> str:
    """Text of a page, from a file at `path`, with links as on the site; see :func:`assemble`."""

    def replace(match: re.Match[str]) -> str:
        image, label, link = match.groups()
        label = rewritten(label, path, checkout, target, folders)
        place, _, anchor = link.partition("#")
        if "://" in link or not place:
            return f"{image}[{label}]({link})"
        file = Path(os.path.normpath(path.parent / place))
        page = _on_site(file, checkout, target, folders)
        if page is None:
            return label
        return f"{image}[{label}]({page}{f'#{anchor}' if anchor else ''})"

    return LINK.sub(replace, text)


def _on_site(file: Path, checkout: Path, target: Path, folders: Mapping[str, Path]) -> str | None:
    """Where a link to a file of the checkout leads; None where it is no link on the site."""
    inside = file.relative_to(checkout) if file.is_relative_to(checkout) else file
    if inside.is_relative_to(PUBLISHED):
        key, *rest = inside.relative_to(PUBLISHED).parts or ("",)
        if key not in folders:
            return FRONT if not key or key.startswith("claims.") else None
        name = f"{rest[0].split('.')[0]}.md" if rest else "index.md"
        name = "claims.md" if name == "verdict.md" else name
        return f"{RESULTS}/{key}/{name if (folders[key] / name).is_file() else 'index.md'}"
    if file.is_dir():
        return None
    for name, where in ELSEWHERE.items():
        if inside == Path(where):
            return name
    if file.is_relative_to(checkout / "docs"):
        return str(file.relative_to(checkout / "docs"))
    return os.path.relpath(file.resolve(), target)


def named(text: str, page: str, shown: Mapping[str, Mapping[str, str]]) -> str:
    """Markdown of `page` in which names of claims, figures and tables are links to them.

    Below a heading of the second level that names a document in parentheses, names are those of
    that document. `shown` has the address of each name of each document.
    """
    key, lines = page, []
    for line in text.split("\n"):
        if found := re.match(r"## .*\(`(\w+)`\)$", line):
            key = found[1]
        places = shown.get(key, {})
        if not line.startswith("#"):
            for name in set(CODE.findall(line)) & places.keys():
                link = f'<a href="{RESULTS}/{key}/{places[name]}"><code>{name}</code></a>'
                line = line.replace(f"`{name}`", link)
        lines.append(line)
    return "\n".join(lines)


def navigation(index: str, keys: Sequence[str], api: bool) -> str:
    """Hidden tables of contents: one of the results, and one for each section of the index."""
    results = "\n".join(
        f"{RESULTS}/{name}" for name in ("index", *(f"{key}/index" for key in keys))
    )
    tables, seen = [_contents("Results", results)], set[str]()
    for section in index.split("\n## ")[1:]:
        caption = section.partition("\n")[0]
        links = [link.partition("#")[0] for _, _, link in LINK.findall(section)]
        found = [
            link.removesuffix(".md")
            for link in dict.fromkeys(links)
            if link.endswith(".md") and link not in seen and "/" not in link
        ]
        seen.update(f"{name}.md" for name in found)
        glob = "api/*\n" if api and caption == "Reference" else ""
        tables.append(_contents(caption, glob + "\n".join(found)))
    return "\n" + "\n\n".join(tables)


def _contents(caption: str, entries: str) -> str:
    return f"```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n{entries}\n```"
