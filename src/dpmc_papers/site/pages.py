"""Pages of a document: its results as Markdown, one page for each figure, table and series."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from dpmc_papers.outputs._facts import number_text, value_text
from dpmc_papers.pipeline import files
from dpmc_papers.site import captions, settings
from dpmc_papers.site.sources import SHARED_FILES, Source, cited
from dpmc_papers.site.tables import Row, compact, frame, table
from dpmc_papers.verdicts.verdict import CONTRADICTED, NO_RECORDS, VERDICTS, Verdict

# Sidebars hold documents, not each of their pages.
ORPHAN = "---\norphan: true\n---\n"
# Cells are many, and claims lead to them: a search would find little else.
UNSEARCHED = "---\norphan: true\nno-search: true\n---\n"
MARKS = {
    "holds": "ε holds",
    "broken": "ε does not hold",
    "holds in part": "ε holds in part",
    "none claimed": "no ε claimed",
    NO_RECORDS: "no records",
}
CLAIM_COLUMNS = ("Verdict", "Claim", "Ours", "Variant", "Why")
CELL_COLUMNS = ("Verdict", "Printed", "Ours", "Why")
Series = tuple[str, str, str]


def write(source: Source, words: Mapping[str, str], page: Path) -> None:
    """Write the pages of a document beside copies of all files that they show or link to.

    `words` has the text of each caption, by the name of its file; `page` is the file of the index,
    in a folder of its own. The folder is emptied first and its index written last: a folder that
    has it is complete.
    """
    made, folder = pages(source, words), page.parent
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in source.all_files():
        shutil.copyfile(source.folder / name, folder / name)
    index = made.pop("index.md")
    for name, text in made.items():
        files.write_text(folder / name, text)
    files.write_text(page, index)


def pages(source: Source, words: Mapping[str, str]) -> dict[str, str]:
    """Text of each page of a document, by the name of its file; see :func:`write`."""
    made = {
        f"{name}.md": _output(source, name, words[entry["caption"]])
        for name, entry in source.config["outputs"].items()
    }
    for key, cells in _series(source.verdicts).items():
        made[series_page(key)] = _cells(source, key, cells)
    made["claims.md"] = _claims(source)
    made["settings.md"] = settings.page(source, _title(source, "settings and privacy"))
    made["index.md"] = _index(source)
    return made


def addresses(source: Source) -> dict[str, str]:
    """Page and anchor, in the folder of the document, of each name that a text may give as code."""
    found = {name: f"{name}.html" for name in source.config["outputs"]}
    for entry in source.verdicts:
        page = series_page(_key(entry)).replace(".md", ".html") if entry.series else "claims.html"
        found.setdefault(entry.id, f"{page}#{entry.anchor}")
    return found


def series_page(key: Series) -> str:
    """Name of the page of a printed series for one variant."""
    name, where, variant = key
    return re.sub(r"[^A-Za-z0-9.-]+", "-", f"series-{name}-{where}-{variant}") + ".md"


def counted(verdicts: Iterable[Verdict]) -> str:
    """How many verdicts there are of each kind, in words."""
    found = Counter(entry.verdict for entry in verdicts)
    return ", ".join(f"{found[name]:,} {name}" for name in VERDICTS if found[name])


def single(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Verdicts on printed numbers one by one: none on rows of them together."""
    return [entry for entry in verdicts if entry.series and not entry.together]


