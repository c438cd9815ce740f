"""Captions: text with facts of the run filled in, as paragraphs; titles of outputs."""

from __future__ import annotations

import re

from jinja2 import Environment, StrictUndefined, TemplateError

from dpmc.types import DpmcError
from dpmc_papers.outputs._facts import Facts


def caption(name: str, text: str, facts: Facts) -> list[str]:
    """Paragraphs of the caption of an output, filled in.

    In `text`, plain paragraphs, ``{{ ... }}`` is filled in by Jinja: `config`, `facts`, `output`
    (the entry of the output) and `experiment` (the first that the output shows).
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
    return [" ".join(part.split()) for part in filled.split("\n\n") if part.strip()]


def title(name: str) -> str:
    """Title of an output: ``figure6_2_final`` is "Figure 6.2, final"."""
    match = re.fullmatch(r"(figure|table)(?:(\d+(?:_\d+)*))?(?:_(.+))?", name)
    if match is None:
        return (name[:1].upper() + name[1:]).replace("_", " ")
    kind, number, rest = match.groups()
    head = kind.capitalize() + (f" {number.replace('_', '.')}" if number else "")
    return head + (("," if number else ":") + f" {rest.replace('_', ' ')}" if rest else "")
