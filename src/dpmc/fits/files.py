"""One Parquet file for a fit: a row for each stored state, and the rest in its metadata."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from dpmc.types import Diagnostic, DpmcError, Guarantee, Plan
from dpmc.types.registered import facts

if TYPE_CHECKING:
    from dpmc.fits.fit import Fit

KEY = b"dpmc_fit"
VERSION = 2


def path_of(path: object) -> Path:
    """Path of a file, refusing what is none."""
    if not isinstance(path, str | os.PathLike):
        raise DpmcError(f"`path` must be the path of a file, got {path!r}")
    return Path(path)


def record(fit: Fit) -> dict[str, Any]:
    """Facts of a fit; see `Fit.record`."""
    table = fit.summary().to_dataframe()
    facts = {
        "guarantee": _registered(fit),
        "posterior": table.astype(object).where(table.notna(), None).to_dict("index"),
        "remarks": fit.remarks,
        "status": fit.status,
        "releases": fit.ledger,
        "plan": fit.plan.values(),
        "made_with": dict(fit.made_with),
    }
    plain: dict[str, Any] = json.loads(json.dumps(facts, default=_plain))
    return plain


def _registered(fit: Fit) -> dict[str, Any]:
    """Facts of a guarantee, and how it came about in the words of the registry."""
    found = facts(fit.guarantee, fit.ledger)
    if fit.guarantee.private:
        found["deployment"] |= {
            "accounting": {
                "composition": f"{sum(count for _, count in fit.ledger)} releases, listed",
                "post_processing": "draws are computed from releases and public numbers alone",
            },
        }
    return found


def save(fit: Fit, path: Path) -> None:
    """Write a fit; see `Fit.save`."""
    import pyarrow as pa
    from pyarrow import parquet

    if fit.draws is None or not fit.draws.size:
        raise DpmcError(f"the fit must have draws, got none (status {fit.status!r})")
    chains, length, dim = fit.draws.shape
    columns: dict[str, Any] = {
        "chain": np.repeat(np.arange(chains), length),
        "draw": np.tile(np.arange(length), chains),
    }
    columns |= {f"theta.{k}": fit.draws[:, :, k].ravel() for k in range(dim)}
    columns |= {f"info.{name}": np.asarray(values).ravel() for name, values in fit.info.items()}
    rest = {
        "version": VERSION,
        "totals": {name: np.asarray(values).tolist() for name, values in fit.totals.items()},
        "status": fit.status,
        "ledger": fit.ledger,
        "guarantee": asdict(fit.guarantee),
        "plan": fit.plan.values(),
        "warm_up": fit.warm_up,
        "diagnostics": {name: asdict(one) for name, one in fit.diagnostics.items()},
        "names": fit.names,
        "remarks": fit.remarks,
        "made_with": dict(fit.made_with),
    }
    table = pa.table(columns)
    text = json.dumps(rest, default=_plain)
    table = table.replace_schema_metadata({KEY: text.encode()})
    try:
        _write(path, lambda file: parquet.write_table(table, file))
    except OSError as error:
        reason = error.strerror or error
        raise DpmcError(f"{path}: must be a file that can be written, got {reason}") from None


def _write(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Let a file take its name when it is complete."""
    # With the permissions that other files get: a posterior is made to be shared.
    temporary = path.absolute().with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        with temporary.open("xb") as file:
            write(file)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load(path: Path) -> dict[str, Any]:
    """Fields of a fit; see `Fit.load`."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(path).read()  # a folder is no set of tables
        rest = json.loads((table.schema.metadata or {})[KEY])
    except (OSError, pa.ArrowInvalid, KeyError, ValueError) as error:
        if not path.is_file():
            reason = "a folder" if path.is_dir() else "no file"
        elif isinstance(error, KeyError):
            reason = "a Parquet file without a fit"
        elif isinstance(error, OSError) and error.strerror:
            reason = error.strerror
        else:
            reason = "a file of another kind"
        raise DpmcError(f"{path}: must be a file that `Fit.save` wrote, got {reason}") from None
    if rest["version"] != VERSION:
        raise DpmcError(f"{path}: `version` must be {VERSION}, got {rest['version']}")
    chains = int(table["chain"].to_numpy().max()) + 1
    states = [name for name in table.column_names if name.startswith("theta.")]
    shape = (chains, -1)
    draws = np.stack([table[name].to_numpy().reshape(shape) for name in states], axis=2)
    info = {
        name.removeprefix("info."): table[name].to_numpy().reshape(shape)
        for name in table.column_names
        if name.startswith("info.")
    }
    guarantee = rest["guarantee"]
    guarantee["outside"] = tuple(guarantee["outside"])
    return {
        "draws": draws,
        "info": info,
        "totals": {name: np.asarray(values) for name, values in rest["totals"].items()},
        "status": rest["status"],
        "ledger": tuple((text, int(count)) for text, count in rest["ledger"]),
        "guarantee": Guarantee(**guarantee),
        "plan": Plan.of(rest["plan"]),
        "diagnostics": {name: Diagnostic(**one) for name, one in rest["diagnostics"].items()},
        "warm_up": rest["warm_up"],
        "names": tuple(rest["names"]),
        "remarks": tuple(rest["remarks"]),
        "made_with": rest.get("made_with", {}),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"cannot save {type(value).__name__}")
