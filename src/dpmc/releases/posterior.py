"""The posterior given what others published: checked, its method chosen, sampled, and told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc import checks, progress_bar
from dpmc.families import _arrays
from dpmc.fits import Fit
from dpmc.fits.remarks import remarks
from dpmc.modelling import ParametricModel
from dpmc.releases import moves, records
from dpmc.releases.augmentation import Augmented
from dpmc.releases.enumeration import Answers, Tables
from dpmc.releases.mechanisms import RANDOMISED_RESPONSE as ANSWERS
from dpmc.releases.normal import NormalSums
from dpmc.releases.problem import Problem, Release
from dpmc.releases.records import Columns, Records
from dpmc.types import UNSTATED, Array, DpmcError, Guarantee, Plan

NAME = "from_release"
AUTO, ENUMERATION, NORMAL, AUGMENTATION = "auto", "enumeration", "normal", "augmentation"
METHODS = AUTO, ENUMERATION, NORMAL, AUGMENTATION
WORDS = {
    ENUMERATION: "all counts that the releases may come from were added up",
    NORMAL: "sums over records count as normal, and noise as it is",
    AUGMENTATION: "records were drawn together with the parameters",
}
WARM_UP = 150
# Moves between two draws that are kept.
MOVES = 4
# Skewness of sums below which they count as normal.
SKEWNESS = 0.05
# Records at which statistics are tried, for each of some parameters of the prior.
TRIED = 20
ENTRIES = "must work entry by entry, on one record as on many"
# Records of which a statistic has to be finite are at most so large, and not as much smaller.
USUAL = 1e50
# Records that are drawn one by one: with more of them a sweep takes long.
MOST_RECORDS = 5000
# Integers that floats tell from their neighbours.
MOST_N = 2**53
# Standard deviations that heavy tails of noise do not reach, beside those of several numbers.
FAR = 8.0
# Share of records, under draws of the posterior, that `values` may leave out.
MISSING = 1e-4


def from_release(
    model: ParametricModel,
    releases: Release | Sequence[Release],
    *,
    n: int | Release,
    sample: Callable[..., Any] | None = None,
    values: Any = None,
    method: str = AUTO,
    guarantee: Guarantee = UNSTATED,
    num_chains: int = 64,
    num_draws: int = 250,
    seed: int | None = None,
    progress: bool = True,
) -> Fit:
    """Posterior of a model's parameters given what others published of its rows.

    No row is read: whatever is computed from a release has the privacy of the release.

    Parameters
    ----------
    model : ParametricModel
        Priors and the log-likelihood of one record: ``dpmc.model(...)``.
    releases : Release or sequence of Release
        Sums over all records with noise, the noise of each by itself.
    n : int or Release
        Number of records, or the release of it with a statistic of None.
    sample : callable ``(parameters, *uniforms) -> columns``, optional
        A record of the model from as many numbers, uniform in (0, 1), as it has arguments:
        arithmetic and functions of NumPy and SciPy that work on arrays entry by entry, such as
        ``p.mean + p.sd * scipy.special.ndtri(u)``.
    values : array_like of shape (v,) or (v, num_columns), optional
        All records that there may be, in place of `sample`; no term of the log-likelihood may be
        left out then.
    method : {"auto", "enumeration", "normal", "augmentation"}
        Of sampling: all possible counts added up, exact; sums that count as normal; or records
        drawn one by one, exact. ``"auto"`` is the first, else the second where sums are hardly
        skewed, else the third.
    guarantee : Guarantee, optional
        That of the releases, as their publisher states it.
    num_chains : int
        Even; chains step by differences of others.
    num_draws : int
        Of each chain.
    seed : int, optional
        Makes the draws repeatable; there is no private noise in them.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    Fit
        Its plan names the method.

    Raises
    ------
    DpmcError
        If an argument is refused.

    Warns
    -----
    PosteriorWarning
        Once for each remark.

    Examples
    --------
    >>> import math
    >>> import dpmc
    >>> from dpmc import mechanisms, priors
    >>> def log_likelihood(p, row):
    ...     return row[0] * math.log(p.share) + (1 - row[0]) * math.log1p(-p.share)
    >>> smokers = dpmc.model(log_likelihood, {"share": priors.beta(1, 1)}, num_columns=1)
    >>> told = Release(31, lambda x: x, mechanisms.geometric(2.0))
    >>> fit = from_release(smokers, told, n=100, values=[0, 1], seed=1, progress=False)
    >>> fit.plan.method, fit.names, bool(abs(fit.kept().mean() - 0.31) < 0.02)
    ('enumeration', ('share',), True)
    """
    checks.one_of("method", method, METHODS)
    checks.instance("guarantee", guarantee, Guarantee, "a dpmc.Guarantee")
    checks.at_least("num_draws", num_draws, 1)
    checks.flag("progress", progress)
    seed = checks.seed(seed)
    if seed is not None and seed < 0:
        raise DpmcError(f"`seed` must be at least 0, got {seed}")
    rng = np.random.default_rng(seed)
    problem = _checked(model, releases, n, sample, values)
    checks.at_least("num_chains", num_chains, 4 * problem.dim + 4)
    if num_chains % 2:
        raise DpmcError(f"`num_chains` must be even, got {num_chains}")
    checks.room("num_draws", (num_draws, num_chains, problem.dim))
    pool = moves.from_prior(problem.log_prior, problem.start(num_chains, rng), rng)
    pool = pool[np.isfinite(problem.log_prior(pool))]
    if not len(pool):
        raise DpmcError("the model must have priors with a density near 0, found none there")
    few = pool[rng.choice(len(pool), min(len(pool), num_chains), replace=False)]
    records.check(problem.records, problem.split(few)[0])
    _check_statistic(problem, few)
    start = _Start.of(problem, method, pool, num_chains, rng)
    draws, accepted = _sampled(start, num_draws, rng, progress)
    states = np.stack(draws, axis=1)
    flat = problem.split(states.reshape(-1, problem.dim))[0]
    shown = model.bounded(flat).reshape(num_chains, num_draws, -1)
    names = model.names
    if problem.count is not None:
        shown = np.concatenate([shown, np.round(np.exp(states[:, :, -1:]))], axis=2)
        names = (*names, "n")
    fit = Fit(
        draws=shown,
        info={},
        totals={},
        status="complete",
        ledger=(),
        guarantee=guarantee,
        plan=Plan(
            method=start.method,
            family=NAME,
            num_chains=num_chains,
            acceptance=accepted,
            statement=f"No row was read: of the releases, {WORDS[start.method]}.",
            details={
                "released": [one.value.tolist() for one in problem.releases],
                "mechanisms": [mechanism.name for _, _, mechanism in problem.each()],
                "n": None if problem.num_records is None else int(problem.num_records),
            },
        ),
        names=names,
    )
    some = states.reshape(-1, problem.dim)[:: max(1, len(flat) // 1000)]
    told = [*remarks(fit, free=True), *start.remarks(some)]
    return _arrays.finished(fit, told, int(problem.about))


@dataclass(frozen=True, eq=False)
class _Start:
    """States near the posterior, and the method that goes on from them."""

    problem: Problem
    method: str
    x: Array
    target: Tables | Answers | NormalSums
    level: int
    skewness: float = 0.0
    rough: bool = False

    @classmethod
    def of(
        cls, problem: Problem, method: str, pool: Array, num_chains: int, rng: np.random.Generator
    ) -> _Start:
        """Start for a method, which is chosen here if it is to be."""
        tables = Tables.of(problem)
        if method == ENUMERATION and tables is None and not problem.randomised:
            raise DpmcError(
                "`method` 'enumeration' must have counts of disjoint `values`, not too many to add "
                "up: leave `method` out"
            )
        if problem.randomised and method not in (AUTO, ENUMERATION):
            raise DpmcError(f"`method` must be 'enumeration' of answers, got {method!r}")

        def begun(level: int) -> tuple[NormalSums | Answers, Array]:
            target: NormalSums | Answers = (
                Answers(problem, level)
                if problem.randomised
                else NormalSums(problem, level, num_chains)
            )
            return target, moves.tempered(
                problem.log_prior, target.log_likelihood, pool, num_chains, rng
            )

        first = 0 if problem.records.values is not None else 1
        target, x = begun(first)
        theta, number = problem.split(x)
        chosen = rng.choice(len(x), 8, replace=False)
        level = problem.records.level(theta[chosen], float(np.median(number)))
        best = records.num_levels(problem.records.num_uniforms) - 1 if level is None else level
        if best > first:
            target, x = begun(best)
        elif isinstance(target, NormalSums):  # as good, and cheaper
            target.level = best
        if problem.randomised:
            return cls(problem, ENUMERATION, x, target, best)
        if tables is not None and method in (AUTO, ENUMERATION):
            return cls(problem, ENUMERATION, x, tables, best)
        theta, number = problem.split(x)
        skewness = np.abs(problem.records.moments(theta, best)[2]).max(axis=1)
        most = float(np.median(skewness / np.sqrt(np.maximum(number, 1))))
        if method == AUTO:
            drawn = most > SKEWNESS and number.max() <= MOST_RECORDS
            method = AUGMENTATION if drawn else NORMAL
        return cls(problem, method, x, target, best, most, level is None)

    def remarks(self, x: Array) -> Iterator[str]:
        """Remarks on what the method takes for granted.

        Parameters
        ----------
        x : ndarray of shape (k, dim)
            States of the posterior.
        """
        if not self.problem.randomised:
            normal = NormalSums(self.problem, self.level, len(x))
            least = float(normal.distance(x).min())
            if least > FAR + np.sqrt(len(self.problem.values)):
                yield (
                    f"Releases are {least:.3g} standard deviations of sums and noise from what the "
                    "model has at any draw: they contradict it, each other, `n` or their mechanism."
                )
        if self.method == NORMAL and self.skewness > SKEWNESS:
            yield (
                f"Sums over records have a skewness of about {self.skewness:.2g}, and count as "
                "normal: intervals are a little off. `method='augmentation'` draws the records, "
                "which takes longer."
            )
        if self.method == NORMAL and self.rough:
            yield (
                "Moments of a record are not exact enough for so many of them: a `sample` without "
                "jumps, or `values`, would help."
            )
        if self.problem.records.values is not None:
            theta, _ = self.problem.split(x)
            missing = 1 - float(self.problem.records.probabilities(theta).sum(axis=1).min())
            if missing > MISSING:
                yield (
                    f"Records outside of `values` have a probability of up to {missing:.2g} under "
                    "the draws: more `values` would help."
                )


def _sampled(
    start: _Start, num_draws: int, rng: np.random.Generator, progress: bool
) -> tuple[list[Array], float]:
    """States of all chains, shape (m, dim), as often as asked for, and the share accepted."""
    problem, x, kept, accepted = start.problem, start.x.copy(), [], 0.0
    every = np.arange(len(x))
    chains = Augmented(problem, x, rng) if start.method == AUGMENTATION else None

    def target(states: Array, mine: np.ndarray) -> Array:
        if isinstance(start.target, NormalSums):
            return start.target.log_density(states, mine)
        before = problem.log_prior(states)
        inside = np.isfinite(before)
        found = np.full(len(states), -np.inf)
        found[inside] = before[inside] + start.target.log_likelihood(states[inside])
        return found

    heights = np.zeros(len(x)) if chains is not None else target(x, every)
    moves.check_possible(heights)

    def move(adapt: bool) -> float:
        if chains is not None:
            return sum(chains.sweep(adapt) for _ in range(MOVES)) / MOVES
        if isinstance(start.target, NormalSums):
            start.target.update(x, rng)
            heights[:] = target(x, every)
        return sum(moves.step(x, heights, target, rng) for _ in range(MOVES)) / MOVES

    total = WARM_UP + num_draws
    with progress_bar.shown(progress, "sweep") as report:
        for number in range(total):
            share = move(number < WARM_UP)
            if number >= WARM_UP:
                kept.append(x.copy())
                accepted += share / num_draws
            report(number + 1, total, "")
    return kept, accepted


def _checked(model: Any, releases: Any, n: Any, sample: Any, values: Any) -> Problem:
    """Problem of arguments that are in order."""
    checks.instance("model", model, ParametricModel, "a model by dpmc.model")
    listed = (releases,) if isinstance(releases, Release) else releases
    good = isinstance(listed, Sequence) and not isinstance(listed, str)
    if not good or not listed or not all(isinstance(one, Release) for one in listed):
        raise DpmcError(f"`releases` must be one or more dpmc.Release, got {releases!r}")
    for one in listed:
        if one.statistic is None:
            raise DpmcError("`releases` must have a `statistic` each: a number of records is `n`")
    if (sample is None) == (values is None):
        raise DpmcError("one of `sample` and `values` must be given, and not both")
    if sample is not None and not callable(sample):
        raise DpmcError(f"`sample` must be a function, got {sample!r}")
    count = n if isinstance(n, Release) else None
    if count is None:
        checks.at_least("n", n, 1)
        if n > MOST_N:
            raise DpmcError(f"`n` must be at most 2**53, got one of {len(str(n))} digits")
    elif count.size != 1 or count.statistic is not None or count.mechanism.name == ANSWERS:
        raise DpmcError("`n` must be an integer, or a release of one number without a statistic")
    columns = None if values is None else _columns(values, model.num_columns)
    problem = Problem(
        Records(model, _joined(listed), sample, columns),
        tuple(listed),
        None if count is not None else int(n),
        count,
    )
    if count is not None and "n" in model.names:
        raise DpmcError("`model` must have no parameter 'n' beside a release of `n`, got one")
    if sample is not None and problem.records.num_uniforms < 1:
        raise DpmcError(
            "`sample` must be a function of the parameters and of one or more uniforms, got one "
            f"of {problem.records.num_uniforms + 1} arguments"
        )
    if problem.randomised:
        _check_answers(problem)
    return problem


def _check_answers(problem: Problem) -> None:
    """Refuse randomised response beside what its likelihood does not know."""
    if len(problem.releases) > 1 or problem.num_records is None:
        raise DpmcError(
            "`releases` must be a single one with randomised response, with an integer for `n`"
        )
    value = problem.values
    whole = (value == np.round(value)).all()
    whole &= value.sum() == problem.num_records or len(value) == 1
    if (value < 0).any() or value.sum() > problem.num_records or not whole:
        raise DpmcError(
            f"`value` must be numbers of answers that add up to n = {problem.num_records}, got "
            f"{value.tolist()}"
        )


def _columns(values: Any, num_columns: int) -> Columns:
    given = checks.real_numbers(values)
    wanted = f"`values` must be finite numbers of shape (v, {num_columns})"
    if not np.isfinite(given).all():
        raise DpmcError(f"{wanted}, got others")
    array = given[:, None] if given.ndim == 1 else given
    if array.ndim != 2 or array.shape[1] != num_columns or not array.size:
        raise DpmcError(f"{wanted}, got shape {given.shape}")
    if len(np.unique(array, axis=0)) < len(array):
        raise DpmcError("`values` must be different records, got one twice")
    return tuple(array.T)


def _joined(releases: Sequence[Release]) -> Callable[..., Array]:
    """Statistic that has the entries of all releases."""

    def statistic(*columns: Array) -> Array:
        shape = np.broadcast_shapes(*(one.shape for one in columns))
        # Read-only, for functions that would change them.
        columns = tuple(np.broadcast_to(one, shape) for one in columns)
        parts: list[Array] = []
        for one in releases:
            assert one.statistic is not None
            try:
                found = one.statistic(*columns)
            except Exception as error:  # of the function, whatever it is
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise DpmcError(
                    f"`statistic` must be a function of {len(columns)} columns, got {reason}"
                ) from None
            entries = list(found) if isinstance(found, tuple | list) else [found]
            if len(entries) != one.size:
                raise DpmcError(
                    f"`statistic` must return {one.size} numbers, as `value` has, got "
                    f"{len(entries)}"
                )
            parts += [records.numbers("statistic", entry, shape) for entry in entries]
        return np.stack(parts, axis=-1)

    return statistic


def _same(one: Array, other: Array) -> bool:
    return bool(np.allclose(one, other, rtol=1e-9, atol=0.0, equal_nan=True))


def _check_statistic(problem: Problem, x: Array) -> None:
    """Refuse statistics that are no sums or that their mechanism is not for.

    They are tried at records of the prior, a few of them one by one as well.
    """
    theta, _ = problem.split(x)
    uniforms = np.random.default_rng(0).random((problem.records.num_uniforms, len(theta), TRIED))
    draw = problem.records.drawn_by(theta)
    rows = draw(uniforms)
    sums = problem.records.sums_of(rows)
    for j in range(TRIED):
        i = j % len(theta)
        only = slice(i, i + 1), slice(j, j + 1)
        row = tuple(one[only] for one in rows)
        alone = problem.records.drawn_by(theta[only[0]])(uniforms[:, *only])
        if not all(map(_same, row, alone)):
            raise DpmcError(f"`sample` {ENTRIES}, got another record when it was made alone")
        if not _same(sums[only], problem.records.sums_of(row)):
            raise DpmcError(f"`statistic` {ENTRIES}, got another value of a record by itself")
    usual = [(np.abs(one) < USUAL) & (np.abs(one) > 1 / USUAL) for one in rows]
    known = np.all(usual, axis=0) | (problem.records.values is not None)
    if not np.isfinite(sums[known]).all():
        raise DpmcError("`statistic` must be finite for each record, got others")
    for place, _, mechanism in problem.each():
        here = sums[..., place]
        if mechanism.on_integers and (here != np.round(here)).any():
            raise DpmcError(f"`statistic` must be integers for {mechanism.name}, got others")
        if mechanism.name == ANSWERS and not (
            np.isin(here, (0.0, 1.0)).all()
            and (here.shape[-1] == 1 or (here.sum(axis=-1) == 1).all())
        ):
            raise DpmcError("`statistic` must be 1 for the category of a record, and 0 for others")