def _index(source: Source) -> str:
    config = source.config
    address = f" · <{config['url']}>" if config.get("url") else ""
    code = f"Settings from the code: {plain(config['code'])}.\n" if config.get("code") else ""
    parts = [
        f"# {plain(config['title'])}\n",
        f"{plain(config['authors'])}, {config['year']}{address}\n",
    ]
    parts += [code] if code else []
    parts += [f"{source.finding}\n"] if source.finding else []
    if source.finding and source.scale != "paper":
        parts.append(
            f"That is about the published grid. Numbers here are of scale {source.scale}.\n"
        )
    if source.text:
        parts.append(f"More: [what came out, and why](../../{source.key}.md).\n")
    parts.append(
        f"Run it with `uv run snakemake --cores all --config scale={source.scale} "
        f"papers={source.key}`. [All claims](claims.md) · [settings and privacy](settings.md) · "
        f"[errata](../../errata.md) · code of figures: `src/dpmc_papers/outputs/{source.key}.py` · "
        f"settings: `config/papers/{source.key}.yaml`\n"
    )
    if source.left_out:
        parts.append(f"Not among these results: {plain(', '.join(source.left_out))}.\n")
    claims = [entry for entry in source.verdicts if not entry.series]
    numbers = single(source.verdicts)
    if source.verdicts:
        parts += ["## Verdicts\n", f"Claims: {counted(claims) or 'none'}.\n"]
    if numbers:
        parts.append(f"Printed numbers: {counted(numbers)}.\n")
    if failed := [entry for entry in claims if entry.verdict == CONTRADICTED]:
        parts.append("Contradicted:\n")
        parts += [
            f'- <a href="claims.html#{e.anchor}">{escape(e.published)}</a> ({plain(e.variant)})'
            for e in failed
        ]
        parts.append("")
    for kind in ("figure", "table"):
        if names := source.outputs(kind):
            parts += [f"## {kind.capitalize()}s\n", *(_listed(source, name) for name in names), ""]
    parts += ["## Provenance\n", _provenance(source.provenance)]
    return "\n".join(parts)


def _listed(source: Source, name: str) -> str:
    """Line of an output on the page of its document."""
    found = counted(_shown(source, name))
    return f"- [{plain(captions.title(name))}]({name}.md)" + (f": {found}" if found else "")


def _output(source: Source, name: str, words: str) -> str:
    """Page of a figure or table: what it shows, its files, and the verdicts on it."""
    title = captions.title(name)
    parts = [ORPHAN, f"# {plain(_title(source, title))}\n"]
    caption = captions.caption(name, words, source.facts)
    text = "\n".join(f"{plain(part)}\n" for part in caption)
    links = [f"[{file.split('.', 1)[1]}]({file})" for file in source.files(name)]
    if source.config["outputs"][name]["kind"] == "figure":
        alt = f"{title}. {_shortened(caption[0])}" if caption else title
        parts += [f"[![{plain(alt)}]({name}.svg)]({name}.svg)\n", text]
        links += [f"[{file}]({file})" for file in source.tables_of(name)]
    else:
        parts += [text, _values(source, name, title)]
    parts.append(f"Files: {', '.join(links)}. [Settings and privacy](settings.md) of these runs.\n")
    shown = _shown(source, name)
    if claims := [entry for entry in shown if not entry.series]:
        parts += ["## Claims\n", claims_table(f"Claims about {title}", claims)]
    if series := _series(shown):
        parts += ["## Printed numbers\n", *(_about(key, cells) for key, cells in series.items())]
    parts.append(f"\nBack to [all results of {plain(cited(source.config))}](index.md).\n")
    return "\n".join(parts)


def _values(source: Source, name: str, title: str) -> str:
    """Table in the layout of the document if it has one, else all its values."""
    layout = source.folder / f"{name}.md"
    if f"{name}.md" in source.files(name):
        return layout.read_text(encoding="utf-8")
    # What is outside of a guarantee stands with the settings: each row would repeat it.
    values = source.table(name).drop(columns="outside", errors="ignore")
    return frame(title, source.facts.named(compact(values)), f"{name}.csv")


def _claims(source: Source) -> str:
    """Page of all claims of a document, and of its printed series."""
    claims = [entry for entry in source.verdicts if not entry.series]
    parts = [
        ORPHAN,
        f"# {plain(_title(source, 'claims'))}\n",
        "One verdict for each claim and variant, by the rule beside it: "
        "[what verdicts mean](../../verdicts.md). All numbers: [verdict.csv](verdict.csv). "
        "What they notice: [settings and privacy](settings.md).\n",
    ]
    if claims:
        parts.append(claims_table("Claims", claims))
    if series := _series(source.verdicts):
        parts += ["## Printed numbers\n", *(_about(key, cells) for key, cells in series.items())]
    return "\n".join(parts)


