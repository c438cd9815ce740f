"""Auditing code that is not ours: linear regression of diffprivlib, and a release of dpmc."""

# %% [markdown]
# # Is it as private as it says?
#
# diffprivlib is no dependency of this library. Into a folder of its own, next to the environment:
#
#     uv pip install --target other_code --no-deps diffprivlib==0.6.6 scikit-learn==1.6.1 \
#         joblib loky cloudpickle threadpoolctl
#     PYTHONPATH=other_code uv run python docs/examples/audit_other_code.py
#
# Its regression releases noisy sums of y^2, x y and x^2. The noise on a sum of x^2 should be
# relative to the largest square within `bounds_X`. Reading the source, the code takes the lower
# bound twice, and never the upper one: with features between 0 and 1 the sensitivity comes out as
# zero, and the sum is released as it is. With an intercept, bounds are first shifted by a noisy
# mean, and the lower one is then some other number.

# %%
import warnings

import numpy as np

import dpmc
from dpmc.linreg import release
from dpmc.linreg.sufficient_statistics import node_statistics

EPSILON, CONFIDENCE = 1.0, 0.99
# Neighbours under substitution of one row, features and targets in [0, 1].
DATA = np.array([[0.1, 0.1], [1.0, 0.1]])
NEIGHBOUR = np.array([[0.1, 0.1], [0.0, 0.1]])


# %%
def other_code(data, rng, lower=0.0, intercept=False):
    """Return the published coefficients of diffprivlib's regression."""
    from diffprivlib.models import LinearRegression

    model = LinearRegression(
        epsilon=EPSILON,
        bounds_X=(lower, 1.0),
        bounds_y=(0.0, 1.0),
        fit_intercept=intercept,
        random_state=int(rng.integers(2**31)),
    )
    fitted = model.fit(data[:, :1], data[:, 1])
    return [float(np.ravel(fitted.coef_)[0]), float(np.ravel(fitted.intercept_)[0])]


def released(data, rng):
    """Return what `dpmc.linreg` releases of the same rows, at delta = 1e-6."""
    sums = node_statistics((data[:, :1], data[:, 1]), 1, len(data), (1.0, 1.0))
    return release.release(sums, 1.0, 1.0, EPSILON, 1e-6, rng)


def our_code(data, rng):
    """Return the noisy sums themselves."""
    noisy = released(data, rng)
    return [float(noisy.s[0, 0, 0]), float(noisy.z[0, 0])]


# %% [markdown]
# Of diffprivlib the audit sees the published coefficients alone, not the noisy sums that they are
# made from. Our release has Gaussian noise, so the trade-off curve tells more; the pair is not the
# worst one for it.


# %%
def main(num_runs=4000, seed=1):
    """Audit three settings of diffprivlib, if it is there, and one release of ours."""
    settings = {"num_runs": num_runs, "confidence": CONFIDENCE, "claim": EPSILON, "seed": seed}
    mu = float(released(DATA, np.random.default_rng(seed)).extra["shift_replace"])
    ours = dpmc.audit(our_code, DATA, NEIGHBOUR, mu=mu, delta=1e-6, **settings)
    results = {"dpmc.linreg": ours}
    try:
        import diffprivlib
    except ImportError as error:
        print(f"skipped: diffprivlib cannot be imported ({error}); see the head of this file")
    else:
        name = f"diffprivlib {diffprivlib.__version__}"
        cases = {
            "features in [0, 1]": {},
            "features in [-1, 1]": {"lower": -1.0},
            "features in [0, 1], intercept": {"intercept": True},
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for case, given in cases.items():

                def mechanism(data, rng, given=given):
                    return other_code(data, rng, **given)

                results[f"{name}, {case}"] = dpmc.audit(mechanism, DATA, NEIGHBOUR, **settings)
    for name, result in results.items():
        print(f"{name}: {result}\n    {result.event}")
    return results


if __name__ == "__main__":
    main()
