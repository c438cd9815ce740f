"""A stated guarantee checked against the releases that are recorded, without a row.

Releases are added up by the second accountant, and what follows from a statement is derived anew.
No file can show that nothing else was released, nor that noise and sensitivities were what the
ledger says.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dpmc.fits.fit import Fit
from dpmc.privacy.audit import audit
from dpmc.privacy.events import is_of_all_rows, parse
from dpmc.types import NEIGHBOURS, NO_GUARANTEE, DpmcError, Guarantee, is_real
from dpmc.types.guarantee import GAUSSIAN
from dpmc.types.registered import facts

# Share by which the second accountant, whose sums are on a grid, may exceed what is stated.
ROOM = 1e-3
# How far numbers that are derived anew may differ between versions of packages.
DIGITS = 1e-9
Releases = tuple[tuple[str, int], ...]


def verify(path: str | Path, ledger: str | Path | None = None) -> str:
    """One line that a stated guarantee is true.

    Parameters
    ----------
    path : str or Path
        JSON of `dpmc.Fit.record` or `dpmc.types.Guarantee.to_json`, or a file that `dpmc.Fit.save`
        wrote.
    ledger : str or Path, optional
        JSON with the releases, as ``Fit.ledger`` has them, where `path` has none.

    Raises
    ------
    DpmcError
        If it is false, was changed, cannot be told, or a file is of another kind.
    """
    path = Path(path)
    record = _read(path) if path.suffix == ".json" else Fit.load(path).record()
    if isinstance(record, Mapping) and (ledger is None) != ("releases" in record):
        if ledger is None:
            raise DpmcError(f"{path}: has no releases, a second file with a ledger must be given")
        raise DpmcError(f"{path}: has its own releases, a second file must be left out")
    source = path if ledger is None else Path(ledger)
    stated = record.get("guarantee", record) if isinstance(record, Mapping) else record
    guarantee = _guarantee(path, stated)
    releases = _releases(source, record if ledger is None else _read(source))
    return f"true: {_checked(path, guarantee, stated, releases)}"


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once)
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or "a file of another kind"
        raise DpmcError(f"{path}: must be a JSON file with each name once, got {reason}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Mapping of names that are there once: of two, each reader may take another."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _guarantee(path: Path, stated: Any) -> Guarantee:
    """Guarantee that is stated, refusing what is none."""
    if not isinstance(stated, Mapping):
        raise DpmcError(f"{path}: must be the record of a fit or a guarantee, got no mapping")
    for name in ("epsilon", "delta"):
        if name not in stated:
            raise DpmcError(f"{path}: must be the record of a fit or a guarantee, got no {name!r}")
    usual = asdict(NO_GUARANTEE) | {"outside": []}
    known = {name: stated.get(name, value) for name, value in usual.items()}
    epsilon, delta = known["epsilon"], known["delta"]
    if epsilon is None:
        raise DpmcError(f"{path}: false: no guarantee is stated")
    if not (is_real(epsilon) and 0 <= epsilon < math.inf and is_real(delta) and 0 <= delta < 1):
        raise DpmcError(
            f"{path}: `epsilon` and `delta` must be numbers of a guarantee, got {epsilon!r} and "
            f"{delta!r}"
        )
    if known["neighbours"] not in tuple(NEIGHBOURS):
        raise DpmcError(
            f"{path}: `neighbours` must be one of {', '.join(NEIGHBOURS)}, got "
            f"{known['neighbours']!r}"
        )
    texts = known["accountant"], known["unit"], known["noise"]
    listed = isinstance(known["outside"], list) and all(map(_is_text, known["outside"]))
    if not (all(map(_is_text, texts)) and listed):
        raise DpmcError(
            f"{path}: `accountant`, `unit` and `noise` must be texts, and `outside` a list of them"
        )
    known |= {
        "epsilon": float(epsilon),
        "delta": float(delta),
        "outside": tuple(known["outside"]),
    }
    return Guarantee(**known)


def _is_text(value: object) -> bool:
    """Whether a value is a text on one line: more might look like another verdict."""
    return isinstance(value, str) and value.isprintable()


def _releases(path: Path, found: Any) -> Releases:
    """Releases that a ledger or a record has."""
    listed = found["releases"] if isinstance(found, Mapping) and "releases" in found else found
    if not isinstance(listed, list):
        raise DpmcError(f"{path}: must have a list of releases, each a text and a count")
    try:
        parse(listed)
    except (DpmcError, TypeError, ValueError) as error:
        raise DpmcError(f"{path}: {error}") from None
    return tuple((event, int(count)) for event, count in listed)


def _checked(path: Path, guarantee: Guarantee, stated: Any, releases: Releases) -> str:
    """What is true of a guarantee with its releases."""
    counts = {event: count for event, count in parse(releases).items() if count}
    if guarantee.neighbours != "replace" and not all(map(is_of_all_rows, counts)):
        raise DpmcError(
            f"{path}: cannot be told: releases from batches are accounted for under "
            f"{NEIGHBOURS['replace']} alone, and {guarantee.relation} is stated"
        )
    if guarantee.delta == 0 or not (counts or guarantee.accountant == GAUSSIAN):
        raise DpmcError(
            f"{path}: cannot be told: noise that is not Gaussian is in no ledger, and what is "
            f"stated is delta = {guarantee.delta:g} by {guarantee.accountant or 'no accountant'}"
        )
    found = audit(counts, guarantee.delta)
    if not found.epsilon <= guarantee.epsilon * (1 + ROOM):
        raise DpmcError(
            f"{path}: false: the releases come to epsilon {found.epsilon:.6g} at delta "
            f"{guarantee.delta:g} by {found.accountant}, more than the {guarantee.epsilon:g} that "
            "is stated"
        )
    for name, value in facts(guarantee, releases).items():
        if name in stated and not _agree(value, stated[name]):
            raise DpmcError(
                f"{path}: false: `{name}` is not that of this guarantee with these releases: one "
                "of them was changed, or belongs to another"
            )
    pair = f"({guarantee.epsilon:g}, {guarantee.delta:g})-DP, {guarantee.relation}"
    outside = ", ".join(guarantee.outside) or "nothing"
    digest = "" if "digest" in stated else " They have no digest: some may be missing."
    return (
        f"{pair}: the releases come to epsilon {found.epsilon:.6g} by {found.accountant}.{digest} "
        f"Outside of it: {outside}."
    )


def _agree(value: Any, stated: Any) -> bool:
    """Whether all of a value is in what is stated, which may hold more."""
    if isinstance(value, Mapping):
        return isinstance(stated, Mapping) and all(
            key in stated and _agree(one, stated[key]) for key, one in value.items()
        )
    if isinstance(value, float) and is_real(stated):
        return math.isclose(value, stated, rel_tol=DIGITS)
    return bool(value == stated)