def _cells(source: Source, key: Series, cells: Sequence[Verdict]) -> str:
    """Page of a printed series: one row for each number, and for each row of them together."""
    name, where, variant = key
    rules = {entry.rule.rpartition(" in [")[0] for entry in single(cells)}
    terms = {entry.rule.partition("; ")[2] for entry in single(cells)}
    shared = len(rules) == len(terms) == 1 and rules != {""}
    rule = f"Rule: {rules.pop()} within the printed digits; {terms.pop()}.\n" if shared else ""
    rows = [
        Row(
            [
                _verdict(entry),
                f"{escape(entry.published)} <code>{escape(entry.id[len(name) + 1 :])}</code>",
                measured(entry),
                escape(_reason(entry))
                + (f". Notices ×{entry.resolution:.3g}" if entry.resolution > 1 else "")
                + ("" if shared and not entry.together else f". Rule: {escape(entry.rule)}"),
            ],
            entry.anchor,
            entry.verdict,
        )
        for entry in cells
    ]
    return "\n".join(
        [
            UNSEARCHED,
            f"# {plain(_title(source, f'{where}, {variant}'))}\n",
            f"{len(single(cells))} printed numbers: {counted(single(cells))}. “Notices ×1.2”: a "
            "number that is wrong by this factor would not be called reproduced.\n",
            plain(rule),
            table(where, CELL_COLUMNS, rows, "claims"),
            "\nBack to [all claims](claims.md) and [all results](index.md).\n",
        ]
    )


def claims_table(label: str, claims: Sequence[Verdict]) -> str:
    """HTML of a table of claims, one row each, with an anchor."""
    rows = [
        Row(
            [
                _verdict(entry),
                f"{escape(entry.published)} <small>({escape(entry.where)})</small> "
                f"<code>{escape(entry.id)}</code>",
                measured(entry),
                escape(entry.variant.replace("_", " ")),
                f"{escape(_reason(entry))}. <small>Rule: {escape(entry.rule)}</small>",
            ],
            entry.anchor,
            entry.verdict,
        )
        for entry in claims
    ]
    return table(label, CLAIM_COLUMNS, rows, "claims")


def measured(entry: Verdict) -> str:
    """What was measured, with its standard error; a dash where nothing was."""
    text = value_text(entry.ours)
    return f"{text} ± {number_text(entry.ours_se)}" if entry.ours_se > 0 else text or "–"


def _reason(entry: Verdict) -> str:
    """Reason of a verdict; numbers of runs that nobody makes are not told to the last one."""
    return re.sub(
        r"about ([\d,]{5,}) runs would decide", "more than 1,000 runs would decide", entry.reason
    )


def _verdict(entry: Verdict) -> str:
    """HTML of both marks: whether it comes out, and whether the privacy holds."""
    mark = MARKS.get(entry.privacy, "")
    return f"<b>{entry.verdict}</b>" + (f" <small>{mark}</small>" if mark else "")


def _about(key: Series, cells: Sequence[Verdict]) -> str:
    """Line about a series, with a link to its page."""
    _, where, variant = key
    numbers = single(cells)
    link = f"[{plain(where)}, {plain(variant)}]({series_page(key)})"
    return f"- {link}: of {len(numbers)} printed numbers {counted(numbers)}"


def _series(verdicts: Iterable[Verdict]) -> dict[Series, list[Verdict]]:
    found: dict[Series, list[Verdict]] = {}
    for entry in verdicts:
        if entry.series:
            found.setdefault(_key(entry), []).append(entry)
    return found


def _key(entry: Verdict) -> Series:
    return entry.series, entry.where, entry.variant


def _shown(source: Source, name: str) -> list[Verdict]:
    return [entry for entry in source.verdicts if name in entry.output]


def _provenance(record: Mapping[str, Any]) -> str:
    processor = f"{record.get('processor')}, {record.get('cores')} cores"
    packages = record.get("packages", {})
    lines = {
        "made on": record.get("date"),
        "command": record.get("command"),
        "commit": record.get("commit"),
        "processor": processor if record.get("processor") else None,
        "system": record.get("system"),
        "Python": record.get("python"),
        "packages": ", ".join(f"{name} {version}" for name, version in packages.items()) or None,
    }
    told = [f"- {name}: {plain(value)}" for name, value in lines.items() if value is not None]
    return "\n".join([*told, f"- files: {', '.join(f'[{n}]({n})' for n in SHARED_FILES)}", ""])


def _title(source: Source, name: str) -> str:
    return f"{cited(source.config)}: {name}"


def plain(text: Any) -> str:
    """Text as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|$~])", r"\\\1", str(text))


def _shortened(text: str, most: int = 300) -> str:
    """First sentences of a text, as far as they fit."""
    if len(text) <= most:
        return text
    end = text.rfind(". ", 0, most)
    return text[: end + 1] if end > 0 else text[: text.rfind(" ", 0, most)] + " …"
