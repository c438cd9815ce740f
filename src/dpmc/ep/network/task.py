"""Inputs and outputs that all methods on Bayesian networks share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dpmc.types import Array, DpmcError, Guarantee


@dataclass(frozen=True)
class Task:
    """A regression problem, as far as it is public.

    Parameters
    ----------
    name : str
        Name of the data set, for messages.
    hidden : int
        Units of the hidden layer that are asked for.
    published_noise : (float, float), optional
        Shape and rate of the noise precision that the public code of [vinaroz2022dpsep] has
        for this data set: what its run without privacy ended with.
    standardised_by_rows : bool
        Whether features and targets were shifted and scaled by statistics of private rows.
    """

    name: str
    hidden: int
    published_noise: tuple[float, float] | None = None
    standardised_by_rows: bool = True

    def noise(self) -> tuple[float, float]:
        """Constants of the public code."""
        if self.published_noise is None:
            raise DpmcError(
                f"`published_noise` must be a shape and a rate for {self.name}, got none"
            )
        return self.published_noise


class Predictor(Protocol):
    """Predictions of a fitted network."""

    @property
    def noise_variance(self) -> float:
        """Of the targets given the network, on their scale in the fit."""

    @property
    def status(self) -> str:
        """``"complete"``, or why the run stopped."""

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Mean and variance of the network for rows of features."""


@dataclass(frozen=True)
class Fitted:
    """A fit and the privacy that it really has.

    Parameters
    ----------
    predictor : Predictor
        What predicts new rows.
    guarantee : Guarantee
        Privacy of the fit.
    counters : mapping of str to int
        What a method counted: factors that were clipped or invalid, precisions raised.
    """

    predictor: Predictor
    guarantee: Guarantee
    counters: Mapping[str, int] = field(default_factory=dict)
