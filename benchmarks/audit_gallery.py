"""Audits of mechanisms of other packages, each in a pinned environment of its own.

``uv run python benchmarks/audit_gallery.py [name ...]`` has outcomes drawn by this file in an
environment that uv makes, audits them by :func:`dpmc.audit`, and prints the table of docs/audit.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PYTHON, RUNS, CONFIDENCE, EPSILON = "3.11", 4000, 0.99, 1.0
Draw = Callable[[int, int], list[Any]]


def laplace_of_opendp(side: int, number: int) -> list[Any]:
    """A number, moved by 1."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    measure = dp.m.make_laplace(*space, scale=1 / EPSILON)
    return [measure(float(side)) for _ in range(number)]


def response_of_opendp(side: int, number: int) -> list[Any]:
    """A yes or no of one person."""
    import math

    import opendp.prelude as dp

    dp.enable_features("contrib")
    measure = dp.m.make_randomized_response_bool(prob=1 / (1 + math.exp(-EPSILON)))
    return [measure(bool(side)) for _ in range(number)]


def mean_of_diffprivlib(side: int, number: int) -> list[Any]:
    """The mean of ten numbers in [0, 1], one of which is another."""
    from diffprivlib import tools

    values = [0.0] * 9 + [float(side)]
    return [float(tools.mean(values, epsilon=EPSILON, bounds=(0, 1))) for _ in range(number)]


def regression_of_diffprivlib(side: int, number: int) -> list[Any]:
    """A slope without an intercept, of two rows in [0, 1], one of which is another."""
    import warnings

    import numpy as np
    from diffprivlib.models import LinearRegression

    warnings.simplefilter("ignore")
    x, y = np.array([[0.1], [1.0 - side]]), np.array([0.1, 0.1])
    settings = {"epsilon": EPSILON, "bounds_X": (0.0, 1.0), "bounds_y": (0.0, 1.0)}
    model = LinearRegression(**settings, fit_intercept=False)
    return [float(np.ravel(model.fit(x, y).coef_)[0]) for _ in range(number)]


def unary_of_pure_ldp(side: int, number: int) -> list[Any]:
    """A report of one person on which of two values it has, as one bit for each."""
    from pure_ldp.frequency_oracles.unary_encoding import UEClient

    client = UEClient(epsilon=EPSILON, d=2, index_mapper=lambda value: value)
    return ["".join(map(str, client.privatise(side))) for _ in range(number)]


def sum_of_python_dp(side: int, number: int) -> list[Any]:
    """A sum of numbers in [0, 1], with or without one of 1."""
    from pydp.algorithms.laplacian import BoundedSum

    values = [0.5] * 10 + [1.0] * side

    def once() -> float:
        total = BoundedSum(epsilon=EPSILON, lower_bound=0, upper_bound=1, dtype="float")
        return float(total.quick_result(values))

    return [once() for _ in range(number)]


def sum_of_smartnoise(side: int, number: int) -> list[Any]:
    """A sum of numbers in [0, 1], with or without one of 1, in each of many groups of a query."""
    import pandas as pd
    from snsql import Privacy, from_df

    values = [0.5] * 10 + [1.0] * side
    rows = pd.DataFrame({"k": [k for k in range(number) for _ in values], "x": values * number})
    columns = {"k": {"type": "int"}, "x": {"type": "float", "lower": 0.0, "upper": 1.0}}
    table = {"rows": len(rows), "row_privacy": True, "censor_dims": False, **columns}
    reader = from_df(rows, privacy=Privacy(epsilon=EPSILON), metadata={"": {"T": {"t": table}}})
    answer = reader.execute("SELECT k, SUM(x) AS s FROM T.t GROUP BY k")
    return [float(row[1]) for row in answer[1:]]


def gradient_of_jax_privacy(side: int, number: int) -> list[Any]:
    """A sum of gradients clipped to 1, with or without a far row, and noise of deviation 1."""
    import jax
    import jax.numpy as jnp
    from jax_privacy import clipping, noise_addition

    gradient = clipping.clipped_grad(lambda w, x: jnp.sum(w * x), l2_clip_norm=1.0)
    rows = jnp.array([[0.5], [0.1], [1e6]][: 2 + side])
    total = gradient(jnp.zeros(1), rows)
    privatizer = noise_addition.gaussian_privatizer(stddev=1.0, prng_key=jax.random.key(side))
    update, state, found = jax.jit(privatizer.update), privatizer.init(total), []
    for _ in range(number):
        noisy, state = update(total, state)
        found.append(float(noisy[0]))
    return found


