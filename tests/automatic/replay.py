"""A search for the centre on two neighbouring data sets that give the same answers.

What is released decides what is asked next. So a search is run on one data set and its transcript
recorded; on the other data set the answers are those of the transcript, and what would have been
released before noise is compared, release by release.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpmc.automatic.bounds import count_valid
from dpmc.automatic.centre import Centre, locate
from dpmc.automatic.counted import believed
from dpmc.automatic.prior import Prior
from dpmc.automatic.purse import Purse
from dpmc.automatic.whitened import WhitenedRows
from dpmc.privacy.budgets import GaussianBudget
from dpmc.privacy.ledger import Ledger
from dpmc.rows.persons import Persons
from dpmc.types import Dataset, Model, Neighbours


@dataclass
class Transcript:
    """Values before noise, how far a row may move them, noise, and values with it."""

    exact: list[np.ndarray] = field(default_factory=list)
    sensitivities: list[float] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)
    noisy: list[np.ndarray] = field(default_factory=list)

    def cost(self, other: Transcript) -> float:
        """Return the sum of squared differences over the noise: at most mu^2 for neighbours."""
        parts = zip(self.exact, other.exact, self.scales, strict=True)
        return float(sum(np.sum((b - a) ** 2) / scale**2 for a, b, scale in parts if scale))

    def loss(self, other: Transcript) -> float:
        """Return the privacy loss of the answers: their log-density here minus that there."""
        parts = zip(self.noisy, self.exact, other.exact, self.scales, strict=True)
        return float(
            sum(
                (np.sum((y - b) ** 2) - np.sum((y - a) ** 2)) / (2 * scale**2)
                for y, a, b, scale in parts
                if scale
            )
        )


class Recording(Ledger):
    """A ledger that keeps what it was asked, and answers from a transcript if it has one."""

    def __init__(
        self,
        budget: GaussianBudget,
        answers: Transcript | None = None,
        neighbours: Neighbours = "replace",
    ) -> None:
        super().__init__(budget, neighbours=neighbours)
        self.transcript, self._answers = Transcript(), answers

    def release(self, clipped, noise_multiplier, rng, batch=None):
        noisy = super().release(clipped, noise_multiplier, rng, batch)
        kept = self.transcript
        if self._answers is not None:
            noisy = self._answers.noisy[len(kept.noisy)]
        kept.exact.append(np.array(clipped.value, dtype=float))
        kept.sensitivities.append(clipped.sensitivity)
        kept.scales.append(clipped.sensitivity * noise_multiplier)
        kept.noisy.append(noisy)
        return noisy


def search(
    model: Model,
    x: np.ndarray,
    mu: float,
    seed: int,
    answers: Transcript | None = None,
    invalid_rows: str = "refuse",
    unit: np.ndarray | None = None,
) -> tuple[Centre, Transcript]:
    """Return what a search on rows, or the persons that they are of, finds, and its transcript."""
    ledger = Recording(GaussianBudget(mu), answers)
    data = Dataset.of("rows", x, invalid_rows)
    rows = WhitenedRows(model, data if unit is None else Persons.of(data, unit, "person"))
    purse, start = Purse(ledger, np.random.default_rng(seed)), np.zeros(model.dim)
    if invalid_rows == "zero":
        rows.num_rows = min(int(believed(count_valid(rows, purse, start)[0])), rows.num_rows)
    centre = locate(rows, Prior.of(model), purse, start)
    return centre, ledger.transcript
