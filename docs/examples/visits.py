"""Visits of patients: several analyses under one budget, and an audit of what each guarantees.

uv run python docs/examples/visits.py [runs of an audit]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import dpmc
from dpmc.privacy import GaussianBudget, asserted

UNIT = {"unit": "patient", "progress": False}
DELTA = 1e-6


def made_up(patients: int, rng: np.random.Generator) -> pd.DataFrame:
    """Between one and eight visits of each patient, who has a pressure of their own."""
    patient = np.repeat(np.arange(patients), rng.integers(1, 9, size=patients))
    visits = pd.DataFrame({"patient": patient, "dose": rng.uniform(0, 10, len(patient))})
    habit = 5 * rng.normal(size=patients)[patient]
    visits["pressure"] = 120 + 2 * visits.dose + habit + 5 * rng.normal(size=len(patient))
    visits["admitted"] = rng.random(len(patient)) < 1 / (1 + np.exp(2 - 0.2 * visits.dose))
    return visits


def pressure(session, visits, epsilon, options=UNIT):
    """Pressure at a dose, of all visits."""
    return session.regression("pressure ~ dose", visits, epsilon=epsilon, **options)


def admission(session, visits, epsilon, options=UNIT):
    """Odds of being admitted at a dose, of all visits."""
    options = {"likelihood": "logistic", **options}
    return session.regression("admitted ~ dose", visits, epsilon=epsilon, **options)


def ever(session, visits, epsilon):
    """How many patients were ever admitted, which one patient moves by 1."""
    number = asserted(float(visits.groupby("patient").admitted.any().sum()), sensitivity=1)
    return session.release(number, epsilon=epsilon, label="admitted")


def audited(part, runs, folder, epsilon=4.0, confidence=0.95, **options):
    """Audit of a part, on two tables that differ in a patient who comes fifty times."""
    others = made_up(600, np.random.default_rng(1)).query("patient > 0")
    pair = [
        pd.concat([pd.DataFrame([{"patient": 0, "dose": 10.0, **last}] * 50), others])
        for last in ({"pressure": 0.0, "admitted": False}, {"pressure": 300.0, "admitted": True})
    ]

    def told(visits):
        (path := folder / "audit.budget").unlink(missing_ok=True)
        with dpmc.Session(epsilon=8, delta=DELTA, path=path) as session:
            found = part(session, visits, epsilon, **options)
        return found if isinstance(found, float) else float(found.draws[..., 1].mean())

    settings = {"claim": epsilon, "delta": DELTA, "num_runs": runs, "confidence": confidence}
    return dpmc.audit(told, *pair, mu=GaussianBudget.of(epsilon, DELTA).mu, seed=1, **settings)


def main(path="docs/images/visits.png", patients=4_000, runs=0):
    """Two regressions and a count under one budget, a picture, and audits if they are asked for."""
    table = made_up(patients, np.random.default_rng(0))
    with tempfile.TemporaryDirectory() as folder:
        with dpmc.Session(epsilon=2, delta=DELTA, path=Path(folder) / "study.budget") as study:
            fits = [analysis(study, table, 1.0) for analysis in (pressure, admission)]
            fits[1].plot().savefig(path, dpi=110)
            print(*(fit.summary() for fit in fits), sep="\n\n", end="\n\n")
            print("ever admitted:", ever(study, table, 0.5), study, study.guarantee, sep="\n")
        for one in (pressure, admission, ever) if runs else ():
            print(f"{one.__name__}: {audited(one, runs, Path(folder))}")
    return fits


if __name__ == "__main__":
    main(runs=int(sys.argv[1]) if len(sys.argv) > 1 else 0)
