"""Engine of DP-SEP on a mixture as the public code of the paper runs it, normal by normal.

For the reproduction of [vinaroz2022dpsep, table 1 and figure 1] only. It differs from
:mod:`dpmc.ep.mixture.engine`: rows in turn, which amplifies nothing; h and Lambda clipped
and noised separately, each with a share of the budget; a step that would not leave a density
is skipped, noise and all, which depends on the row; normals of NumPy's legacy generator from a
seed that is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmc import checks
from dpmc.ep.mixture.loops import COUNTERS, MixtureLoopSettings, published_pass
from dpmc.ep.mixture.model import MixtureFit, MixtureModel, checked_rows
from dpmc.ep.mixture.settings import FLOORS
from dpmc.ep.mixture.states import PER_BLOCK, MixtureScratch, MixtureState, MixtureTarget
from dpmc.privacy import events
from dpmc.privacy.published_noise import legacy_normals
from dpmc.progress import Progress, silent
from dpmc.types import Array, DpmcError

# Effects that no guarantee of these runs covers.
OUTSIDE = ("steps skipped depending on a row", "a known seed")


@dataclass(frozen=True)
class PublishedSettings:
    """Settings of a run of the public code.

    Parameters
    ----------
    num_passes : int
        T.
    step : float
        gamma / N, in (0, 1].
    clip_bound : float
        C, of h and of Lambda, each of all components together.
    h_multiplier, precision_multiplier : float
        Standard deviation of the noise on h and on Lambda over 2 s C.
    """

    num_passes: int
    step: float
    clip_bound: float
    h_multiplier: float
    precision_multiplier: float

    def __post_init__(self) -> None:
        checks.at_least("num_passes", self.num_passes, 1)
        for name in ("step", "clip_bound", "h_multiplier", "precision_multiplier"):
            checks.positive(name, getattr(self, name))
        if self.step > 1:
            raise DpmcError(f"`step` must be in (0, 1], got {self.step}")


def legacy_stream(model: MixtureModel, seed: int = 0) -> np.random.RandomState:
    """Generator of the public code after it has drawn the prior means."""
    rng = np.random.RandomState(seed)
    rng.standard_normal(model.prior_means.shape)
    return rng


def fit(
    rows: Array,
    model: MixtureModel,
    settings: PublishedSettings,
    rng: np.random.RandomState,
    progress: Progress = silent,
) -> MixtureFit:
    """Run DP-SEP as the public code does.

    Parameters
    ----------
    rows : ndarray of shape (N, d)
        Private rows, all finite.
    model : MixtureModel
        Its prior is clipped as a factor is.
    rng : numpy.random.RandomState
        Left where the public code leaves it: J d^2 + J d normals on for each step that was
        not skipped. The runs of figure 1 share one generator.
    progress : callable
        Called with the steps done and to do after each pass.

    Returns
    -------
    MixtureFit
        Its releases are those of rows in fixed order, two for each pass. They hold but for
        :data:`OUTSIDE`: there is no finite guarantee.
    """
    rows = checked_rows(rows, model)
    num, dim, num_rows = model.num_components, model.dim, len(rows)
    bound, floor = float(settings.clip_bound), FLOORS["factor_sum"]
    target = MixtureTarget.of(model).clipped(bound)
    step = float(settings.step)
    loop_settings = MixtureLoopSettings(step, 1 / num_rows, PER_BLOCK, bound, True, floor)
    shared, state, scratch = (
        MixtureState.zeros(num, dim),
        MixtureState.zeros(num, dim),
        MixtureScratch.of(num, dim),
    )
    counters = np.zeros(len(COUNTERS), dtype=np.int64)
    sds = [2 * bound * step * s for s in (settings.h_multiplier, settings.precision_multiplier)]
    done, status = 0, "complete"
    for _ in range(settings.num_passes):
        normals, give_back = legacy_normals(rng, num_rows, num * dim * (dim + 1))
        completed, used = published_pass(
            rows, normals, *sds, target, loop_settings, shared, state, counters, scratch
        )
        give_back(used)
        done += completed
        if completed < num_rows:
            status = f"stopped: step {done + 1} leaves the finite numbers"
            break
        progress(done, settings.num_passes * num_rows, "")
    return MixtureFit.of(
        target.prior_h + state.h,
        target.prior_precision + state.precision,
        {"steps": done, **dict(zip(COUNTERS, counters.tolist(), strict=True))},
        _releases(settings),
        status,
    )


def _releases(settings: PublishedSettings) -> tuple[tuple[str, int], ...]:
    """Releases that one row has a part in, in the order of their names."""
    counts: dict[str, int] = {}
    for multiplier in (settings.h_multiplier, settings.precision_multiplier):
        name = events.text(events.gaussian(multiplier))
        counts[name] = counts.get(name, 0) + settings.num_passes
    return tuple(sorted(counts.items()))
