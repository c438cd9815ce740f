"""Colours, names and sizes: the same method looks the same in every figure."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec

import matplotlib as mpl
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import (
    FuncFormatter,
    LogFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
    ScalarFormatter,
)

WIDTH = 5.5  # inches: the text width of a page with one column, in which figures are set
SMALLEST = 7  # points: no text of a figure is smaller
RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "legend.columnspacing": 1.2,
    "figure.titlesize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.1,
    "figure.facecolor": "white",
    "pdf.fonttype": 42,
    "svg.hashsalt": "dpmc",
}
Arguments = ParamSpec("Arguments")
SETTINGS: Any = {**mpl.rcParamsDefault, **RC}  # ours, whatever the user's are
# Digits at ticks of a logarithmic axis, by how many times its beginning its end is at most.
SUBS = {5: (1, 1.5, 2, 3, 4, 5, 7), 30: (1, 2, 5), 100: (1, 3)}
GREY = "#767676"
INK = "#222222"


@dataclass(frozen=True)
class Look:
    """How a method or a variant is drawn.

    Parameters
    ----------
    label : str
        Name in legends.
    colour : str
        Of the palette of Okabe and Ito, distinguished by colour-blind readers.
    marker : str
        Matplotlib marker: colour is never the only difference.
    line : str or tuple
        Matplotlib line style.
    """

    label: str
    colour: str
    marker: str = "o"
    line: Any = "-"


# In the order in which they are drawn. Keys are algorithms: a method, or a method with moves of
# its own.
METHODS = {
    "dp_penalty": Look("DP-penalty", "#0072B2", "o", "-"),
    "dp_penalty_ocu_gwmh": Look("DP-penalty OCU+GWMH", "#56B4E9", "v", (0, (3, 1))),
    "dp_hmc": Look("DP-HMC", "#D55E00", "s", (0, (5, 1.5))),
    "dp_mala": Look("DP-MALA", "#882255", "X", (0, (2.5, 1, 1, 1, 1, 1))),
    "minibatch_penalty": Look("Minibatch penalty", "#009E73", "^", (0, (1.2, 1.2))),
    "minibatch_penalty_ocu_gwmh": Look(
        "Minibatch penalty OCU+GWMH", "#E69F00", "P", (0, (6, 1.2, 1.2, 1.2))
    ),
    "dp_barker": Look("DP-Barker", "#CC79A7", "D", (0, (4, 1.2, 1.2, 1.2))),
    "dp_sgld": Look("DP-SGLD", "#009E73", "^", (0, (1.2, 1.2))),
    "dp_sgnht": Look("DP-SGNHT", "#CC79A7", "D", (0, (4, 1.2, 1.2, 1.2))),
    "rwmh": Look("RWMH", "#56B4E9", "o", "-"),
    "hmc": Look("HMC", "#E69F00", "s", (0, (5, 1.5))),
    "mcmc_normal_x": Look("MCMC-normalX", "#0072B2", "o", "-"),
    "mcmc_fixed_s": Look("MCMC-fixedS", "#D55E00", "s", (0, (5, 1.5))),
    "bayes_fixed_s_fast": Look("Bayes-fixedS-fast", "#E69F00", "^", (0, (1.2, 1.2))),
    "mcmc_bs": Look("MCMC-B&S", "#009E73", "D", (0, (4, 1.2, 1.2, 1.2))),
    "adassp": Look("adaSSP", "#CC79A7", "v", (0, (2.5, 1))),
    "ep": Look("EP", "#0072B2", "o", "-"),
    "adf": Look("ADF", "#4D4D4D", "X", (0, (2.5, 1, 1, 1, 1, 1))),
    "sep": Look("SEP", "#009E73", "^", (0, (1.2, 1.2))),
    "clipped_sep": Look("SEP clipped", "#E69F00", "P", (0, (6, 1.2, 1.2, 1.2))),
    "dp_sep": Look("DP-SEP", "#D55E00", "s", (0, (5, 1.5))),
    "vi": Look("VI", "#CC79A7", "D", (0, (4, 1.2, 1.2, 1.2))),
    "posterior": Look("posterior without privacy", "#767676", "P", (0, (6, 1.2, 1.2, 1.2))),
    "ols": Look("least squares without privacy", "#222222", "X", (0, (1, 2))),
    "mh": Look("Algorithm 9", "#0072B2", "o", "-"),
    "pmmh": Look("Algorithm 10", "#D55E00", "s", (0, (5, 1.5))),
    "mhaar": Look("Algorithm 11", "#0072B2", "o", "-"),
    "exact": Look("Algorithm 12", "#009E73", "^", (0, (1.2, 1.2))),
    "sequential": Look("Algorithm 13", "#CC79A7", "D", (0, (4, 1.2, 1.2, 1.2))),
    "quadrature": Look("quadrature", "#222222", "+", "-"),
    "randomised_response": Look("F₁: randomised response", "#0072B2", "o", "-"),
    "noisy_bits": Look("F₂: mean of noisy bits", "#D55E00", "s", (0, (5, 1.5))),
    "noisy_mean": Look("F₃: noisy mean", "#009E73", "^", (0, (4, 1.2, 1.2, 1.2))),
    "binomial_mean": Look("F₃, exact", "#222222", "D", (0, (1.2, 1.2))),
    "selected": Look("selected", "#0072B2", "o", "-"),
    "second_only": Look("second release alone", "#56B4E9", "v", (0, (3, 1))),
    "selected-as_published": Look("selected by initial data", "#0072B2", "o", "-"),
    "selected-mean_log": Look("selected, finite score", "#009E73", "^", (0, (4, 1.2, 1.2, 1.2))),
    "second_only-as_published": Look("selected, second release alone", "#56B4E9", "v", (0, (3, 1))),
    "second_only-fixed": Look("|x| on the second part alone", "#E69F00", "P", (0, (2.5, 1))),
    "fixed_split": Look("|x| on both parts", "#D55E00", "s", (0, (5, 1.5))),
    "fixed_all": Look("|x| once on all rows", "#222222", "D", (0, (1.2, 1.2))),
}
# Statistics of one record, and order statistics of its absolute value.
STATISTICS = {
    "pow_1": Look("x", "#0072B2", "o", "-"),
    "pow_3": Look("x^3", "#D55E00", "s", (0, (5, 1.5))),
    "abs_0.1": Look("|x|^0.1", "#CC79A7", "D", (0, (4, 1.2, 1.2, 1.2))),
    "abs_0.5": Look("|x|^0.5", "#009E73", "^", (0, (1.2, 1.2))),
    "abs_1": Look("|x|", "#0072B2", "o", "-"),
    "abs_1.5": Look("|x|^1.5", "#56B4E9", "v", (0, (3, 1))),
    "abs_2": Look("|x|^2", "#D55E00", "s", (0, (5, 1.5))),
    "abs_3": Look("|x|^3", "#E69F00", "P", (0, (6, 1.2, 1.2, 1.2))),
    "median": Look("median of |x|", "#0072B2", "o", "-"),
    "max": Look("maximum of |x|", "#D55E00", "s", (0, (5, 1.5))),
    "bit": Look("bit", "#4D4D4D", "X", (0, (2.5, 1, 1, 1, 1, 1))),
}
VARIANTS = {
    "as_published": Look("as published", "#000000", "o", "-"),
    "as_run": Look("as run", "#000000", "P", "-"),
    "valid_count": Look("valid count", "#0072B2", "s", (0, (5, 1.5))),
    "langevin": Look("Langevin noise", "#E69F00", "^", (0, (1.2, 1.2))),
    "corrected": Look("corrected", "#009E73", "D", (0, (4, 1.2, 1.2, 1.2))),
    "pld": Look("PLD accounting", "#CC79A7", "v", (0, (2.5, 1))),
    "authors": Look("as the first public code", "#D55E00", "s", (0, (5, 1.5))),
    "final": Look("as the last public code", "#CC79A7", "v", (0, (2.5, 1))),
    "thesis": Look("as the text", "#E69F00", "^", (0, (1.2, 1.2))),
    "correct": Look("correct", "#0072B2", "o", "-"),
    "dp_valid": Look("valid privacy", "#0072B2", "D", "-"),
    "dp_valid_tuned": Look("valid privacy, tuned", "#56B4E9", "o", "-"),
    "intended": Look("as intended", "#E69F00", "^", (0, (1.2, 1.2))),
    "clipped_true": Look("really clipped", "#009E73", "P", (0, (6, 1.2, 1.2, 1.2))),
    "converged": Look("converged", "#4D4D4D", "v", (0, (2.5, 1))),
    "graves": Look("new run", "#CC79A7", "v", (0, (2.5, 1))),
    "mean_log": Look("finite score", "#009E73", "^", (0, (4, 1.2, 1.2, 1.2))),
    "fixed": Look("|x|", "#E69F00", "P", (0, (2.5, 1))),
    "matched": Look("at matched privacy", "#CC79A7", "v", (0, (2.5, 1))),
    "added": Look("added here", "#4D4D4D", "X", (0, (2.5, 1, 1, 1, 1, 1))),
}
SPARE = ("#F0E442", "#999999", "#332288", "#44AA99", "#AA4499", "#117733")


def look(name: str) -> Look:
    """How a method, variant or statistic is drawn; a new name gets a spare colour."""
    known = {**METHODS, **VARIANTS, **STATISTICS}
    if name in known:
        return known[name]
    spare = SPARE[sum(name.encode()) % len(SPARE)]
    return Look(name.replace("_", " "), spare, "v")


def method_label(method: str, variant: str = "") -> str:
    """Printed name of an algorithm, followed by its variant unless as published."""
    name = look(method).label
    return name if variant in ("", "as_published") else f"{name}, {look(variant).label}"


def ordered(names: Any, known: dict[str, Look]) -> list[str]:
    """Distinct `names`: known ones in their fixed order, then the others sorted."""
    present = set(names)
    return [n for n in known if n in present] + sorted(present - set(known))


def figure(rows: int, columns: int, height: float, **options: Any) -> tuple[Figure, Any]:
    """Figure of the page width and its grid of axes.

    Parameters
    ----------
    rows, columns : int
    height : float
        In inches.
    **options
        For ``Figure.subplots``.

    Returns
    -------
    figure : matplotlib.figure.Figure
    axes : ndarray of shape (rows, columns) of matplotlib.axes.Axes
    """
    made = Figure(figsize=(WIDTH, height), layout="constrained")
    return made, made.subplots(rows, columns, squeeze=False, **options)


def heading(figure: Figure, text: str) -> None:
    """Say above all panels what a figure shows: document, figure and variant.

    The words stand above the legend of the figure, so draw that first.
    """
    for legend in figure.legends[:1]:
        legend.set_title(text, prop=FontProperties(size=8, weight="bold"))
        return
    figure.suptitle(text, fontweight="bold")


def plain_number(value: float, _: int | None = None) -> str:
    """Number at a tick, without superscripts, which would be too small to read."""
    if value == 0 or 1e-4 < abs(value) < 1e5:
        return f"{value:g}"
    mantissa, _e, exponent = f"{value:.0e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def epsilon_text(value: float) -> str:
    """Epsilon with two significant digits; in words where there is none."""
    if math.isinf(value):
        return "∞"
    if value >= 9.95:
        return f"{value:.0f}"
    return f"{value:.2g}"


def note(text: str) -> Figure:
    """Figure that says only `text`: what the run lacks for the figure asked for."""
    made, axes = figure(1, 1, 1.0)
    axes[0, 0].set_axis_off()
    axes[0, 0].annotate(text, (0.5, 0.5), xycoords="axes fraction", ha="center", va="center")
    return made


def styled(draw: Callable[Arguments, Figure]) -> Callable[Arguments, Figure]:
    """Make `draw` work in the shared style, whatever the caller's settings are."""

    @functools.wraps(draw)
    def in_style(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Figure:
        with mpl.rc_context(SETTINGS):
            made = draw(*args, **kwargs)
            for axis in made.axes:
                for side in (axis.xaxis, axis.yaxis):
                    if side.get_scale() in ("log", "symlog"):
                        _plain_ticks(side)
            return made

    return in_style


def _plain_ticks(side: Axis) -> None:
    """Write numbers of a logarithmic axis at full size, and between decades where few fit."""
    if isinstance(side.get_major_formatter(), (LogFormatter, ScalarFormatter)):
        side.set_major_formatter(FuncFormatter(plain_number))
    if side.get_scale() == "symlog" or not isinstance(side.get_minor_formatter(), LogFormatter):
        side.set_minor_formatter(NullFormatter())
        return
    low, high = sorted(side.get_view_interval())
    side.set_minor_formatter(NullFormatter())
    if isinstance(side.get_major_locator(), LogLocator) and 0 < low < high < 100 * low:
        for reach, subs in SUBS.items():
            if high < reach * low:
                side.set_major_locator(LogLocator(subs=subs, numticks=12))
                break
        if high < 1.8 * low:
            side.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        side.set_minor_locator(NullLocator())
