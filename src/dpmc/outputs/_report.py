"""The report of one document and one run: a single HTML page that needs no network."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd

from dpmc.outputs._facts import Facts, number_text, value_text
from dpmc.types import DpmcError

MIME = {".png": "image/png", ".svg": "image/svg+xml"}
VERDICTS = {
    "reproduced": "reproduced",
    "not_reproduced": "not reproduced",
    "not_comparable": "not comparable",
}


def render(
    config: Mapping[str, Any],
    metrics: pd.DataFrame,
    verdicts: pd.DataFrame,
    tables: Mapping[str, pd.DataFrame],
    figures: Mapping[str, str],
    captions: Mapping[str, str],
    provenance: Mapping[str, Any] | None = None,
    *,
    folder: Path | str | None = None,
    scale: str = "",
) -> str:
    """Return the report as HTML.

    Parameters
    ----------
    config : mapping
        The resolved configuration of the document.
    metrics : pandas.DataFrame
        One row per run, of all experiments.
    verdicts : pandas.DataFrame
        As `dpmc.published.verdicts` returns it.
    tables : mapping of str to pandas.DataFrame
        By name, in the order shown.
    figures : mapping of str to str
        Path of the image of each figure, relative to the page, in the order shown.
    captions : mapping of str to str
        By name of figure or table: plain paragraphs and lists in which ``{{ ... }}`` is
        filled in by Jinja: `config`, `facts` (a :class:`Facts`), `output` (the entry of the
        output) and `experiment` (the first that the output shows).
    provenance : mapping, optional
        How the run was made.
    folder : Path or str, optional
        Where the page goes. Images found there become part of the page.
    scale : str
        Name of the scale of the run.

    Returns
    -------
    str

    Raises
    ------
    DpmcError
        If Jinja is not installed, or a caption is not well formed.
    """
    environment = _environment()
    facts = Facts(config, metrics)
    words = {
        name: _paragraphs(_filled(environment, name, text, facts))
        for name, text in captions.items()
    }
    template = (resources.files("dpmc.outputs") / "_report.html.j2").read_text(encoding="utf-8")
    counts = verdicts["verdict"].value_counts()
    # A printed series, such as the boxes of a figure, has one row for each of its cells.
    cells = verdicts["id"].str.contains("/", regex=False)
    experiments = [str(name) for name in metrics["experiment"].unique()]
    private = [name for name in experiments if facts.private(name)]
    page: str = environment.from_string(template).render(
        config=config,
        scale=scale,
        facts=facts,
        guarantees={name: _cells(facts.guarantee_table(name)) for name in private},
        without=[name for name in experiments if name not in private],
        figures={name: _image(path, folder) for name, path in figures.items()},
        tables={name: _cells(facts.named(compact(table))) for name, table in tables.items()},
        captions=words,
        verdicts=_verdict_rows(verdicts[~cells]),
        cells=_verdict_rows(verdicts[cells]),
        series=_series_rows(verdicts[cells]),
        counts={VERDICTS[key]: int(counts.get(key, 0)) for key in VERDICTS},
        kinds=VERDICTS,
        titles={name: _title(name) for name in (*figures, *tables)},
        provenance=_flat(provenance or {}),
    )
    return page


def compact(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with ``<m>_q1``, ``_median`` and ``_q3`` merged into one column each."""
    shown: dict[str, Any] = {}
    for column in table.columns:
        name, _, part = str(column).rpartition("_")
        if part == "median" and {f"{name}_q1", f"{name}_q3"} <= set(table.columns):
            parts = (table[f"{name}_{p}"] for p in ("median", "q1", "q3"))
            shown[name] = [
                "" if math.isnan(m) else f"{number_text(m)} [{number_text(a)}, {number_text(b)}]"
                for m, a, b in zip(*parts, strict=True)
            ]
        elif not (part in ("q1", "q3") and f"{name}_median" in table.columns):
            shown[str(column)] = list(table[column])
    return pd.DataFrame(shown)


