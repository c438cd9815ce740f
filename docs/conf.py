"""Settings of Sphinx: the pages of this folder, and an API reference from the docstrings.

Pages link to files as GitHub does, relative to themselves. On the site a link to a page of the
project leads to that page, one to another file offers the file, and one to a folder is plain text.
"""

import importlib
import os
import pkgutil
import re
from pathlib import Path

# Compiled functions show their signatures and docstrings as plain ones do.
os.environ["NUMBA_DISABLE_JIT"] = "1"

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
GENERATED = "_generated"
# Pages that live elsewhere, by their names on the site.
ELSEWHERE = {
    f"{GENERATED}/contributing": ROOT / "CONTRIBUTING.md",
    f"{GENERATED}/changelog": ROOT / "CHANGELOG.md",
    f"{GENERATED}/configuration": ROOT / "config/README.md",
    f"{GENERATED}/planted_bugs": ROOT / "tests/mutation/README.md",
}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\(([^)\s]+)\)")

project = "dpmc"
author = "The dpmc authors"
project_copyright = author
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_parser"]
exclude_patterns = ["examples"]
html_theme = "furo"
html_title = "dpmc"
html_copy_source = False
html_show_sphinx = False
nitpicky = True
default_role = "code"
myst_heading_anchors = 4

# Types and shapes are in the docstrings.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
# Navigation holds pages, not the hundreds of functions on them.
toc_object_entries = False
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
# Modules of the API reference by the page that they are on; ``*`` is every public module.
MODULES = {
    "sampling": [
        "fitting", "fits.fit", "fits.summary", "planning", "planning.simulated",
        "shards.rows", "shards.federation", "mcmc.methods.*", "models.*", "types", "rows.tuples",
        "registry",
    ],
    "privacy": [
        "privacy.budgets", "privacy.calibration", "privacy.discrete", "privacy.empirical",
        "privacy.events", "privacy.joint", "privacy.ledger", "privacy.single_releases",
        "privacy.gaussian_noise", "privacy.noise_calibration", "privacy.accountants.*",
    ],
    "diagnostics": ["diagnostics.*"],
    "league": [
        "league.task", "league.score", "league.measures", "league.gate", "league.submission",
        "league.foreign", "league.table", "league.theory", "league.price", "league.rivals.*",
    ],
    "linreg": [
        "linreg.release", "linreg.sufficient_statistics", "linreg.types", "linreg.methods.*",
    ],
    "ep": [
        "ep.mixture.model", "ep.mixture.engine", "ep.mixture.methods.*",
        "ep.network.task", "ep.network.settings", "ep.network.methods.*",
    ],
    "statsel": [
        "statsel.lookup", "statsel.ranking", "statsel.releases", "statsel.sampling",
        "statsel.types", "statsel.populations.*", "statsel.statistics.*", "statsel.mechanisms.*",
        "statsel.chains.methods.*", "statsel.fisher.methods.*",
    ],
}  # fmt: skip


def origin(docname: str) -> Path:
    """Return the file that a page of the site is made from."""
    return ELSEWHERE.get(docname, DOCS / f"{docname}.md")


def on_site(link: str, docname: str) -> str | None:
    """Return where a link of a page leads on the site, or None if it leads to a folder."""
    target, _, anchor = link.partition("#")
    if "://" in link or not target:
        return link
    path = Path(os.path.normpath(origin(docname).parent / target))
    if path.is_dir():
        return None
    names = {page: DOCS / f"{name}.md" for name, page in ELSEWHERE.items()}
    relative = os.path.relpath(names.get(path, path), (DOCS / docname).parent)
    return relative + (f"#{anchor}" if anchor else "")


def rewrite(text: str, docname: str) -> str:
    """Return the text of a page with links as they are on the site."""

    def replace(match: re.Match[str]) -> str:
        image, label, link = match.groups()
        target = on_site(link, docname)
        label = rewrite(label, docname)
        return label if target is None else f"{image}[{label}]({target})"

    return LINK.sub(replace, text)


