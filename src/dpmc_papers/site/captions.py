"""Captions: text with facts of the run filled in, as paragraphs and lists; titles of outputs."""

from __future__ import annotations

import re

from jinja2 import Environment, StrictUndefined, TemplateError

from dpmc.types import DpmcError
from dpmc_papers.outputs._facts import Facts

Parts = list[tuple[str, list[str]]]


def caption(name: str, text: str, facts: Facts) -> Parts:
    """Fill in the caption of an output.

    Parameters
    ----------
    name : str
        The output.
    text : str
        Plain paragraphs and lists in which ``{{ ... }}`` is filled in by Jinja: `config`,
        `facts`, `output` (the entry of the output) and `experiment` (the first that the
        output shows).
    facts : Facts

    Returns
    -------
    list of (str, list of str)
        See :func:`paragraphs`.

    Raises
    ------
    DpmcError
        If the text is not well formed.
    """
    output = facts.config.get("outputs", {}).get(name, {})
    try:
        filled = (
            Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
            .from_string(text)
            .render(
                config=facts.config,
                facts=facts,
                output=output,
                experiment=next(iter(output.get("metrics", ())), ""),
            )
        )
    except TemplateError as error:
        raise DpmcError(f"caption of {name}: {str(error).splitlines()[0]}") from None
    return paragraphs(filled)


def paragraphs(text: str) -> Parts:
    """Split text at empty lines into paragraphs and lists whose items start with a dash.

    A paragraph that ends with a colon becomes the heading of the list after it.

    Returns
    -------
    list of (str, list of str)
        ``("text", [paragraph])`` or ``("list", [heading, item, ...])``.
    """
    parts: Parts = []
    for block in text.strip().split("\n\n"):
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        if lines and all(line.startswith("- ") for line in lines):
            heading = parts.pop()[1][0] if parts and parts[-1][1][0].endswith(":") else "Details"
            parts.append(("list", [heading.rstrip(":"), *(line[2:] for line in lines)]))
        elif lines:
            parts.append(("text", [" ".join(lines)]))
    return parts


def title(name: str) -> str:
    """Return ``figure6_2_final`` as "Figure 6.2, final", ``table_tuning`` as "Table: tuning"."""
    match = re.fullmatch(r"(figure|table)(?:(\d+(?:_\d+)*))?(?:_(.+))?", name)
    if match is None:
        return (name[:1].upper() + name[1:]).replace("_", " ")
    kind, number, rest = match.groups()
    head = kind.capitalize() + (f" {number.replace('_', '.')}" if number else "")
    return head + (("," if number else ":") + f" {rest.replace('_', ' ')}" if rest else "")
