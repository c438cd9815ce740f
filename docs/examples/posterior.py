"""The picture of the README: a private posterior beside the exact one, for rows and budgets.

``uv run python docs/examples/posterior.py`` writes ``docs/images/posterior.png``, and prints what
budgets buy: root mean square errors of the posterior means in standard deviations of the exact
posterior, and widths of its widest interval over the exact one, at the median of ten fits.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import seaborn as sns
from matplotlib.figure import Figure
from scipy.stats import norm
from statsmodels.api import Logit, add_constant

import dpmc

ROWS, BUDGETS = (1_000, 10_000, 100_000), (0.5, 1, 4)
FITS = 10


def simulated(num_rows):
    """Two features in [-1, 1] and whether something happens, in a fifth of the rows."""
    rng = np.random.default_rng(num_rows)
    x = rng.uniform(-1, 1, size=(num_rows, 2))
    return x, rng.random(num_rows) < 1 / (1 + np.exp(1.7 - 1.5 * x[:, 0] + x[:, 1]))


def posterior(x, y, epsilon, seed):
    """Draws of a private fit, shape (k, 3)."""
    settings = {"epsilon": epsilon, "delta": 1e-6, "seed": seed, "progress": False}
    fit = dpmc.regression(x, y, likelihood="logistic", **settings)
    return fit.kept().reshape(-1, 3)


def rms(errors):
    """Root mean square."""
    return np.sqrt(np.mean(np.square(errors)))


def draw(ax, num_rows):
    """Panel of a number of rows."""
    x, y = simulated(num_rows)
    exact = Logit(y, add_constant(x)).fit(disp=False)
    for color, epsilon in zip(sns.color_palette("colorblind"), BUDGETS, strict=False):
        draws = [posterior(x, y, epsilon, seed) for seed in range(FITS)]
        errors = [rms((one.mean(axis=0) - exact.params) / exact.bse) for one in draws]
        widths = [(one.std(axis=0) / exact.bse).max() for one in draws]
        told = f"error {np.median(errors):.2g}, width {np.median(widths):.3g}"
        print(f"{num_rows:,} rows, epsilon {epsilon}: {told}")
        sns.kdeplot(x=draws[0][:, 1], ax=ax, color=color, lw=1.3, label=f"ε = {epsilon}")
    limits = np.array(ax.get_xlim())
    grid = np.linspace(*limits, 400)
    density = norm.pdf(grid, exact.params[1], exact.bse[1])
    ax.fill_between(grid, density, color="0.8", lw=0, label="without privacy", zorder=0)
    ax.set(title=f"{num_rows:,} rows", xlabel="coefficient", ylabel="", yticks=[])
    ax.set(xlim=limits, ylim=(0, None))
    sns.despine(ax=ax, left=True)


def main(path):
    """Write the picture."""
    with mpl.rc_context({"font.size": 8}):
        figure = Figure(figsize=(6.5, 2.1), layout="constrained")
        axes = figure.subplots(1, len(ROWS))
        for ax, num_rows in zip(axes, ROWS, strict=True):
            draw(ax, num_rows)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        figure.savefig(path, dpi=150)


if __name__ == "__main__":
    home = Path(__file__).parents[1] / "images" / "posterior.png"
    main(sys.argv[1] if len(sys.argv) > 1 else home)
