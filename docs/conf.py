"""Settings of Sphinx: pages put together by `dpmc_papers.site.build`, an API reference on demand.

With the tag ``api`` the public modules are rendered from their docstrings.
"""

import importlib
import os
import pkgutil
import re
from pathlib import Path

# Compiled functions show their signatures and docstrings as plain ones do.
os.environ["NUMBA_DISABLE_JIT"] = "1"

# This folder is put together from links to that of the checkout.
ROOT = Path(__file__).resolve().parents[1]
API = "api"

project = "dpmc"
author = "The dpmc authors"
project_copyright = author
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_parser"]
exclude_patterns = ["examples"]
html_static_path = ["static"]
html_css_files = ["results.css"]
html_js_files = ["results.js"]
# A page from the file system cannot fetch others for their lines.
html_show_search_summary = False
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
        "dpmc_league.task", "dpmc_league.score", "dpmc_league.measures", "dpmc_league.gate",
        "dpmc_league.submission", "dpmc_league.foreign", "dpmc_league.table", "dpmc_league.theory",
        "dpmc_league.price", "dpmc_league.rivals.*",
    ],
    "linreg": [
        "linreg.release", "linreg.sufficient_statistics", "linreg.types", "linreg.methods.*",
    ],
    "ep": [
        "ep.mixture.model", "ep.mixture.engine", "ep.mixture.dp_sep", "ep.mixture.methods",
        "ep.network.task", "ep.network.settings", "ep.network.dp_sep", "ep.network.methods",
    ],
    "statsel": [
        "statsel.lookup", "statsel.ranking", "statsel.releases", "statsel.sampling",
        "statsel.types", "statsel.populations", "statsel.statistics", "statsel.mechanisms",
        "statsel.chains.methods", "statsel.fisher.estimators",
    ],
}  # fmt: skip


def write(app: object, name: str, text: str) -> None:
    """Write a generated page."""
    path = Path(app.srcdir) / API / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def module_names(pattern: str) -> list[str]:
    """Full names of the modules that an entry of `MODULES` stands for."""
    full = pattern if pattern.startswith("dpmc_") else f"dpmc.{pattern}"
    if not full.endswith(".*"):
        return [full]
    package = full.removesuffix(".*")
    found = (ROOT / "src" / package.replace(".", "/")).glob("[!_]*.py")
    return [package, *(f"{package}.{path.stem}" for path in sorted(found))]


def write_api(app: object) -> None:
    """Write the pages of the API reference."""
    for page, patterns in MODULES.items():
        lines = [f"API: {page}", "=" * 40, ""]
        for name in (name for pattern in patterns for name in module_names(pattern)):
            lines += [name, "-" * len(name), "", f".. automodule:: {name}", ""]
        write(app, f"{page}.rst", "\n".join(lines))


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
    write(app, "public.rst", "\n".join(lines))


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


def setup(app: object) -> None:
    """Connect the functions above to the build."""
    if app.tags.has(API):
        app.connect("builder-inited", write_api)
        app.connect("builder-inited", write_public_names)
    app.connect("autodoc-process-docstring", plain, priority=400)
    app.connect("missing-reference", unlisted)
