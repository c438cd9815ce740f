"""Pages of the site: one per document, a front page with every claim, errata, verdicts."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from dpmc_papers.outputs._facts import number_text, value_text
from dpmc_papers.pipeline import files
from dpmc_papers.plots.save import save
from dpmc_papers.site import (
    captions,
    claims,
    claims_figure,
    errata,
    findings,
    grids,
    layouts,
    reasons,
    strip,
    texts,
)
from dpmc_papers.site.claims import Group
from dpmc_papers.site.sources import Source, cited
from dpmc_papers.verdicts.verdict import CONTRADICTED, Verdict

STATIC = ("style.css", "filter.js", "sort.js")
# Files in the folder of the site itself.
PAGES = ("index.html", "errata.html", "verdicts.html")
FILES = (*PAGES, *STATIC, *claims_figure.FILES)
# A longer list of what is not reproduced is folded.
SHORT_LIST = 8


@dataclass(frozen=True)
class Figure:
    """A figure on a page.

    Parameters
    ----------
    name, title, alt : str
    caption : list of (str, list of str)
        As :func:`dpmc_papers.site.captions.paragraphs` returns it.
    width, height : int
        In pixels.
    data : list of str
        CSV files behind it.
    group : Group
        Verdicts on it.
    main : str
        The figure of the document that it is a variant of; empty if none.
    """

    name: str
    title: str
    alt: str
    caption: captions.Parts
    width: int
    height: int
    data: list[str]
    group: Group
    main: str


@dataclass(frozen=True)
class PageTable:
    """A table on a page; see :class:`Figure`.

    Parameters
    ----------
    layout : str
        HTML of the table in the layout of the document, shown in place of `grid`; empty if none.
    files : list of str
    """

    name: str
    title: str
    caption: captions.Parts
    grid: grids.Grid
    group: Group
    main: str
    layout: str
    files: list[str]


def document(
    source: Source,
    words: Mapping[str, str],
    page: Path,
    others: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write the page of a document, next to copies of all that it shows or links to.

    The folder is emptied first and the page written last: a page that exists is complete.

    Parameters
    ----------
    source : Source
    words : mapping of str to str
        The text of each caption, by the name of its file.
    page : Path
        File of the page, in a folder of its own inside that of the site.
    others : sequence of mapping
        Settings of the documents that have a page beside this one, in their order, itself among
        them. By default none is known.

    Raises
    ------
    DpmcError
        If a file is missing or a caption is not well formed.
    """
    text = render_document(source, words, others)
    shutil.rmtree(page.parent, ignore_errors=True)
    page.parent.mkdir(parents=True)
    for name in source.all_files():
        shutil.copyfile(source.folder / name, page.parent / name)
    files.write_text(page, text)


