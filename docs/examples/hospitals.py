"""A federation: hospitals that keep their rows, and send sums with noise of their own.

uv run python docs/examples/hospitals.py
"""

import numpy as np

import dpmc
from dpmc.models import logistic


def made_up(number, rng):
    """Rows of a hospital: two features in [-1, 1], and whether a patient came back."""
    x = rng.uniform(-1, 1, size=(number, 2))
    back = rng.random(number) < 1 / (1 + np.exp(1 - 1.5 * x[:, 0] + 0.5 * x[:, 1]))
    return np.column_stack([x, back])


def main(path="docs/images/hospitals.png", number=30_000):
    """Fit one model to the rows of three hospitals, by what each of them may show."""
    rng = np.random.default_rng(6)
    rows = [made_up(size, rng) for size in (number // 2, number // 3, number // 6)]
    model = logistic.build(logistic.Params(2))
    fits = {}
    # With "secure" sharing nobody sees a message of one hospital, and three share the noise.
    for sharing in ("local", "secure"):
        nodes = dpmc.federation(rows, sharing=sharing)
        fits[sharing] = dpmc.fit(
            model, nodes, epsilon=1, delta=1e-6, names=["constant", "age", "dose"]
        )
        print(sharing, fits[sharing].summary(), sep="\n", end="\n\n")
    fits["secure"].plot().savefig(path, dpi=110)
    return fits


if __name__ == "__main__":
    main()