@dataclass(frozen=True)
class Entry:
    """A mechanism: its package, how outcomes are drawn, what it claims, and what is known of it.

    Parameters
    ----------
    packages : str
        Pinned requirements, apart by spaces; the first is the package.
    what : str
    draw : callable ``(side, number) -> list of outcomes``
    claim : float
        Epsilon at delta 0, or mu where `gaussian`.
    known : str
        The thread of a fault that is publicly known; empty if we know of none.
    gaussian : bool
    """

    packages: str
    what: str
    draw: Draw
    claim: float = EPSILON
    known: str = ""
    gaussian: bool = False


THREAD = "https://github.com/IBM/differential-privacy-library/issues/105"
REPORT = "https://github.com/Samuel-Maddock/pure-LDP/issues/11"
DIFFPRIVLIB = "diffprivlib==0.6.6 scikit-learn==1.6.1 numpy==2.4.6"
OF_PURE_LDP = "numpy==2.4.6 scikit-learn==1.6.1 statsmodels==0.15.0"  # which it does not declare
SMARTNOISE = "smartnoise-sql==1.0.10 opendp==0.14.2 pandas==2.3.3 setuptools==80.9.0"
ENTRIES = {
    "opendp_laplace": Entry("opendp==0.16.0", "`make_laplace`", laplace_of_opendp),
    "opendp_response": Entry(
        "opendp==0.16.0", "`make_randomized_response_bool`", response_of_opendp
    ),
    "diffprivlib_mean": Entry(DIFFPRIVLIB, "`tools.mean`", mean_of_diffprivlib),
    "diffprivlib_regression": Entry(
        DIFFPRIVLIB, "`LinearRegression`", regression_of_diffprivlib, known=THREAD
    ),
    "pure_ldp_before": Entry(
        f"pure-ldp==1.1.2 {OF_PURE_LDP}", "`UEClient`", unary_of_pure_ldp, known=REPORT
    ),
    "pure_ldp": Entry(f"pure-ldp==1.2.0 {OF_PURE_LDP}", "`UEClient`", unary_of_pure_ldp),
    "python_dp": Entry("python-dp==1.1.5", "`BoundedSum`", sum_of_python_dp),
    "smartnoise": Entry(SMARTNOISE, "`SUM` of a query", sum_of_smartnoise),
    "jax_privacy": Entry(
        "jax-privacy==2.0.0 jax==0.10.2", "`clipped_grad`, `gaussian_privatizer`",
        gradient_of_jax_privacy, 1.0, gaussian=True,
    ),
}  # fmt: skip


def outcomes(name: str, number: int) -> list[list[Any]]:
    """Outcomes of both sides, drawn in the environment of the mechanism."""
    needed = [word for one in ENTRIES[name].packages.split() for word in ("--with", one)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outcomes.json"
        command = ["uv", "run", "--no-config", "--no-project", "--isolated", "--python", PYTHON]
        command += [*needed, "python", __file__, "draw", name, str(number), str(path)]
        subprocess.run(command, check=True)
        found: list[list[Any]] = json.loads(path.read_text())
    return found


def audited(name: str, pools: list[list[Any]]) -> Any:
    """Audit of what was drawn: each run takes the next outcome of its side."""
    import dpmc

    entry, left = ENTRIES[name], [iter(pool) for pool in pools]
    claim = {"mu": entry.claim, "delta": 1e-5} if entry.gaussian else {"claim": entry.claim}
    number = min(map(len, pools))

    def mechanism(side: int) -> Any:
        return next(left[side])

    return dpmc.audit(mechanism, 0, 1, **claim, num_runs=number, confidence=CONFIDENCE, seed=1)


def row(name: str, result: Any) -> str:
    """Line of the table."""
    entry = ENTRIES[name]
    package, _, version = entry.packages.split()[0].partition("==")
    claim = f"mu = {entry.claim:g}" if entry.gaussian else f"epsilon = {entry.claim:g}"
    bound = result.mu_lower if entry.gaussian else result.epsilon_lower
    said = "violated" if result.violates_claim else "not violated"
    known = f"[yes]({entry.known})" if entry.known else "no"
    return f"| {package} {version} | {entry.what} | {claim} | {bound:.2f} | {said} | {known} |"


if __name__ == "__main__":
    if sys.argv[1:2] == ["draw"]:
        asked, size, file = sys.argv[2:]
        drawn = [ENTRIES[asked].draw(side, int(size)) for side in (0, 1)]
        Path(file).write_text(json.dumps(drawn))
    else:
        for asked in sys.argv[1:] or ENTRIES:
            print(row(asked, audited(asked, outcomes(asked, RUNS))), flush=True)
