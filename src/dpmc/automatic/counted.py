"""Number of rows, as users may know it, and rows that are looked at in the place of all.

Under substitution the number of rows is public, and places choose. Under addition or removal it is
private: a count is released first, with noise, and stands for it wherever a search, its costs and
its remarks need a number. Places tell how many rows come before a row, so that one row more would
move all behind it. There a coin of its own chooses each row, secret and whatever the others are.

Sensitivities under addition or removal, of what is counted of chosen rows and pairs of them:

- The coins of all other rows being the same, the chosen rows are the same or differ by one.
- Rows are matched by a random order, each as likely as another. One more than an odd number finds
  the one that was left over: a pair more. One more than an even number takes the place of another
  in its pair, or is left over itself: a pair is another. A number of pairs moves by 1 at most.

What is released for given coins is private for each of them, by the same curve, and so it is
whatever they are: curves of what is known with the coins are no better [Dong, Roth and Su 2022].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmc.types import Array

# Share of mu^2 for the count of rows.
SHARE = 0.01


def believed(noisy: float) -> float:
    """Number of rows that a count with noise stands for: an integer of at least 1."""
    return float(max(round(noisy), 1))


@dataclass(frozen=True)
class Counted:
    """Number of rows, and what chooses some of them.

    Parameters
    ----------
    number : float
        Public, or released.
    coins : numpy.random.Generator, optional
        Secret, where the number of rows is private; without it places choose.
    """

    number: float
    coins: np.random.Generator | None = None

    def some(self, x: Array, most: int) -> tuple[Array, float]:
        """Rows, about `most` at most, and how many they are, as users may know it."""
        if self.coins is None:
            rows = x[:: -(-len(x) // most)]
            return rows, float(len(rows))
        share = min(most / self.number, 1.0)
        return (x if share == 1 else x[self.coins.random(len(x)) < share]), self.number * share

    def one_of(self, several: int, seed: int, x: Array) -> tuple[Array, Counted]:
        """One row of each so many that follow each other, or as many by coins."""
        if self.coins is not None:
            chosen = x[self.coins.random(len(x)) < 1 / several]
            return chosen, Counted(self.number / several, self.coins)
        places = np.arange(len(x) // several) * several
        places += np.random.default_rng(seed).integers(several, size=len(places))
        return x[places], Counted(float(len(places)))

    def order(self, rows: Array) -> NDArray[Any]:
        """Order of rows in which they are matched: public, the same each time, or secret."""
        coins = np.random.default_rng(0) if self.coins is None else self.coins
        return coins.permutation(len(rows))
