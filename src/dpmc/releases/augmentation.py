"""All records drawn together with theta, in blocks, and theta given them [Ju et al. 2022].

Blocks are proposed from the model: a move is accepted by the releases alone, whose sums change by
those of the block.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dpmc import checks
from dpmc.releases import moves
from dpmc.releases.problem import Problem
from dpmc.releases.records import Columns
from dpmc.types import Array

# Moves of theta given the records, in one sweep.
MOVES = 3
# Shares of blocks accepted between which their size is kept.
SHARES = 0.25, 0.6
COUNT_MOVES = 5
# Moves of everything together, in one sweep.
JOINT_MOVES = 2
# Numbers of records that are stored, in deviations of the noise on their number.
FURTHEST = 8.0

# A function that makes records of the model, and for how many chains.
Draw = tuple[Callable[[Array], Columns], int]


class Augmented:
    """Ensemble of chains over theta and all records.

    Parameters
    ----------
    problem : Problem
    x : ndarray of shape (m, dim)
        States to begin with, which are moved in place.
    rng : numpy.random.Generator

    Attributes
    ----------
    block : int
        Records that are proposed together.
    """

    def __init__(self, problem: Problem, x: Array, rng: np.random.Generator) -> None:
        self.problem, self.x, self._rng = problem, x, rng
        theta, number = problem.split(x)
        self._room = problem.num_records or int(number.max() + _most_more(problem))
        checks.room("n", (problem.records.num_uniforms, len(x), self._room))
        self._number = number.astype(np.int64)
        self._columns = [one.copy() for one in self._propose(self._drawn_by(theta), self._room)]
        self._sums = problem.records.sums_of(tuple(self._columns)).copy()
        self._total = np.zeros((len(x), self._sums.shape[2]))
        self.block = 1
        self._add_up()

    def _drawn_by(self, theta: Array) -> Draw:
        return self.problem.records.drawn_by(theta), len(theta)

    def _propose(self, draw: Draw, number: int) -> Columns:
        make, chains = draw
        found = make(self._rng.random((self.problem.records.num_uniforms, chains, number)))
        return tuple(np.broadcast_to(one, (chains, number)) for one in found)

    def _add_up(self) -> None:
        """Sums anew: rounding errors of changes would pile up."""
        self._inside = np.arange(self._room) < self._number[:, None]
        self._total = np.where(self._inside[..., None], self._sums, 0.0).sum(axis=1)
        self._release = self.problem.log_release(self._total)

    def _better(self, change: Array) -> npt.NDArray[np.bool_]:
        """Which chains move, given the change of their log-density."""
        with np.errstate(invalid="ignore"):
            # A chain whose sums are impossible moves to any other: it has not begun.
            return np.asarray(~(np.log(self._rng.random(len(change))) >= change))

    def sweep(self, adapt: bool = False) -> float:
        """Move all records, their number and theta once; share of moves of theta accepted.

        Parameters
        ----------
        adapt : bool
            Whether the size of blocks may change: during warm-up alone.
        """
        draw = self._drawn_by(self.problem.split(self.x)[0])
        accepted, number = 0.0, 0
        for first in range(0, self._room, self.block):
            accepted += self._move_block(draw, slice(first, first + self.block))
            number += 1
        if adapt:
            share = accepted / number
            if share > SHARES[1]:
                self.block = min(2 * self.block, self._room)
            elif share < SHARES[0]:
                self.block = max(1, self.block // 2)
        if self.problem.num_records is None:
            self._move_number(draw)
        self._add_up()
        share = self._move_theta()
        for _ in range(JOINT_MOVES):
            self._move_all()
        return share

    def _move_block(self, draw: Draw, place: slice) -> float:
        proposed = self._propose(draw, len(range(*place.indices(self._room))))
        sums = self.problem.records.sums_of(proposed)
        inside = self._inside[:, place, None]
        total = self._total + np.where(inside, sums - self._sums[:, place], 0.0).sum(axis=1)
        release = self.problem.log_release(total)
        with np.errstate(invalid="ignore"):
            moved = self._better(release - self._release)
        for column, new in zip(self._columns, proposed, strict=True):
            column[moved, place] = new[moved]
        self._sums[moved, place] = sums[moved]
        self._total[moved], self._release[moved] = total[moved], release[moved]
        return float(moved.mean())

    def _move_number(self, draw: Draw) -> None:
        """Add a record of the model at the end, or remove the last one."""
        every = np.arange(len(self.x))
        for _ in range(COUNT_MOVES):
            more = self._rng.random(len(self.x)) < 0.5
            number = self._number + np.where(more, 1, -1)
            possible = (number >= 1) & (number <= self._room)
            place = np.clip(np.where(more, self._number, number), 0, self._room - 1)
            proposed = self._propose(draw, 1)
            sums = self.problem.records.sums_of(proposed)[:, 0]
            gone = self._sums[every, place]
            total = self._total + np.where(more[:, None], sums, -gone)
            release = self.problem.log_release(total)
            before, after = (
                self.problem.log_count(one.astype(float)) for one in (self._number, number)
            )
            with np.errstate(invalid="ignore"):
                moved = possible & self._better(release - self._release + after - before)
            added = moved & more
            for column, new in zip(self._columns, proposed, strict=True):
                column[added, place[added]] = new[added, 0]
            self._sums[added, place[added]] = sums[added]
            self._number[moved] = number[moved]
            self._total[moved], self._release[moved] = total[moved], release[moved]
        self._write_number()

    def _write_number(self) -> None:
        # A state rounds to its number of records, and is anywhere that does.
        self.x[:, -1] = np.log(self._number + self._rng.uniform(-0.5, 0.5, len(self.x)))

    def _move_theta(self) -> float:
        theta, _ = self.problem.split(self.x)
        theta = theta.copy()

        def target(states: Array, chains: np.ndarray) -> Array:
            rows = tuple(column[chains] for column in self._columns)
            likelihood = self.problem.records.log_likelihood(states, rows)
            total = np.where(self._inside[chains], likelihood, 0.0).sum(axis=1)
            return np.asarray(self.problem.records.log_prior(states) + total)

        heights = target(theta, np.arange(len(theta)))
        share = sum(moves.step(theta, heights, target, self._rng) for _ in range(MOVES)) / MOVES
        self.x[:, : theta.shape[1]] = theta
        return share

    def _move_all(self) -> None:
        """Move theta, the number of records and all records together: the releases decide.

        Where noise is large beside what a sum of records varies by, this goes furthest.
        """
        records, before = self.problem.records, self.x.copy()
        columns, sums = [one.copy() for one in self._columns], self._sums.copy()

        def target(states: Array, chains: np.ndarray) -> Array:
            theta, number = self.problem.split(states)
            proposed = self._propose(self._drawn_by(theta), self._room)
            for column, new in zip(columns, proposed, strict=True):
                column[chains] = new
            sums[chains] = records.sums_of(proposed)
            inside = (np.arange(self._room) < number[:, None])[..., None]
            total = np.where(inside, sums[chains], 0.0).sum(axis=1)
            found = self.problem.log_prior(states) + self.problem.log_release(total)
            return np.where(number <= self._room, found, -np.inf)

        heights = self.problem.log_prior(self.x) + self._release
        moves.step(self.x, heights, target, self._rng)
        moved = (self.x != before).any(axis=1)
        for column, new in zip(self._columns, columns, strict=True):
            column[moved] = new[moved]
        self._sums[moved] = sums[moved]
        self._number = self.problem.split(self.x)[1].astype(np.int64)
        self._add_up()


def _most_more(problem: Problem) -> float:
    """Records beyond the largest number that chains begin with."""
    assert problem.count is not None
    return FURTHEST * float(np.sqrt(problem.count.mechanism.variance().ravel()[0])) + 1
