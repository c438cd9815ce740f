"""File of claims of one document, read and checked before any work starts."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from dpmc.registry import refusal
from dpmc.types import DpmcError
from dpmc.yaml_files import read_yaml
from dpmc_papers.verdicts import printed_series
from dpmc_papers.verdicts.bootstrap import STATISTICS
from dpmc_papers.verdicts.kinds import Kind
from dpmc_papers.verdicts.lookup import kinds
from dpmc_papers.verdicts.verdict import NO_OUTPUT

ENTRY_KEYS = {
    "id", "where", "output", "published", "variants", "rule", "low", "high", "exceptions",
}  # fmt: skip
NEEDED = ("id", "where", "output", "published", "rule")
FILE_KEYS = {"paper", "error_rate", "printed_variants", "resamples", "seed", "needs", "entries"}
# Keys that rules of several kinds may have beside those that their kind needs.
RULE_KEYS = {
    "kind", "where", "by", "groups", "statistic", "versus", "over", "exact", "count", "below",
    "rates", "most_noise",
}  # fmt: skip
CHOICES = {"statistic": tuple(STATISTICS), "versus": ("max", "min")}
RANGE = {"at_least", "below", "largest"}
# Experiments in `without_runs` have claims and are in no grid: tests decide these.
OPTIONAL = {"settings", "series", "without_runs"}
# Keys of the file that hold several things.
LISTS = "entries", "series", "printed_variants"
MAPPINGS = "settings", "needs"


def load(path: Path | str, outputs: Collection[str] | None = None) -> dict[str, Any]:
    """Claims and numbers of a document, every entry and series of which is well formed.

    If `outputs` are given, the figures and tables in the configuration of the document, every claim
    must name one or more of them.
    """
    values = read_yaml(Path(path))
    check(values, str(path))
    if outputs is not None:
        for entry in [*values["entries"], *values.get("series", ())]:
            _check_outputs(entry, outputs, str(path))
    return values


def outputs_of(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the figures and tables that show a claim; empty for ``none``."""
    names = entry["output"]
    if isinstance(names, str):
        return () if names == NO_OUTPUT else (names,)
    return tuple(names)


def check(values: Any, where: str) -> None:
    """Refuse the contents of a file of claims that are not well formed."""
    keys = set(values) if isinstance(values, Mapping) else set()
    for key in sorted(FILE_KEYS - keys):
        raise DpmcError(f"{where}: `{key}` is missing")
    for key in sorted(keys - FILE_KEYS - OPTIONAL):
        raise DpmcError(f"{where}: a key must be {_one_of(FILE_KEYS | OPTIONAL)}, got {key!r}")
    for kind, names in ((list, LISTS), (Mapping, MAPPINGS)):
        for name in names:
            if name in values and not isinstance(values[name], kind):
                wanted = "a list" if kind is list else "a mapping"
                raise DpmcError(f"{where}: `{name}` must be {wanted}, got {values[name]!r}")
    for name, wanted in values["needs"].items():
        if not isinstance(wanted, Mapping):
            raise DpmcError(f"{where}: `needs.{name}` must be a mapping, got {wanted!r}")
    for name, pair in values.get("settings", {}).items():
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise DpmcError(
                f"{where}: setting {name!r} must be a place in the configuration and the printed "
                f"number, got {pair!r}"
            )
    for key, least in (("resamples", 2), ("seed", 0)):
        if type(values[key]) is not int or values[key] < least:
            needed = f"a whole number of at least {least}"
            raise DpmcError(f"{where}: {refusal(key, needed, values[key])}")
    if not (_is_number(values["error_rate"]) and 0 < values["error_rate"] < 0.5):
        raise DpmcError(
            f"{where}: {refusal('error_rate', 'a number in (0, 1/2)', values['error_rate'])}"
        )
    known = kinds(str(values["paper"]))
    blocks = values.get("series", [])
    for entry in values["entries"]:
        for fault in _faults(entry, known):
            raise DpmcError(f"{where}: entry {_name(entry)!r}: {fault}")
    for block in blocks:
        wrong = printed_series.fault(block, known) or _fault_of_output(block)
        if wrong:
            raise DpmcError(f"{where}: series {_name(block)!r}: {wrong}")
    seen: set[str] = set()
    for entry in [*values["entries"], *blocks]:
        if entry["id"] in seen:
            raise DpmcError(f"{where}: entry {entry['id']!r} is given twice")
        seen.add(entry["id"])


