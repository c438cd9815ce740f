"""The picture of docs/methods.md: errors and widths of methods that choose their own parameters.

``uv run python docs/examples/methods.py`` reads the table of the page and writes
``docs/images/methods.png``.
"""

import re
import sys
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

DOCS = Path(__file__).parents[1]
ROW = re.compile(r"^\| (\d+ coefficients) \| `(\w+)` \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)
EPSILONS = 1, 4, 16
MEASURES = {"error": "error of a mean, in sd", "width": "width over that of the posterior"}


def measured(text):
    """Cells of the table, one row each: posterior, method, epsilon, error and width."""
    cells = [
        (model, method, epsilon, *map(float, cell.split(", ")))
        for model, method, *row in ROW.findall(text)
        for epsilon, cell in zip(EPSILONS, row, strict=True)
        if cell.strip()
    ]
    return pd.DataFrame(cells, columns=["model", "method", "epsilon", *MEASURES])


def drawn(cells):
    """Figure with a column for each posterior: errors above, widths below."""
    with mpl.rc_context({"font.size": 8}):
        figure = Figure(figsize=(6.5, 4.4), layout="constrained")
        models = list(cells.model.unique())
        axes = figure.subplots(2, len(models), sharex=True, sharey="row")
        for column, model in enumerate(models):
            for ax, (measure, label) in zip(axes[:, column], MEASURES.items(), strict=True):
                sns.lineplot(
                    cells[cells.model == model], x="epsilon", y=measure, hue="method",
                    style="method", markers=True, dashes=False, palette="colorblind", lw=1, ax=ax,
                )  # fmt: skip
                ax.set(xscale="log", yscale="log", ylabel="" if column else label, xlabel="epsilon")
                ax.set_xticks(EPSILONS, EPSILONS)
                ax.minorticks_off()
                ax.get_legend().remove()
                sns.despine(ax=ax)
            axes[0, column].set(title=model)
            axes[0, column].set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
            axes[1, column].set_yticks([0.05, 0.2, 0.5, 1], ["0.05", "0.2", "0.5", "1"])
            axes[1, column].axhline(1, color="0.6", lw=0.8, zorder=0)
        handles = axes[0, 0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=4)
        return figure


def main(path):
    """Write the picture."""
    text = (DOCS / "methods.md").read_text(encoding="utf-8")
    drawn(measured(text)).savefig(path, dpi=120)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else DOCS / "images" / "methods.png")
