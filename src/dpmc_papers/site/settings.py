"""Page of the settings of a document, made from its configuration, and of what privacy holds."""

from __future__ import annotations

from html import escape
from typing import Any

from dpmc_papers.outputs._facts import value_text
from dpmc_papers.site.sources import Source
from dpmc_papers.site.tables import Row, frame, table
from dpmc_papers.verdicts.evidence import NotRunError
from dpmc_papers.verdicts.rules import configured


def page(source: Source, title: str) -> str:
    """Markdown of the page: problems, then what each experiment and study runs with."""
    config, facts = source.config, source.facts
    parts = ["---\norphan: true\n---\n", f"# {title}\n"]
    problems = [
        Row([escape(facts.problem(name)), escape(_listed(entry))])
        for name, entry in config.get("problems", {}).items()
    ]
    if source.printed:
        parts += ["## As printed\n", _printed(source)]
    if problems:
        parts += ["## Problems\n", table("Problems", ("problem", "settings"), problems)]
    for name in config.get("experiments", {}):
        parts += [f"## Experiment {name.replace('_', ' ')}\n", _lines(name, facts.settings(name))]
        parts.append(_privacy(source, name))
    for name in config.get("studies", {}):
        parts += [f"## Study {name.replace('_', ' ')}\n", _lines(name, facts.study(name))]
        parts.append(_privacy(source, name))
    for name in config.get("accounting", {}):
        parts += [f"## Accounting {name.replace('_', ' ')}\n", _lines(name, facts.curves(name))]
    parts.append(
        "\nAll guarantees: [guarantees.csv](guarantees.csv). Back to [all results](index.md).\n"
    )
    return "\n".join(parts)


def _printed(source: Source) -> str:
    """Table of settings in print beside those of these runs."""
    rows = []
    for place, printed in source.printed.values():
        try:
            here = configured(place, source.config)
        except NotRunError:
            here = None
        same = "" if here is None else "yes" if float(here) == float(printed) else "no"
        name = place.replace("_", " ").replace(".", ", ")
        rows.append(Row([escape(name), value_text(printed), value_text(here) or "not run", same]))
    return table("Settings in print", ("setting", "in print", "here", "as printed"), rows)


def _privacy(source: Source, experiment: str) -> str:
    """What holds for the runs of an experiment, and what no guarantee of them covers."""
    facts = source.facts
    if experiment not in set(facts.table["experiment"]):
        return ""
    if not facts.private(experiment):
        if facts.has_records(experiment):
            return "No run of it has a privacy guarantee.\n"
        return "Nothing is computed from records.\n"
    held = frame(f"Epsilon that holds in {experiment}", facts.guarantee_table(experiment))
    return f"Not covered by any guarantee: {facts.outside(experiment)}.\n\n{held}"


def _lines(name: str, lines: list[str]) -> str:
    rows = [Row([escape(part) for part in line.partition(": ")[::2]]) for line in lines]
    return table(f"Settings of {name}", ("of", "settings"), rows) if rows else ""


def _listed(entry: Any, prefix: str = "") -> str:
    """Settings of a problem on one line, nested ones by their path."""
    found = []
    for key, value in entry.items():
        path = f"{prefix}{key}"
        found.append(
            _listed(value, f"{path}.") if isinstance(value, dict) else f"{path} {value_text(value)}"
        )
    return ", ".join(text for text in found if text)
