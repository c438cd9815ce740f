"""Heavy tails: a few responses are far out, and Student-t noise beside normal noise.

uv run python docs/examples/heavy_tails.py
"""

import numpy as np

import dpmc


def made_up(number, rng):
    """One feature, and responses of which one in twenty is off by tens of deviations."""
    x = rng.uniform(-1, 1, size=(number, 1))
    noise = rng.normal(size=number) * np.where(rng.random(number) < 0.05, 30, 1)
    return x, 1 + 2 * x[:, 0] + noise


def main(path="docs/images/heavy_tails.png", number=20_000):
    """Fit both likelihoods to the same rows, compare widths, and draw the better one."""
    x, y = made_up(number, np.random.default_rng(3))
    fits = {
        likelihood: dpmc.regression(
            x, y, likelihood=likelihood, names=["level", "slope"], epsilon=0.5, delta=1e-6
        )
        for likelihood in ("linear", "student_t")
    }
    for likelihood, fit in fits.items():
        sd = fit.draws[..., 1].std()
        print(f"{likelihood}: slope {fit.draws[..., 1].mean():.2f}, sd {sd:.3f}, {fit.guarantee}")
    fits["student_t"].plot().savefig(path, dpi=110)
    return fits


if __name__ == "__main__":
    main()