def _environment() -> Any:
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise DpmcError("report: jinja2 is not installed, allowed an environment with it") from None
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def _filled(environment: Any, name: str, text: str, facts: Facts) -> str:
    from jinja2 import TemplateError

    plain = environment.overlay(autoescape=False)
    output = facts.config.get("outputs", {}).get(name, {})
    try:
        filled: str = plain.from_string(text).render(
            config=facts.config,
            facts=facts,
            output=output,
            experiment=next(iter(output.get("metrics", ())), ""),
        )
    except TemplateError as error:
        raise DpmcError(f"caption of {name}: {str(error).splitlines()[0]}") from None
    return filled


def _paragraphs(text: str) -> list[tuple[str, list[str]]]:
    """Split text at empty lines into paragraphs and lists whose items start with a dash.

    A paragraph that ends with a colon becomes the heading of the list after it.
    """
    parts: list[tuple[str, list[str]]] = []
    for block in text.strip().split("\n\n"):
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        if lines and all(line.startswith("- ") for line in lines):
            heading = parts.pop()[1][0] if parts and parts[-1][1][0].endswith(":") else "Details"
            parts.append(("list", [heading.rstrip(":"), *(line[2:] for line in lines)]))
        elif lines:
            parts.append(("text", [" ".join(lines)]))
    return parts


def _image(path: str, folder: Path | str | None) -> dict[str, str]:
    """Return the source of an image, the file itself where it can be read, and its name."""
    file = None if folder is None else Path(folder) / path
    if file is None or not file.is_file():
        return {"source": path, "stem": str(Path(path).with_suffix(""))}
    content = base64.b64encode(file.read_bytes()).decode()
    kind = MIME.get(file.suffix, "application/octet-stream")
    return {"source": f"data:{kind};base64,{content}", "stem": str(Path(path).with_suffix(""))}


def _cells(table: pd.DataFrame) -> dict[str, Any]:
    """Return names, kinds and printed cells; a column without any value is left out."""
    printed = {str(c): [value_text(v) for v in table[c]] for c in table.columns}
    kept = {name: column for name, column in printed.items() if any(column) or table.empty}
    numeric = [pd.api.types.is_numeric_dtype(table[name]) for name in kept]
    return {
        "columns": [name.replace("_", " ") for name in kept],
        "numeric": numeric,
        "rows": [list(row) for row in zip(*kept.values(), strict=True)],
    }


def _verdict_rows(verdicts: pd.DataFrame) -> list[dict[str, str]]:
    names = ("id", "where", "variant", "published", "rule", "verdict", "reason")
    rows = []
    for record in verdicts.to_dict("records"):
        row = {name: str(record[name]) for name in names}
        row["ours"] = value_text(record["ours"])
        se = record["ours_se"]
        if isinstance(se, float) and se > 0:
            row["ours"] += f" ± {number_text(se)}"
        rows.append(row)
    return rows


def _series_rows(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """Return, for each printed series and variant, how many cells came out how."""
    block = cells["id"].str.split("/").str[0]
    rows = []
    for (name, where, variant), group in cells.groupby([block, "where", "variant"], sort=False):
        counts = {key: int((group["verdict"] == key).sum()) for key in VERDICTS}
        rows.append({"id": name, "where": where, "variant": variant, **counts})
    return rows


def _title(name: str) -> str:
    """Return ``figure1_variants`` as "Figure 1 variants", ``figure6_2`` as "Figure 6.2"."""
    words = re.sub(r"(?<=[0-9])_(?=[0-9])", ".", name).replace("_", " ")
    text = re.sub(r"(?<=[a-z])(?=[0-9])", " ", words)
    return text[:1].upper() + text[1:]


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, Mapping):
            rows += _flat(value, f"{key}: ")
        else:
            rows.append((name, value_text(value)))
    return rows
