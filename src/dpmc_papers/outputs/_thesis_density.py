"""Contours of exact posteriors with starts and paths: Figures 4.1 and 5.1 of Räisä 2021."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from dpmc.rng import stream
from dpmc.types import Array, Dataset, DpmcError, Model
from dpmc_papers.config.problems import make_model, start_points
from dpmc_papers.pipeline.results import Context
from dpmc_papers.plots import drawn, style

MASSES = (0.95, 0.5)
SHADES = ("#dedede", "#b4b4b4")
CELLS = 301  # grid points along each axis
DRAWS = 10_000  # exact draws that place the borders of the regions
MARGIN = 0.12
PROPOSAL = 16  # of Figure 4.1, counted from one
STARTS = 20  # chains of Figure 5.1, section 5.4


@dataclass(frozen=True)
class Surface:
    """A posterior on a grid that covers its regions of highest density.

    Parameters
    ----------
    grids : pair of ndarray
        Coordinates along both axes, shapes (g,) and (h,).
    log_density : ndarray of shape (h, g)
        Up to a constant.
    heights : list of float
        Log-densities at the borders of the highest-density regions ``MASSES``, ascending.
    """

    grids: tuple[Array, Array]
    log_density: Array
    heights: list[float]


def log_posterior(model: Model, dataset: Dataset) -> Callable[[Array], float]:
    """Exact log-posterior, up to a constant, at the cost of one row per call.

    The log-likelihood of a row is affine in its features, so the sum over all rows is
    n times its value at their mean.
    """
    if not model.affine:
        raise DpmcError(f"`affine` of model {model.name!r} must be True, got False")
    features = model.features or np.transpose
    mean = tuple(map(float, np.mean(features(dataset.x), axis=1)))
    weight = model.tempering * dataset.num_rows
    # A few thousand calls: the plain functions are done before a compiler is.
    of_row: Any = getattr(model.log_likelihood, "py_func", model.log_likelihood)

    def evaluate(theta: Array) -> float:
        coefficients = theta if model.coefficients is None else model.coefficients(theta)
        likelihood = of_row(tuple(map(float, coefficients)), mean)
        return weight * float(likelihood) + float(model.log_prior(theta))

    return evaluate


def surface(model: Model, dataset: Dataset) -> Surface:
    """Two-dimensional posterior on a grid, exact but for the borders of its regions.

    Their error, that of a quantile of ``DRAWS`` exact draws, is below 1 % of the mass.
    """
    if model.dim != 2:
        raise DpmcError(f"`dim` of model {model.name!r} must be 2, got {model.dim}")
    if model.reference is None:
        raise DpmcError(f"`reference` of model {model.name!r} is missing: it has no exact sampler")
    evaluate = log_posterior(model, dataset)
    draws = model.reference(dataset, DRAWS, stream(0, "regions", dataset.name))
    at_draws = np.array([evaluate(theta) for theta in draws])
    # A region of highest density is where the density exceeds a quantile of its own values.
    heights = [float(height) for height in np.quantile(at_draws, 1 - np.array(MASSES))]
    inside = draws[at_draws > heights[0]]
    low, high = inside.min(axis=0), inside.max(axis=0)
    margin = MARGIN * (high - low)
    first, second = (
        np.linspace(a, b, CELLS) for a, b in zip(low - margin, high + margin, strict=True)
    )
    values = np.array([[evaluate(np.array([x, y])) for x in first] for y in second])
    return Surface((first, second), values, heights)


@style.styled
def figure5_1(context: Context) -> Figure:
    """Draw the exact posterior of each two-dimensional model, and where its chains start.

    Reads data sets of the problems to draw. One panel per problem in the order of the
    configuration: highest-density regions of the exact posterior, and the start points [Räisä 2021,
    Figure 5.1].
    """
    problems = [name for name in context.config["problems"] if name in context.datasets]
    if not problems:
        raise DpmcError("`data` of figure5_1 must name at least one problem, got none")
    rows = -(-(len(problems) + 1) // 3)
    figure, axes = style.figure(rows, 3, 0.2 + 2.2 * rows)
    for axis, name in zip(axes.flat, problems, strict=False):
        problem, dataset = context.problem_setup(name), context.dataset(name)
        _regions(axis, surface(make_model(problem), dataset))
        seed, nothing = context.config["seed"], np.empty((1, 0, 2))
        reference = context.references.get(name, nothing)
        starts = start_points(problem, dataset.truth, reference, seed, range(STARTS), 1)
        axis.plot(
            *starts[:, 0].T, "o", ms=2.6, mew=0.4, mec="white", color="#D55E00",
            label="start points",
        )  # fmt: skip
        axis.use_sticky_edges = False  # a margin around start points off the regions
        axis.set(title=context.problem_label(name), xlabel="θ₁", ylabel="θ₂")
        axis.locator_params(nbins=3)
        if problem.model is not None and problem.model.name == "circle":
            axis.set_aspect("equal", adjustable="datalim")
    handles = [*_region_entries(), _dot("#D55E00", "start points")]
    for axis in axes.flat[len(problems) :]:
        axis.set_axis_off()
    axes.flat[len(problems)].legend(handles=handles, loc="center", fontsize=7)
    style.heading(figure, "Räisä 2021, Figure 5.1: exact posteriors and start points")
    return figure


@dataclass(frozen=True)
class Proposal:
    """Every point of one proposal.

    Parameters
    ----------
    points : ndarray of shape (L + 1, 2)
    accepted : bool or None
        None where it was not recorded.
    """

    points: Array
    accepted: bool | None

    @property
    def arc(self) -> float:
        """How far round the origin its end lies from its start, in degrees."""
        angles = np.unwrap(np.arctan2(self.points[:, 1], self.points[:, 0]))
        return float(np.degrees(abs(angles[-1] - angles[0])))


@style.styled
def figure4_1(context: Context) -> Figure:
    """Draw one proposal of DP-HMC on the circle, and how far all proposals go.

    Reads chains of the experiment ``trajectory`` that store every leapfrog point, and the data set
    of their problem. The path on the whole posterior; close to it, the path after each quarter of
    its steps; and the angles between start and end of all proposals of the chain [Räisä 2021,
    Figure 4.1].
    """
    problem, proposals = _trajectory(context)
    density = surface(make_model(context.problem_setup(problem)), context.dataset(problem))
    number = min(PROPOSAL, len(proposals))
    chosen = proposals[number - 1]
    path = chosen.points
    steps = len(path) - 1
    figure, axes = style.figure(2, 3, 4.3)
    whole, far = axes[0, 0], axes[1, 2]
    _path(whole, density, path)
    whole.set(title="the whole posterior", aspect="equal", xlabel="θ₁", ylabel="θ₂")
    low, high = path.min(axis=0), path.max(axis=0)
    middle, half = (low + high) / 2, 0.65 * float(np.max(high - low))
    frames = [max(1, round(steps * share / 4)) for share in (1, 2, 3, 4)]
    for axis, last in zip((*axes[0, 1:], *axes[1, :2]), frames, strict=True):
        _path(axis, density, path[: last + 1])
        axis.set(
            title=f"close by, step {last} of {steps}", xlabel="θ₁", ylabel="θ₂",
            xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half),
        )  # fmt: skip
        axis.set_box_aspect(1)
        axis.locator_params(nbins=4)
    _arcs(far, proposals, number)
    marks: dict[str, Any] = {"ls": "", "mec": style.INK, "mew": 0.5}
    told = "" if chosen.accepted is None else ", accepted" if chosen.accepted else ", rejected"
    handles = [
        *_region_entries(),
        Line2D([], [], color="#E69F00", marker="o", ms=5, label="start", **marks),
        Line2D([], [], color="#0072B2", marker=".", label=f"path of proposal {number}{told}"),
        Line2D([], [], color="#0072B2", marker="D", ls="", ms=4, label="current point"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=5)
    style.heading(figure, "Räisä 2021, Figure 4.1: one proposal of DP-HMC, and all of them")
    return figure


def _path(axis: Axes, density: Surface, path: Array) -> None:
    _regions(axis, density)
    axis.plot(*path.T, color="#0072B2", lw=0.9, marker=".", ms=2.2, label="path")
    axis.plot(*path[0], "o", color="#E69F00", ms=5, mec=style.INK, mew=0.5, label="start")
    axis.plot(
        *path[-1], "D", color="#0072B2", ms=4, mec="white", mew=0.5, zorder=4,
        label="current point",
    )  # fmt: skip


def _arcs(axis: Axes, proposals: list[Proposal], number: int) -> None:
    """Draw how many proposals end how far round the circle from their start."""
    arcs = np.array([proposal.arc for proposal in proposals])
    edges = np.linspace(0, max(float(arcs.max()), 1.0), 13)
    unknown = [proposal.accepted is None for proposal in proposals]
    taken = np.array([bool(proposal.accepted) for proposal in proposals])
    groups = [(~taken, "rejected", "#d0d0d0"), (taken, "accepted", "#0072B2")]
    if any(unknown):
        groups = [(np.ones(len(arcs), dtype=bool), "proposals", "#0072B2")]
    for group, name, _ in groups:
        drawn.record(axis, f"{name}: degrees", arcs[group], np.nan)
    axis.hist(
        [arcs[group] for group, _, _ in groups], bins=list(edges), stacked=True,
        color=[colour for *_, colour in groups], label=[name for _, name, _ in groups],
    )  # fmt: skip
    axis.axvline(arcs[number - 1], color="#E69F00", lw=1.2)
    axis.annotate(
        f"proposal {number}", (arcs[number - 1], 0.98), (3, 0), xycoords=("data", "axes fraction"),
        textcoords="offset points", va="top", fontsize=7,
    )  # fmt: skip
    axis.set(title=f"all {len(arcs)} proposals", xlabel="degrees round the circle")
    axis.set_ylabel("proposals")
    axis.set_ylim(0, 1.45 * axis.get_ylim()[1])
    axis.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axis.legend(loc="upper right", bbox_to_anchor=(1, 0.9), handlelength=1)


def _trajectory(context: Context) -> tuple[str, list[Proposal]]:
    """Problem and all proposals of its chain."""
    experiments = context.config["experiments"]
    for (problem, label), runs in context.fits.items():
        settings = experiments.get("trajectory", {}).get("methods", {}).get(problem, {}).get(label)
        fit = runs[0][1]
        if settings is None or fit.draws is None:
            continue
        size = settings["params"]["num_leapfrog_steps"] + 1
        taken = fit.info.get("accepted")
        return problem, [
            Proposal(
                fit.draws[0, first : first + size],
                None if taken is None else bool(taken[0, first]),
            )
            for first in range(0, fit.draws.shape[1] - size + 1, size)
        ]
    raise DpmcError("chains of experiment 'trajectory' are missing for figure4_1")


def _regions(axis: Axes, density: Surface) -> None:
    values, heights = density.log_density, density.heights
    if heights[0] < heights[1]:
        regions = axis.contourf(*density.grids, values, [*heights, np.inf], colors=SHADES)
        borders = axis.contour(
            *density.grids, values, heights, colors=style.GREY, linewidths=0.4, linestyles="-"
        )
        # As an image: in twelve panels their points would be megabytes.
        for artist in (regions, borders):
            artist.set_rasterized(True)


def _region_entries() -> list[Any]:
    return [
        Patch(facecolor=shade, edgecolor=style.GREY, lw=0.4, label=f"{mass:.0%} region")
        for mass, shade in zip(MASSES, SHADES, strict=True)
    ]


def _dot(colour: str, label: str) -> Line2D:
    return Line2D([], [], color=colour, marker="o", ls="", ms=4, mec="white", mew=0.4, label=label)
