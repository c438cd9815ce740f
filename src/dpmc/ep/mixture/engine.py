"""Expectation propagation on a mixture of Gaussians: ADF, EP, SEP and DP-SEP.

With theta_0 the prior, theta the state, g the factor of a row, which is what its tilted moments
add to the cavity, and N rows, one step is [vinaroz2022dpsep, sections 2.3, 3 and 6.1]

=======  =========================  ===================================================
method   cavity                     theta becomes
=======  =========================  ===================================================
adf      theta                      theta + s g
ep       theta - theta_n            theta + s (g - theta_n); so does theta_n
sep      theta - theta_f            theta + s (clip(g) - theta_f)
dp_sep   theta - theta_f            theta + s (clip(g) - theta_f) + noise, then repaired
=======  =========================  ===================================================

where theta_f = (theta - theta_0) / N is not stored. The paper has s = 1 / N; s = 1 is SEP as
it was first stated [Li, Hernandez-Lobato and Turner 2015]. Of DP-SEP, theta after a step is
one vector release. Given the theta before it, substitution of one row moves clip(g) only, by
2 C, and so the release by 2 s C; clipped in two parts, h and Lambda, by sqrt(2) times that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.ep.mixture.loops import COUNTERS, RELEASED_COUNTERS, Settings, shared_pass, sites_pass
from dpmc.ep.mixture.model import MixtureFit, MixtureModel, checked_rows
from dpmc.ep.mixture.states import JOINT, NO_CLIP, PER_BLOCK, Scratch, State, Target
from dpmc.privacy.ledger import Ledger
from dpmc.progress import Progress, silent
from dpmc.types import Array, DpmcError

METHODS = ("adf", "ep", "sep", "dp_sep")
CLIPS = {"none": NO_CLIP, "joint": JOINT, "per_block": PER_BLOCK}
ORDERS = ("cyclic", "permutation", "independent")
INVALIDS = ("skip", "no_change")
DIAGNOSTICS = ("none", "exact")
# The least that takes the place of a small eigenvalue of Lambda - Lambda_0.
FLOORS = {"prior": 0.0, "noise": 0.0, "factor_sum": 1e-4}


@dataclass(frozen=True)
class Params:
    """Settings of a run.

    Parameters
    ----------
    method : {"adf", "ep", "sep", "dp_sep"}
    num_passes : int
        T; each has as many steps as there are rows.
    step : float
        s in (0, 1], for EP its damping.
    clip : {"none", "joint", "per_block"}
        Of SEP and DP-SEP: no clip, of (h, Lambda) of all components as one vector, or of h and
        of Lambda, each of all components together.
    clip_bound : float, optional
        C, with a clip.
    noise_multiplier : float, optional
        Of DP-SEP: standard deviation of the noise over the sensitivity of a release.
    order : {"independent", "permutation", "cyclic"}
        The row of each step: drawn anew, of a fresh permutation of each pass, or in turn.
    invalid : {"no_change", "skip"}
        What takes the place of a factor that is not finite: one that leaves theta as it is,
        or no step at all. ``"skip"`` also leaves out a step after which the rows alone would
        not add up to a density, as the public code of the paper does; that it was left out
        tells of a row, hence not for DP-SEP.
    repair : {"prior", "noise", "factor_sum"}
        With ``"no_change"``, for small eigenvalues of Lambda - Lambda_0. ``"prior"``: raise
        those below zero to zero, so that no precision is below that of the prior.
        ``"noise"``, of DP-SEP: raise them to :func:`noise_edges`, which noise alone can reach.
        Where less is known, noise on h would put a mean anywhere, and a component that is
        far from all rows gets none back. ``"factor_sum"``: raise those below zero to 1e-4, as
        the public code.
    clip_prior : bool
        Clip h and Lambda of the prior, each of all components together, as the public code.
        It changes the model and is of no use for privacy.
    debias : bool
        Of SEP and DP-SEP: divide theta - theta_0 by 1 - (1 - s / N)^K, the share of the rows
        that K steps include.
    diagnostics : {"none", "exact"}
        Of DP-SEP: whether counts that tell of the rows are returned. They have no noise and
        are outside of any guarantee. Other methods return all counts.

    Raises
    ------
    DpmcError
        If a value is not allowed, by itself or beside the others.
    """

    method: str
    num_passes: int
    step: float
    clip: str = "none"
    clip_bound: float | None = None
    noise_multiplier: float | None = None
    order: str = "independent"
    invalid: str = "no_change"
    repair: str = "prior"
    clip_prior: bool = False
    debias: bool = False
    diagnostics: str = "none"

    def __post_init__(self) -> None:
        checks.one_of("method", self.method, METHODS)
        checks.at_least("num_passes", self.num_passes, 1)
        checks.positive("step", self.step)
        if self.step > 1:
            raise DpmcError(f"step: {self.step}, allowed a number in (0, 1]")
        checks.one_of("clip", self.clip, tuple(CLIPS))
        checks.positive("clip_bound", self.clip_bound, optional=True)
        checks.positive("noise_multiplier", self.noise_multiplier, optional=True)
        checks.one_of("order", self.order, ORDERS)
        checks.one_of("invalid", self.invalid, INVALIDS)
        checks.one_of("repair", self.repair, tuple(FLOORS))
        checks.one_of("clip_prior", self.clip_prior, (False, True))
        checks.one_of("debias", self.debias, (False, True))
        checks.one_of("diagnostics", self.diagnostics, DIAGNOSTICS)
        self._check_clip()
        self._check_method()

    def _check_clip(self) -> None:
        if (self.clip == "none") != (self.clip_bound is None):
            raise DpmcError(
                f"clip_bound: {self.clip_bound!r} with clip {self.clip!r}, "
                "allowed a number with a clip and none without"
            )
        if self.clip_prior and self.clip == "none":
            raise DpmcError("clip_prior: True, allowed with a clip only")

    def _check_method(self) -> None:
        private, where = self.method == "dp_sep", f"with method {self.method!r}"
        if private != (self.noise_multiplier is not None):
            raise DpmcError(
                f"noise_multiplier: {self.noise_multiplier!r} {where}, "
                "allowed a number with 'dp_sep' and none without"
            )
        if private and self.clip == "none":
            raise DpmcError(f"clip: 'none', allowed 'joint', 'per_block' {where}")
        if private and self.invalid == "skip":
            raise DpmcError(f"invalid: 'skip', allowed 'no_change' {where}")
        if self.repair == "noise" and not private:
            raise DpmcError(f"repair: 'noise', allowed 'prior', 'factor_sum' {where}")
        if self.method in ("adf", "ep") and self.clip != "none":
            raise DpmcError(f"clip: {self.clip!r}, allowed 'none' {where}")
        if self.method in ("adf", "ep") and self.debias:
            raise DpmcError(f"debias: True, allowed False {where}")

    @property
    def sensitivity(self) -> float:
        """How far substitution of one row moves theta in one step, given theta before it."""
        if self.clip_bound is None:
            return math.inf
        return 2 * self.step * self.clip_bound * (math.sqrt(2) if self.clip == "per_block" else 1)


def fit(
    rows: Array,
    model: MixtureModel,
    params: Params,
    rng: np.random.Generator,
    progress: Progress = silent,
    ledger: Ledger | None = None,
) -> MixtureFit:
    """Approximate the posterior of the means of a mixture.

    Parameters
    ----------
    rows : ndarray of shape (N, d)
        Private. N is public.
    model : MixtureModel
    params : Params
    rng : numpy.random.Generator
        Root of the order of the rows and of the noise, which have streams of their own; must
        have been seeded by the operating system where privacy is meant.
    progress : callable
        Told the steps done and to do.
    ledger : Ledger, optional
        Draws the noise; refuses what its plan does not cover.

    Returns
    -------
    MixtureFit
        Its releases are the K steps, each on a row drawn afresh, for an independent order;
        else the passes, since of the releases of one pass a row has a part in one. EP takes
        8 N J (d + d^2) bytes for its factors.

    Raises
    ------
    DpmcError
        If rows do not fit the model or the plan does not cover the releases.
    """
    rows = checked_rows(rows, model)
    order_rng, noise_rng = rng.spawn(2)
    ledger = Ledger() if ledger is None else ledger
    before = ledger.counts
    loop = _Loop(rows, model, params)
    num_steps = params.num_passes * len(rows)
    for done in range(0, num_steps, len(rows)):
        order = draw_order(params.order, len(rows), order_rng)
        completed = loop(order, _noise(params, model, len(rows), ledger, noise_rng))
        if completed < len(rows):
            break
        progress(done + len(rows), num_steps, "")
    return loop.result(ledger.records(before))


class _Loop:
    """A state and the compiled pass that moves it."""

    def __init__(self, rows: Array, model: MixtureModel, params: Params) -> None:
        num, dim, num_rows = model.num_components, model.dim, len(rows)
        self.rows, self.params, self.target = rows, params, Target.of(model)
        if params.clip_prior and params.clip_bound is not None:
            self.target = self.target.clipped(params.clip_bound)
        self.settings = Settings(
            float(params.step),
            0.0 if params.method in ("adf", "ep") else 1 / num_rows,
            CLIPS[params.clip],
            float(params.clip_bound or math.inf),
            params.invalid == "skip",
            FLOORS[params.repair],
        )
        self.state, self.scratch = State.zeros(num, dim), Scratch.of(num, dim)
        self.counters = np.zeros(len(COUNTERS), dtype=np.int64)
        self.num_steps, self.status = 0, "complete"
        self.sites: State | None = None
        if params.method == "ep":
            each = np.zeros((num_rows, num, dim)), np.zeros((num_rows, num, dim, dim))
            self.sites = State(*each)

    def __call__(self, order: npt.NDArray[np.int64], noise: Array) -> int:
        """Make one pass; return the steps completed."""
        first = (self.target, self.settings)
        last = (self.state, self.counters, self.scratch)
        completed: int
        if self.sites is None:
            edges = np.zeros(len(order))
            if self.params.repair == "noise":
                edges = noise_edges(self.params, self.rows.shape, self.num_steps, len(order))
            completed = shared_pass(self.rows, order, noise, edges, *first, *last)
        else:
            completed = sites_pass(self.rows, order, *first, self.sites, *last)
        self.num_steps += completed
        if completed < len(order):
            self.status = f"stopped: step {self.num_steps + 1} leaves the finite numbers"
        return completed

    def result(self, releases: tuple[tuple[str, int], ...]) -> MixtureFit:
        """Return the fit that the state is."""
        included = 1.0
        if self.params.debias and self.num_steps:
            included -= (1.0 - self.settings.step * self.settings.share) ** self.num_steps
        counted = dict(zip(COUNTERS, self.counters.tolist(), strict=True))
        if self.params.method == "dp_sep" and self.params.diagnostics == "none":
            counted = {name: counted[name] for name in RELEASED_COUNTERS}
        return MixtureFit.of(
            self.target.prior_h + self.state.h / included,
            self.target.prior_precision + self.state.precision / included,
            {"steps": self.num_steps, **counted},
            releases,
            self.status,
        )


def draw_order(order: str, num_rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the rows of the steps of one pass, shape (num_rows,)."""
    if order == "cyclic":
        return np.arange(num_rows)
    if order == "permutation":
        return rng.permutation(num_rows)
    return rng.integers(0, num_rows, size=num_rows)


