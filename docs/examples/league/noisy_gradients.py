"""Logistic regression by noisy gradients, and a posterior from all of them, sampled by emcee.

Nothing of dpmc is imported: NumPy, emcee, and folders with a task, a run in each. Eight gradients
are released, each at the end of the last step; the later ones make a noisy quadratic likelihood.
Its curvature is that of the logistic model with features of the public law (normal, cut off at 2).
"""

import json
import sys
from pathlib import Path

import emcee
import numpy as np

STEPS = 8


def run(folder):
    """Read the task of a folder, and write draws and ledger."""
    task = json.loads((folder / "task.json").read_text())
    if task["model"] != "logistic":
        sys.exit("only logistic regression")
    rows = np.load(folder / "rows.npy")
    x, y = rows[:, :-1], rows[:, -1]
    d, norm = x.shape[1], task["bounds"]["row_norm"]
    x = x * np.minimum(1, norm / np.maximum(np.linalg.norm(x, axis=1), 1e-300))[:, None]
    multiplier = np.sqrt(STEPS) / task["mu"] * (1 + 1e-9)
    sd = 2 * norm * multiplier
    rng = np.random.default_rng(task["seed"])
    public = np.clip(rng.standard_normal((5_000, d)), -2, 2)

    def curvature(theta):
        """Return the negative Hessian that public features would have, shape (d, d)."""
        p = 1 / (1 + np.exp(-public @ theta))
        return task["num_rows"] * (public * (p * (1 - p))[:, None]).T @ public / len(public)

    theta, modes = np.zeros(d), []
    for step in range(STEPS):
        p = 1 / (1 + np.exp(-x @ theta))
        gradient = x.T @ (y - p) + sd * rng.standard_normal(d)
        theta = theta + np.linalg.solve(curvature(theta), gradient)
        if step >= 3:
            modes.append(theta)
    inverse = np.linalg.inv(curvature(theta))
    covariance = inverse + sd**2 / len(modes) * inverse @ inverse
    precision, centre = np.linalg.inv(covariance), np.mean(modes, axis=0)

    def log_density(points):
        """Return the log-posterior of points given what was released, prior sd 5."""
        off = points - centre
        square = np.einsum("ij,jk,ik->i", off, precision, off)
        return -0.5 * square - 0.02 * np.sum(points**2, axis=1)

    start = rng.multivariate_normal(centre, covariance, size=32)
    sampler = emcee.EnsembleSampler(32, d, log_density, vectorize=True)
    sampler.random_state = np.random.RandomState(rng.integers(2**32)).get_state()
    sampler.run_mcmc(start, 600)
    np.save(folder / "draws.npy", sampler.get_chain(discard=100, thin=5, flat=True))
    outside = [] if task["seed"] is None else ["a known seed"]
    ledger = {"releases": [[f"gaussian({float(multiplier)!r})", STEPS]], "outside": outside}
    (folder / "ledger.json").write_text(json.dumps(ledger))


for name in sys.argv[1:]:
    run(Path(name))