def _faults(entry: Any, known: Mapping[str, Kind]) -> Iterator[str]:
    if not isinstance(entry, Mapping):
        yield f"an entry must be a mapping, got {entry!r}"
    if not isinstance(entry.get("rule", {}), Mapping):
        yield f"`rule` must be a mapping, got {entry['rule']!r}"
    for key in sorted(set(entry) - ENTRY_KEYS):
        yield f"a key must be {_one_of(ENTRY_KEYS)}, got {key!r}"
    for key in NEEDED:
        if key not in entry:
            yield f"`{key}` is missing"
    fault = _fault_of_output(entry)
    if fault:
        yield fault
    rule = entry["rule"]
    if rule.get("kind") not in known:
        yield f"`kind` of the rule must be {_one_of(known)}, got {rule.get('kind')!r}"
    for key in known[rule["kind"]].keys:
        if key not in rule:
            yield f"`{key}` of the rule is missing, which kind {rule['kind']!r} needs"
    yield from _faults_of_rule(rule, {*known[rule["kind"]].keys, *RULE_KEYS})
    for key in ("low", "high", "exceptions"):
        if not _is_number(entry.get(key, 0)):
            yield f"`{key}` must be a number, got {entry[key]!r}"
    if "low" not in entry and "high" not in entry:
        yield "`low` or `high` is missing"
    if entry.get("low", -math.inf) > entry.get("high", math.inf):
        yield f"`low` must be at most `high`, got {entry['low']} and {entry['high']}"
    if not 0 <= entry.get("exceptions", 0) < 1:
        yield f"`exceptions` must be at least 0 and below 1, got {entry['exceptions']!r}"


def _faults_of_rule(rule: Mapping[str, Any], known: Collection[str]) -> Iterator[str]:
    for key in sorted(set(rule) - set(known)):
        yield f"a key of the rule must be {_one_of(known)}, got {key!r}"
    for key, choices in CHOICES.items():
        if rule.get(key, choices[0]) not in choices:
            yield f"`{key}` of the rule must be {_one_of(choices)}, got {rule[key]!r}"
    filters = [rule.get("where", {})]
    if not isinstance(filters[0], Mapping):
        yield f"`where` of the rule must be a mapping, got {filters[0]!r}"
    for key in ("by", "groups", "numerators", "denominators", "tiers"):
        if not isinstance(rule.get(key, []), list):
            yield f"`{key}` of the rule must be a list, got {rule[key]!r}"
        filters += [one for one in rule.get(key, ()) if isinstance(one, Mapping)]
    ranges = [part for one in filters for part in one.values() if isinstance(part, Mapping)]
    for part in ranges:
        for key, number in part.items():
            if key not in RANGE or not _is_number(number):
                yield f"a range must have numbers for {_one_of(RANGE)}, got {key!r}: {number!r}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _fault_of_output(entry: Mapping[str, Any]) -> str | None:
    """What is wrong with the form of `output`, None if nothing is."""
    names = entry["output"]
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, list) or not listed or not all(isinstance(n, str) for n in listed):
        return f"`output` must be a figure or table, a list of them or {NO_OUTPUT}, got {names!r}"
    if isinstance(names, list) and NO_OUTPUT in names:
        return f"`output` must list figures and tables alone, got {names!r}"
    return None


def _check_outputs(entry: Mapping[str, Any], outputs: Collection[str], where: str) -> None:
    for name in outputs_of(entry):
        if name not in outputs:
            close = difflib.get_close_matches(name, outputs, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"one of {', '.join(outputs)}"
            raise DpmcError(
                f"{where}: entry {entry['id']!r}: `output` must be a figure or table of the "
                f"configuration, got {name!r}; {hint}"
            )


def _name(entry: Any) -> str:
    return str(entry.get("id", "?")) if isinstance(entry, Mapping) else str(entry)


def _one_of(names: Collection[str]) -> str:
    return f"one of {', '.join(sorted(names))}"
