"""Releases by OpenDP of made-up rows, which `ten_releases.py` takes back to posteriors.

    uv run --no-project --with opendp==0.16.0 --with numpy \
        python benchmarks/opendp_releases.py > benchmarks/opendp_releases.json

Its noise has no seed: every run writes other values.
"""

from __future__ import annotations

import json

import numpy as np
import opendp.prelude as dp

dp.enable_features("contrib")
rng = np.random.default_rng(44)
FLOATS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
INTEGER = dp.atom_domain(T=int), dp.absolute_distance(T=int)
COUNTS = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)


def clamped_sum(rows, low, high):
    total = FLOATS >> dp.t.then_clamp((low, high)) >> dp.t.then_sum()
    return total, rows.tolist()


def table(cells, scale):
    return dp.m.make_laplace(*COUNTS, scale=scale)([int(count) for count in cells])


genotypes = rng.multinomial(60, [0.3 * 0.3 + 0.05, 0.42 - 0.1, 0.49 + 0.05])
incomes, rows = clamped_sum(rng.exponential(2.0, 40), 0.0, 5.0)
scores, more_rows = clamped_sum(rng.normal(0.8, 1.5, 400), -3.0, 3.0)
visits = np.minimum(rng.poisson(1.4, 50), 6)
answer = dp.m.make_randomized_response_bool(0.75)
families = np.bincount(np.minimum(rng.geometric(0.6, 40) - 1, 5), minlength=6)
found = {
    "genotypes": table(genotypes, 1.5),
    "incomes": (incomes >> dp.m.then_laplace(scale=5.0))(rows),
    "visits": dp.m.make_gaussian(*INTEGER, scale=8.0)(int(visits.sum())),
    "patients": dp.m.make_laplace(*INTEGER, scale=2.0)(50),
    "answers": sum(answer(bool(one)) for one in rng.random(300) < 0.2),
    "scores": (scores >> dp.m.then_gaussian(scale=12.0))(more_rows),
    "families": [max(0, count) for count in table(families, 2.0)],
    "households": dp.m.make_laplace(*INTEGER, scale=2.0)(40),
}
print(json.dumps({"made by": f"opendp {dp.__version__}", **found}, indent=2))
