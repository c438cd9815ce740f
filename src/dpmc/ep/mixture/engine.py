"""Engine of expectation propagation on a mixture of Gaussians: ADF, EP, SEP and DP-SEP.

The update of each method is in :mod:`dpmc.ep.settings`; the paper has s = 1 / N, and s = 1 is
SEP as it was first stated [Li, Hernandez-Lobato and Turner 2015]. In DP-SEP, theta after a step
is one vector release, repaired after its noise. Given the theta before it, substitution of one
row moves clip(g) only, by 2 C, and so the release by 2 s C; clipped in two blocks, h and Lambda,
by sqrt(2) times that.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpmc.ep.mixture.loops import (
    COUNTERS,
    RELEASED_COUNTERS,
    MixtureLoopSettings,
    grid_pass,
    shared_pass,
    sites_pass,
)
from dpmc.ep.mixture.model import MixtureFit, MixtureModel, checked_rows
from dpmc.ep.mixture.settings import FLOORS, MixtureSettings
from dpmc.ep.mixture.states import MixtureScratch, MixtureState, MixtureTarget
from dpmc.ep.settings import CLIPS, pass_orders
from dpmc.privacy.ledger import Ledger
from dpmc.progress import Progress, silent
from dpmc.types import Array, InvalidRows


def fit(
    rows: Array,
    model: MixtureModel,
    settings: MixtureSettings,
    rng: np.random.Generator,
    progress: Progress = silent,
    ledger: Ledger | None = None,
    invalid_rows: InvalidRows = "refuse",
) -> MixtureFit:
    """Approximate the posterior of the means of a mixture.

    Parameters
    ----------
    rows : ndarray of shape (N, d)
        Private. N is public.
    rng : numpy.random.Generator
        Root of the order of the rows and of the noise, which have streams of their own; must
        have been seeded by the operating system where privacy is meant.
    ledger : Ledger, optional
        Draws the noise; refuses what its plan does not cover.

    Returns
    -------
    MixtureFit
        Its releases are the K steps, each on a row drawn afresh, for an independent order;
        else the passes, since of the releases of one pass a row has a part in one. EP takes
        8 N J (d + d^2) bytes for its factors.
    """
    rows = checked_rows(rows, model, invalid_rows)
    order_rng, noise_rng = rng.spawn(2)
    ledger = Ledger() if ledger is None else ledger
    before = ledger.counts
    loop = _Loop(rows, model, settings)
    num_steps = settings.num_passes * len(rows)
    for done in range(0, num_steps, len(rows)):
        (order,) = pass_orders(settings.order, len(rows), order_rng, block=len(rows))
        completed = loop(order, *_noise(settings, model, len(rows), ledger, noise_rng))
        if completed < len(rows):
            break
        progress(done + len(rows), num_steps, "")
    return loop.result(ledger.records(before))


class _Loop:
    """A state and the compiled pass that moves it."""

    def __init__(self, rows: Array, model: MixtureModel, settings: MixtureSettings) -> None:
        num, dim, num_rows = model.num_components, model.dim, len(rows)
        self.rows, self.settings, self.target = rows, settings, MixtureTarget.of(model)
        if settings.clip_prior and settings.clip_bound is not None:
            self.target = self.target.clipped(settings.clip_bound)
        clip = settings.row_clip
        self.loop_settings = MixtureLoopSettings(
            clip.scale,
            1 / num_rows if settings.sites == "shared" else 0.0,
            CLIPS.index(settings.clip),
            clip.bound,
            settings.invalid == "skip",
            FLOORS[settings.repair],
        )
        self.state, self.scratch = MixtureState.zeros(num, dim), MixtureScratch.of(num, dim)
        self.counters = np.zeros(len(COUNTERS), dtype=np.int64)
        self.num_steps, self.status = 0, "complete"
        self.sites: MixtureState | None = None
        if settings.sites == "per_row":
            each = np.zeros((num_rows, num, dim)), np.zeros((num_rows, num, dim, dim))
            self.sites = MixtureState(*each)

    def __call__(self, order: npt.NDArray[np.int64], noise: Array, grid: float) -> int:
        """Make one pass; return the steps completed."""
        first = (self.target, self.loop_settings)
        last = (self.state, self.counters, self.scratch)
        completed: int
        if self.sites is None:
            edges = np.zeros(len(order))
            if self.settings.repair == "noise":
                edges = noise_edges(self.settings, self.rows.shape, self.num_steps, len(order))
            if grid:
                completed = grid_pass(self.rows, order, noise, grid, edges, *first, *last)
            else:
                completed = shared_pass(self.rows, order, noise, edges, *first, *last)
        else:
            completed = sites_pass(self.rows, order, *first, self.sites, *last)
        self.num_steps += completed
        if completed < len(order):
            self.status = f"stopped: step {self.num_steps + 1} leaves the finite numbers"
        return completed

    def result(self, releases: tuple[tuple[str, int], ...]) -> MixtureFit:
        """Fit that the state is."""
        included = 1.0
        if self.settings.debias and self.num_steps:
            remaining = 1.0 - self.loop_settings.step * self.loop_settings.share
            included -= remaining**self.num_steps
        counted = dict(zip(COUNTERS, self.counters.tolist(), strict=True))
        if self.settings.private and self.settings.diagnostics == "none":
            counted = {name: counted[name] for name in RELEASED_COUNTERS}
        return MixtureFit.of(
            self.target.prior_h + self.state.h / included,
            self.target.prior_precision + self.state.precision / included,
            {"steps": self.num_steps, **counted},
            releases,
            self.status,
        )


def noise_edges(settings: MixtureSettings, shape: tuple[int, ...], done: int, num: int) -> Array:
    """Largest eigenvalue that noise alone makes likely, after each of `num` steps.

    A symmetric matrix with independent noise of standard deviation t on its diagonal and
    t / sqrt(2) outside has its largest eigenvalue near t sqrt(2 d) [Wigner 1958]. Of step k,
    a part (1 - s / N)^(K - k) of the noise is left after step K.

    Parameters
    ----------
    settings : MixtureSettings
        Settings with noise.
    shape : (int, int)
        N and d.
    done, num : int
        Number of steps made before the first of those asked for, and number of these.

    Returns
    -------
    ndarray of shape (num,)
        For Lambda.
    """
    # Variance left of the noise of one step after the next one.
    left = (1 - settings.step / shape[0]) ** 2
    # Variance gathered by all steps so far, a geometric series, in units of one step's noise.
    gathered = (1 - left ** (done + 1.0 + np.arange(num))) / (1 - left)
    sd = settings.sensitivity * settings.noise_multiplier
    return np.asarray(sd * np.sqrt(2 * shape[1] * gathered))


def _noise(
    settings: MixtureSettings,
    model: MixtureModel,
    num_rows: int,
    ledger: Ledger,
    rng: np.random.Generator,
) -> tuple[Array, float]:
    """Draw and record the noise of one pass, shape (num_rows, coordinates); (0, 1) if none.

    Returns the grid that it lies on, too: 0 for none.
    """
    if not settings.private:
        return np.zeros((0, 1)), 0.0
    dim, terms = model.num_coordinates, (settings.row_clip, settings.noise_multiplier)
    grid = ledger.grid(*terms)
    if settings.order == "independent":
        return ledger.noise_block(num_rows, dim, *terms, rng, 1, num_rows, grid), grid
    # A row has a part in one step of a pass: all steps together are one release to it.
    noise = ledger.noise_block(1, num_rows * dim, *terms, rng, grid=grid)
    return noise.reshape(num_rows, dim), grid