def noise_edges(params: Params, shape: tuple[int, ...], done: int, num: int) -> Array:
    """Return the largest eigenvalue that noise alone makes likely, after each of `num` steps.

    A symmetric matrix with independent noise of standard deviation t on its diagonal and
    t / sqrt(2) outside has its largest eigenvalue near t sqrt(2 d) [Wigner 1958]. Of step k,
    a part (1 - s / N)^(K - k) of the noise is left after step K.

    Parameters
    ----------
    params : Params
        Of DP-SEP.
    shape : (int, int)
        N and d.
    done, num : int
        Steps before the first and number of those that are asked for.

    Returns
    -------
    ndarray of shape (num,)
        For Lambda.
    """
    left = (1 - params.step / shape[0]) ** 2
    gathered = (1 - left ** (done + 1.0 + np.arange(num))) / (1 - left)
    sd = params.sensitivity * (params.noise_multiplier or 0.0)
    return np.asarray(sd * np.sqrt(2 * shape[1] * gathered))


def _noise(
    params: Params, model: MixtureModel, num_rows: int, ledger: Ledger, rng: np.random.Generator
) -> Array:
    """Draw and record the noise of one pass, shape (num_rows, coordinates); (0, 1) if none."""
    if params.noise_multiplier is None:
        return np.zeros((0, 1))
    dim, terms = model.num_coordinates, (params.sensitivity, params.noise_multiplier, rng)
    if params.order == "independent":
        return ledger.noise_block(num_rows, dim, *terms, 1, num_rows)
    # A row has a part in one step of a pass: all steps together are one release to it.
    return ledger.noise_block(1, num_rows * dim, *terms).reshape(num_rows, dim)
