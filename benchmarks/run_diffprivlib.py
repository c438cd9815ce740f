# /// script
# requires-python = ">=3.11,<3.13"
# dependencies = ["diffprivlib==0.6.6", "scikit-learn==1.5.2", "numpy==2.3.5", "scipy==1.17.1"]
# ///
"""Fits of diffprivlib in an environment of its own, which current scikit-learn breaks.

``uv run --script benchmarks/run_diffprivlib.py <rows.npz> <coefficients.npz>``: rows have features
in [-1, 1] and, for the linear regression, responses in [-1, 1]. Pure epsilon under substitution of
one row, as its papers have it: objective perturbation and the functional mechanism.
"""

import sys
import time
import warnings

import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression


def main() -> None:
    rows = np.load(sys.argv[1])
    x, y, logistic = rows["x"], rows["y"], bool(rows["logistic"])
    found, seconds = [], []
    for epsilon in rows["epsilons"]:
        for seed in rows["seeds"]:
            if logistic:
                model = LogisticRegression(
                    epsilon=epsilon, data_norm=np.sqrt(x.shape[1]), random_state=int(seed)
                )
            else:
                bounds = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}
                model = LinearRegression(epsilon=epsilon, random_state=int(seed), **bounds)
            started = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(x, y)
            seconds.append(time.process_time() - started)
            found.append(np.append(np.ravel(model.intercept_), np.ravel(model.coef_)))
    shape = (len(rows["epsilons"]), len(rows["seeds"]))
    np.savez(
        sys.argv[2],
        coefficients=np.reshape(found, (*shape, -1)),
        seconds=np.reshape(seconds, shape),
    )


if __name__ == "__main__":
    main()