def navigation(index: str) -> str:
    """Return a hidden table of contents for each section of the index."""
    tables, seen = [], set()
    for section in index.split("\n## ")[1:]:
        links = [link.partition("#")[0] for _, _, link in LINK.findall(section)]
        pages = [link for link in dict.fromkeys(links) if link.endswith(".md") and link not in seen]
        seen.update(pages)
        entries = "\n".join(page.removesuffix(".md") for page in pages)
        if "Reference" in section.partition("\n")[0]:
            api = "\n".join(f"{GENERATED}/{page}" for page in ("public", *MODULES))
            entries = f"{api}\n{entries}"
        caption = section.partition("\n")[0]
        tables.append(f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```")
    return "\n\n".join(tables)


def write(app: object, name: str, text: str) -> None:
    """Write a generated page, unless it is there already: what is unchanged is not read again."""
    path = Path(app.srcdir) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def copy_pages(app: object) -> None:
    """Copy the pages that live elsewhere to the folder of generated ones."""
    for name, page in ELSEWHERE.items():
        write(app, f"{name}.md", page.read_text(encoding="utf-8"))


def module_names(pattern: str) -> list[str]:
    """Return the full names of the modules that an entry of `MODULES` stands for."""
    if not pattern.endswith(".*"):
        return [f"dpmc.{pattern}"]
    package = f"dpmc.{pattern.removesuffix('.*')}"
    found = (ROOT / "src" / package.replace(".", "/")).glob("[!_]*.py")
    return [package, *(f"{package}.{path.stem}" for path in sorted(found))]


def write_api(app: object) -> None:
    """Write the pages of the API reference."""
    for page, patterns in MODULES.items():
        lines = [f"API: {page}", "=" * 40, ""]
        for name in (name for pattern in patterns for name in module_names(pattern)):
            lines += [name, "-" * len(name), "", f".. automodule:: {name}", ""]
        write(app, f"{GENERATED}/{page}.rst", "\n".join(lines))


def write_public_names(app: object) -> None:
    """Write the page of public names, each with the first line of its docstring."""
    lines = ["Public names", "============", ""]
    for package in map(importlib.import_module, ("dpmc", "dpmc.privacy", "dpmc.statsel")):
        first = package.__doc__.splitlines()[0]
        lines += [package.__name__, "-" * len(package.__name__), "", first, ""]
        for name in package.__all__:
            value = getattr(package, name)
            home = getattr(value, "__module__", None)
            target = f"{home}.{value.__qualname__}" if home else value.__name__
            first = (value.__doc__ or "").splitlines()[0]
            lines += [f"- :py:obj:`{package.__name__}.{name} <{target}>`: {first}"]
        lines += [""]
    write(app, f"{GENERATED}/public.rst", "\n".join(lines))


def plain(
    app: object, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Prepare a docstring: bars are absolute values, and a first line with a colon has no type."""
    for k, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(`+[^`]*`+)", line)
            lines[k] = "".join(p if p.startswith("`") else p.replace("|", "\\|") for p in parts)
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]


def exists(name: str) -> bool:
    """Say whether something of this full name is there: a module, or what it or a class holds."""
    try:
        importlib.import_module(name)
    except ImportError:
        head, _, tail = name.rpartition(".")
        if not head or not exists(head):
            return False
        owner = pkgutil.resolve_name(head)
        return hasattr(owner, tail) or tail in getattr(owner, "__annotations__", {})
    return True


def unlisted(app: object, env: object, node: object, text: object) -> object:
    """Leave as text a reference to what exists and has no place on the site; others are broken."""
    target = node["reftarget"]
    names = (target, f"{node.get('py:module')}.{target}")
    return text if node["refdomain"] == "py" and any(map(exists, names)) else None


def read(app: object, docname: str, source: list[str]) -> None:
    """Give a page the links and the index the navigation that they have on the site."""
    if docname in ELSEWHERE or not docname.startswith(GENERATED):
        source[0] = rewrite(source[0], docname)
    if docname == "index":
        source[0] += "\n" + navigation(source[0])


def setup(app: object) -> None:
    """Connect the functions above to the build."""
    app.connect("builder-inited", copy_pages)
    app.connect("builder-inited", write_api)
    app.connect("builder-inited", write_public_names)
    app.connect("source-read", read)
    app.connect("autodoc-process-docstring", plain, priority=400)
    app.connect("missing-reference", unlisted)
