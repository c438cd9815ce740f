"""Why a verdict is what it is, in words: from its columns and the numbers in its reason."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from dpmc_papers.config.grids import algorithm
from dpmc_papers.outputs._facts import number_text
from dpmc_papers.plots.style import method_label
from dpmc_papers.verdicts.verdict import (
    AS_CONFIGURED,
    CONFIGURED_OTHERWISE,
    CONTRADICTED,
    FAILS,
    HOLDS,
    REPRODUCED,
    Verdict,
)

NUMBER = r"-?(?:\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|inf|nan)"
# A claim, judged at one setting or at several.
CLAIM = re.compile(
    rf"(?:established at (?P<held>\d+) of (?P<all>\d+) settings"
    rf"(?:[;,] contradicted at (?P<against>\d+))?; )?"
    rf"(?:least margin: )?(?P<ours>{NUMBER}) \((?P<setting>.+?)\)"
    rf"(?:, interval (?P<low>{NUMBER}) to (?P<high>{NUMBER}) from (?P<runs>\d+) runs"
    r"|(?P<lacking> (?:from a single run|in no finite resample): no uncertainty))?"
    r"(?:; not sure to (?:hold|be false): (?P<needed>.+))?"
)
# A printed number beside runs.
DISTANCE = re.compile(
    rf"(?:(?P<away>{NUMBER}) % from print(?:, (?P<errors>{NUMBER}) standard errors)?"
    rf"|printed the same; error of both (?P<both>{NUMBER}) %)"
    r"(?:, all values the same)?, (?P<runs>\d+) runs(?:; (?P<lack>[^:]+): (?P<needed>.+))?"
)
# A printed number that nothing random enters.
EXACT = re.compile(
    rf"(?P<ours>{NUMBER}) \((?P<setting>.+)\), "
    rf"to be within (?P<low>{NUMBER}) and (?P<high>{NUMBER})"
)
BESIDE = re.compile(rf"(?P<ours>{NUMBER}), (?P<times>{NUMBER}) times print")
OTHER = re.compile(rf"(?P<ours>{NUMBER}) where (?P<printed>{NUMBER}) is printed")
# What a rule measures, and the limits of a claim.
LIMITS = re.compile(
    rf"(?P<what>.+?) (?:(?P<sign>>=|<=|=) (?P<limit>{NUMBER})"
    rf"|in \[(?P<from>{NUMBER}), (?P<to>{NUMBER})\])(?= at each| but for|;|$)"
)
# What print lacks, or the runs, where a number is undecided.
LACKS = {
    "further away than one number in ten is by chance, but not one of all": (
        "far for one number, but not for the furthest of so many"
    ),
    "print is too uncertain for a factor of 1.3": (
        "print is too uncertain to exclude a factor of 1.3"
    ),
    "too uncertain for a factor of 1.3": ("too uncertain to exclude a factor of 1.3"),
}
# Quantities as they are written.
WRITTEN = (
    (r"\bmmd\b", "MMD"), (r"\brmse\b", "RMSE"), (r"\bmse\b", "MSE"), (r"\brhat\b", "R-hat"),
    (r"between \[([^,]+), inf\]", r"of \1 or more"),
    (r"between \[([^,]+), ([^]]+)\]", r"of \1 to \2"),
)  # fmt: skip
NEVER = "no number of runs decides"


def why(entry: Verdict, config: Mapping[str, Any]) -> str:
    """Return in one or two sentences why a verdict is what it is.

    Parameters
    ----------
    entry : Verdict
    config : mapping
        Settings of the document, for the names of its problems.

    Returns
    -------
    str
        The reason as it stands where it is in words already.
    """
    for pattern, told in (
        (EXACT, _exact), (BESIDE, _beside), (OTHER, _other), (DISTANCE, _distance),
        (CLAIM, _setting if _configured(entry) else _claim),
    ):  # fmt: skip
        match = re.fullmatch(pattern, entry.reason.removeprefix("this run is cut down: "))
        if match is not None:
            return told(entry, match, lambda text: named(text, config))
    return _sentence(named(entry.reason, config))


def named(text: str, config: Mapping[str, Any]) -> str:
    """Return a setting with the names that figures use: "banana, DP-HMC, ε = 4"."""
    problems = config.get("problems", {})

    def label(match: re.Match[str]) -> str:
        name = match[0]
        if name in problems:
            return str(problems[name].get("label", name))
        base, _, variant = name.partition("-")
        printed = method_label(algorithm(base), variant if "_" in base or variant else "")
        return printed if printed != name else name.replace("_", " ")

    text = re.sub(r"\bepsilon[= ]", "ε = ", text.replace("/", ", "))
    return re.sub(r"\b[A-Za-z]\w*_\w+(?:\.\d+)?(?:-\w+)?\b", label, text)


def quantity(rule: str) -> tuple[str, str]:
    """Return what a rule measures and what a claim asks of it, in words; empty if it is another."""
    match = LIMITS.match(rule)
    if match is None:
        return "", ""
    what = match["what"].replace("_", " ")
    for pattern, words in WRITTEN:
        what = re.sub(pattern, words, what)
    if match["from"] is not None:
        return what, f"between {match['from']} and {match['to']}"
    sign = {">=": "at least", "<=": "at most", "=": "exactly"}[match["sign"]]
    return what, f"{sign} {match['limit']}"


def _configured(entry: Verdict) -> bool:
    # A setting that was cut down for a quick run is not comparable.
    return entry.verdict in (AS_CONFIGURED, CONFIGURED_OTHERWISE) or entry.reason.startswith(
        "this run is cut down"
    )


def _claim(entry: Verdict, match: re.Match[str], names: Callable[[str], str]) -> str:
    several = match["all"] is not None
    parts = [_cases(entry, match)] if several else []
    what, asked = quantity(entry.rule)
    place, ours = names(match["setting"]), _number(match["ours"])
    counted = re.search(r"(?:^|, )of (\d+) runs$", place)
    if counted and what.startswith("runs "):
        place, ours = place[: counted.start()], f"{ours} of {counted[1]} {what}"
    else:
        ours = f"{what} {ours}".strip()
    if match["low"] is not None:
        ours += f" ({_number(match['low'])} to {_number(match['high'])} from {match['runs']} runs)"
    elif match["lacking"] is not None:
        ours += " of unknown uncertainty"
    # The rule of a claim that compares everything with everything ends in how it does so.
    asked = f", where {asked} is asked for" if asked else ""
    told = f"{place}: {ours}{asked}." if place else f"{ours}{asked}."
    parts.append(f"{_worst(entry.verdict)}: {told}" if several else _sentence(told))
    if match["needed"]:
        parts.append(_sentence(_needed(match["needed"])))
    return " ".join(parts)


def _cases(entry: Verdict, match: re.Match[str]) -> str:
    """Return in how many cases a claim or its opposite is established."""
    held, total, against = (int(match[key] or 0) for key in ("held", "all", "against"))
    if entry.verdict in (REPRODUCED, HOLDS):
        cases = f"all {total} cases" if held == total else f"{held} of {total} cases"
        return f"Established in {cases}."
    if entry.verdict in (CONTRADICTED, FAILS):
        rest = f", the claim in {held}" if held else ""
        return f"The opposite is established in {against} of {total} cases{rest}."
    rest = f", its opposite in {against}" if against else ", its opposite in none"
    return f"Established in {held} of {total} cases{rest}."


def _worst(verdict: str) -> str:
    """Return how the case is called whose numbers are told."""
    return "Furthest beyond the limit" if verdict in (CONTRADICTED, FAILS) else "The closest case"


def _setting(entry: Verdict, match: re.Match[str], names: Callable[[str], str]) -> str:
    path = match["setting"].split(".")
    name = next((part for part in reversed(path) if not part.isdigit()), path[-1])
    _, printed = quantity(entry.rule)
    said = f"Ours is {_number(match['ours'])} ({name.replace('_', ' ')})"
    if entry.verdict == AS_CONFIGURED:
        return f"{said}, as in print."
    cut = "; this run is cut down" if entry.reason.startswith("this run") else ""
    return f"{said}, in print {_number(printed.split()[-1]) if printed else 'another'}{cut}."


def _exact(entry: Verdict, match: re.Match[str], names: Callable[[str], str]) -> str:
    inside = "as printed" if entry.digits == "same" else "not as printed"
    ours, low, high = (f"{float(match[key]):,.6g}" for key in ("ours", "low", "high"))
    return f"{ours}, {inside}: {low} to {high}."


def _distance(entry: Verdict, match: re.Match[str], names: Callable[[str], str]) -> str:
    runs = f"{match['runs']} runs"
    if match["both"] is not None:
        told = f"Same digits as print, uncertain by {_percent(match['both'])} ({runs})"
    else:
        told = f"{_percent(match['away'])} from print ({runs})"
        if match["errors"] is not None:
            errors = f"{_number(match['errors'])} standard errors"
            told = f"{_percent(match['away'])} or {errors} from print ({runs})"
    if match["lack"] is None:
        return f"{told}."
    lack = LACKS.get(match["lack"], match["lack"])
    return f"{told}: {lack}. {_sentence(_needed(match['needed']))}"


def _beside(entry: Verdict, match: re.Match[str], names: Callable[[str], str]) -> str:
    return f"{_number(match['times'])} times the printed number."


def _other(entry: Verdict, match: re.Match[str], names: Callable[[str], str]) -> str:
    return f"{_number(match['ours'])}, where {_number(match['printed'])} is printed."


def _needed(text: str) -> str:
    return "more runs would not decide it" if text == NEVER else text


def _percent(text: str) -> str:
    value = float(text)
    return f"{value:.2g} %" if value < 100 else f"{value:,.0f} %"


def _number(text: str) -> str:
    value = float(text.replace(",", ""))
    if value and math.isfinite(value) and (abs(value) < 1e-4 or abs(value) >= 1e9):
        return f"{value:.3g}"
    if not math.isfinite(value):
        return "no number" if math.isnan(value) else f"{'-' if value < 0 else ''}∞"
    if value == round(value):
        return f"{value:,.0f}"
    return number_text(value) if abs(value - 1) > 0.01 else f"{value:.4g}"


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."