def render_document(
    source: Source, words: Mapping[str, str], others: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Return the page of a document as HTML; see :func:`document`."""
    outputs = source.config["outputs"]
    filled = {
        name: captions.caption(name, words[entry["caption"]], source.facts)
        for name, entry in outputs.items()
    }
    groups = claims.by_output(source.verdicts, list(outputs))
    experiments = list(dict.fromkeys(source.facts.table["experiment"]))
    private = [name for name in experiments if source.facts.private(name)]
    whole = claims.group(source.verdicts)
    failed = [entry for entry in whole.claims if entry.verdict == CONTRADICTED]
    figures = [_figure(source, name, filled, groups) for name in source.outputs("figure")]
    keys = [str(config["paper"]) for config in others]
    return _render(
        "document.html.j2",
        documents=others,
        text=texts.read(source, keys, "..", _places(source)),
        config=source.config,
        verdicts=claims.kinds(source.verdicts),
        power=grids.grid(source.power) if source.power is not None else None,
        root="..",
        source=source,
        figures=figures,
        tables=[_table(source, name, filled, groups) for name in source.outputs("table")],
        whole=whole,
        other=groups.get("", Group()),
        failed=failed,
        short_list=SHORT_LIST,
        guarantees={name: grids.grid(source.facts.guarantee_table(name)) for name in private},
        without=[name for name in experiments if name not in private],
        has_records=source.facts.has_records,
        provenance=_provenance(source.provenance),
        stages=_stages(source.provenance),
        packages=source.provenance.get("packages", {}),
    )


def front(
    sources: Sequence[Source],
    absent: Iterable[Mapping[str, Any]],
    corrections: str,
    rules: str,
    scale: str,
) -> dict[str, str]:
    """Return the front page, the errata, what a verdict says, and the files that all pages share.

    Parameters
    ----------
    sources : sequence of Source
        The documents with results, whose pages are in neighbouring folders named by their keys.
    absent : iterable of mapping
        Settings of documents without results.
    corrections, rules : str
        The errata and what a verdict says, in Markdown.
    scale : str
        Name of the scale.

    Returns
    -------
    dict of str to str
        The text of each of ``PAGES`` and ``STATIC``, all for one folder.

    Raises
    ------
    DpmcError
        If a file of the results cannot be read.
    """
    found = errata.read(corrections, {source.key: _addresses(source) for source in sources})
    groups = {source.key: claims.group(source.verdicts) for source in sources}
    shared: dict[str, Any] = {"root": ".", "documents": [source.config for source in sources]}
    page = _render(
        "front.html.j2",
        verdicts=claims.kinds(entry for source in sources for entry in source.verdicts),
        scale=scale,
        findings=findings.findings(sources),
        sources=sources,
        absent=list(absent),
        groups=groups,
        totals=claims.counts(entry for group in groups.values() for entry in group.verdicts),
        provenance={source.key: dict(_provenance(source.provenance)) for source in sources},
        errata=found,
        strip=strip,
        **shared,
    )
    title, body = texts.page(rules, [source.key for source in sources])
    static = resources.files("dpmc_papers.site") / "static"
    return {
        "index.html": page,
        "errata.html": _render("errata.html.j2", errata=found, **shared),
        "verdicts.html": _render("text.html.j2", title=title, body=body, **shared),
        **{name: (static / name).read_text(encoding="utf-8") for name in STATIC},
    }


def write_front(
    paths: Iterable[str],
    sources: Sequence[Source],
    absent: Iterable[Mapping[str, Any]],
    docs: Path,
    scale: str,
) -> None:
    """Write what :func:`front` returns, and the figure of all claims.

    Parameters
    ----------
    paths : iterable of str
        Where to write each of ``FILES``.
    sources, absent, scale
        See :func:`front`.
    docs : Path
        Folder with the texts ``errata.md`` and ``verdicts.md``.
    """
    corrections, rules = (
        (docs / name).read_text(encoding="utf-8") for name in ("errata.md", "verdicts.md")
    )
    made = front(sources, absent, corrections, rules, scale)
    drawn = claims_figure.draw({cited(s.config): strip.cells(s.verdicts) for s in sources})
    for name, path in zip(FILES, paths, strict=True):
        if name in made:
            files.write_text(path, made[name])
        else:
            save(drawn, path)


def _figure(
    source: Source, name: str, filled: Mapping[str, captions.Parts], groups: Mapping[str, Group]
) -> Figure:
    title = captions.title(name)
    width, height = source.size(name)
    first = filled[name][0][1][0] if filled[name] else ""
    return Figure(
        name=name,
        title=title,
        alt=f"{title}. {_shortened(first)}",
        caption=filled[name],
        width=width,
        height=height,
        data=source.data_of(name),
        group=groups.get(name, Group()),
        main=_main(name, source),
    )


def _table(
    source: Source, name: str, filled: Mapping[str, captions.Parts], groups: Mapping[str, Group]
) -> PageTable:
    # What is outside of a guarantee stands under Privacy: each row would repeat it.
    table = source.table(name).drop(columns="outside", errors="ignore")
    shown = source.facts.named(grids.compact(table))
    return PageTable(
        name=name,
        title=captions.title(name),
        caption=filled[name],
        grid=grids.grid(shown),
        group=groups.get(name, Group()),
        main=_main(name, source),
        layout=layouts.html(source.folder, name, source.layout_files(name)),
        files=[*source.files(name), *source.layout_files(name)],
    )


def _main(name: str, source: Source) -> str:
    """Return the output that another is a variant of: "figure1" for "figure1_variants"."""
    prefixes = [other for other in source.config["outputs"] if name.startswith(f"{other}_")]
    return max(prefixes, key=len, default="")


def _shortened(text: str, most: int = 300) -> str:
    """Return the first sentences of a text, as far as they fit."""
    if len(text) <= most:
        return text
    end = text.rfind(". ", 0, most)
    return text[: end + 1] if end > 0 else text[: text.rfind(" ", 0, most)] + " …"


def _addresses(source: Source) -> dict[str, str]:
    """Return the address on the site of every name that the errata may give as code."""
    page = f"{source.key}/index.html"
    addresses = {name: f"{page}#{name}" for name in source.config["outputs"]}
    addresses |= {f"{name}.csv": f"{page}#{name}" for name in source.outputs("table")}
    addresses["verdict.csv"] = f"{page}#claims"
    for entry in source.verdicts:
        addresses.setdefault(entry.id, f"{page}#{entry.anchor}")
    return addresses


def _places(source: Source) -> dict[str, str]:
    """Return the address on its own page of every name that the text on a document may give."""
    return {name: f"#{at.partition('#')[2]}" for name, at in _addresses(source).items()}


def _provenance(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the provenance of a run as pairs of label and text."""
    whole = record.get("jobs", {}).get("all", {})
    lines = [
        ("made on", record.get("date")),
        ("command", record.get("command")),
        ("commit", record.get("commit")),
        ("digest of the settings", record.get("settings")),
        ("processor", f"{record.get('processor')}, {record.get('cores')} cores"),
        ("compiled for", record.get("target")),
        ("linear algebra", ", ".join(record.get("linear_algebra", [])) or None),
        ("system", record.get("system")),
        ("Python", record.get("python")),
    ]
    if "judged" in record:
        again = "{date}, from the same runs, at commit {commit}".format(**record["judged"])
        lines.append(("verdicts made again", again))
    if whole:
        lines.append(
            ("processor time", f"{_time(whole['cpu_seconds'])} in {whole['jobs']:.0f} jobs")
        )
    return [(name, str(value)) for name, value in lines if value is not None]


def _stages(record: Mapping[str, Any]) -> list[tuple[str, dict[str, float]]]:
    """Return jobs, times and memory of each stage, the sum last."""
    stages = record.get("jobs", {})
    return sorted(stages.items(), key=lambda item: (item[0] == "all", item[0]))


def _time(seconds: float) -> str:
    """Return a time as a reader wants to see it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _measured(verdict: Verdict) -> str:
    """Return what was measured with its standard error; empty where nothing was."""
    text = value_text(verdict.ours)
    return f"{text} ± {number_text(verdict.ours_se)}" if verdict.ours_se > 0 else text


def _render(template: str, **values: Any) -> str:
    environment = Environment(
        loader=PackageLoader("dpmc_papers.site"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cited"] = cited
    environment.filters["measured"] = _measured
    environment.filters["title_of"] = captions.title
    environment.filters["why"] = reasons.why
    environment.filters["words"] = lambda text: str(text).replace("_", " ")
    return environment.get_template(template).render(**values)
