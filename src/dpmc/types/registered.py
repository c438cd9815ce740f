"""Facts of a guarantee for a registry of releases.

The fields of ``deployment`` are those of the registry of differential privacy deployments
[Nanayakkara, Ghazi and Vadhan 2025, arXiv 2509.13509], which goes back to the epsilon registry
[Dwork, Kohli and Mulligan 2019]: those that a guarantee decides. Who publishes what, why, and whom
one has to trust, only its curator can tell.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmc.types.guarantee import Guarantee

# Packages whose numbers a guarantee rests on.
PACKAGES = "dpmc", "numpy", "scipy", "numba", "dp-accounting"


def facts(
    guarantee: Guarantee, releases: Iterable[tuple[str, int]] | None = None
) -> dict[str, Any]:
    """Fields of a guarantee, what follows from them, and a digest of them with `releases`."""
    found: dict[str, Any] = {**asdict(guarantee), "outside": list(guarantee.outside)}
    found["mu"] = guarantee.mu
    if guarantee.private:
        found["deployment"] = _deployment(guarantee)
    else:
        found["epsilon"] = None  # JSON has no infinity
    if releases is not None:
        found["digest"] = digest(guarantee, releases)
    return found


def digest(guarantee: Guarantee, releases: Iterable[tuple[str, int]]) -> str:
    """SHA-256 digest of a guarantee with the releases that it is for.

    It tells a file that was changed, or one that belongs to another. It is no signature: who
    changes both can compute it anew.
    """
    stated = {**asdict(guarantee), "outside": list(guarantee.outside)}
    counts = sorted([str(event), int(count)] for event, count in releases)
    text = json.dumps([stated, counts], sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@functools.cache
def made_with() -> dict[str, str]:
    """Versions of packages that are installed, and the SHA-256 digest of the library's files."""
    from importlib.metadata import PackageNotFoundError, version  # takes long

    root = Path(__file__).parents[1]
    code = hashlib.sha256()
    for path in sorted(root.rglob("*.py"), key=Path.as_posix):
        text = path.read_bytes().replace(b"\r\n", b"\n")
        code.update(f"{path.relative_to(root).as_posix()} {len(text)}\n".encode() + text)
    versions = {}
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):  # of a source tree that is on the path
            versions[name] = version(name)
    return {**versions, "code": f"sha256:{code.hexdigest()}"}


def _deployment(guarantee: Guarantee) -> dict[str, Any]:
    parameters = {"epsilon": guarantee.epsilon}
    if guarantee.delta > 0:
        parameters["delta"] = guarantee.delta
    details = f"proved by the accountant {guarantee.accountant}" if guarantee.accountant else ""
    if guarantee.mu is not None:
        details += (
            f"; all of the curve is that of Gaussian differential privacy, mu = {guarantee.mu:.6g}"
        )
    noise = {"mechanisms": f"{guarantee.noise} noise on quantities of bounded sensitivity"}
    return {
        "dp_variant": {
            "variant_name": "Approximate DP" if guarantee.delta > 0 else "Pure DP",
            "unprotected_quantities": "; ".join(guarantee.outside) or "none",
        },
        "privacy_loss": {
            "privacy_unit": guarantee.unit,
            "privacy_unit_details": f"adjacent data sets differ by {guarantee.relation}",
            "privacy_parameters": parameters,
            "privacy_parameters_details": details,
        },
        **({"implementation": noise} if guarantee.noise else {}),
    }
