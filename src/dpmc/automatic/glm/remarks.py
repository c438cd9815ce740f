"""Remarks of a regression: what is wrong with it, by name, and what would help.

All of it is computed from released numbers: it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dpmc.automatic.glm.kernels import LOGISTIC, POISSON
from dpmc.automatic.glm.normal import Normal
from dpmc.automatic.glm.search import Found
from dpmc.automatic.glm.units import FARTHEST, WIDEST, Units
from dpmc.automatic.statement import WORTH_HAVING, Cost
from dpmc.types import Array

# Rates of ones, and means of counts, below which it is the rare rows that are too few.
RARE = {LOGISTIC: 0.15, POISSON: 0.3}
# Ratio of variances that is told, and deviations of its noise that it has to exceed.
DISPERSED, CLEAR = 0.2, 4.0
# Share of second moments below which columns are combinations of others, where noise is below.
SEEN = 0.15
# Width of a posterior, over that of the prior, from which on it tells next to nothing; of collinear
# columns, whose curvature is noise.
UNKNOWN, COLLINEAR = 0.4, 0.1
# Deviations of the prior that a coefficient may be from its mean.
FAR = 3.0


@dataclass(frozen=True)
class Judged:
    """A fit, to be remarked on.

    Parameters
    ----------
    found : Found
    units : Units
    cost : Cost
    prior : Normal
        Of the coefficients as a user has them.
    mean : ndarray of shape (d,)
        Of their posterior.
    sds : ndarray of shape (d,)
        Standard deviations, under the widest of the priors.
    names : sequence of str
    intercept : bool
    kind : int
        The likelihood.
    given : bool
        Whether the prior is the user's.
    robust : bool
    """

    found: Found
    units: Units
    cost: Cost
    prior: Normal
    mean: Array
    sds: Array
    names: Sequence[str]
    intercept: bool
    kind: int
    given: bool
    robust: bool

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns of features."""
        first = int(self.intercept)
        return self.names[first : len(self.found.whitening.values)]


def remarks(judged: Judged) -> Iterator[str]:
    """Remarks on what is wrong with a fit."""
    yield from _units(judged)
    if judged.units.beyond.any():
        return  # of which all else follows
    yield from _columns(judged)
    yield from _budget(judged)
    pulled = list(_prior(judged))
    yield from pulled
    yield from _model(judged)
    if abs(judged.found.remaining) > CLEAR and not pulled:
        yield (
            f"The mean residual at the centre is {judged.found.remaining:.2g} standard deviations "
            "from 0: the search had not arrived. A larger epsilon, or a public `start`, helps."
        )


def _units(judged: Judged) -> Iterator[str]:
    if not judged.units.seen:
        yield (
            "The budget does not show in which units the columns are: there are too few rows for "
            "this epsilon. They were taken as they are, with a unit of 1 around 0: scale them by "
            "public numbers before, or use a larger epsilon or more rows."
        )
    both = zip([*map(repr, judged.columns), "the response"], judged.units.beyond, strict=False)
    far = " and ".join(name for name, one in both if one)
    if far:
        yield (
            f"The scale of {far}, or the distance from 0, is beyond what is looked for: scales "
            f"from 2^-{WIDEST:g} to 2^{WIDEST:g}, and up to 2^{FARTHEST:g} of them from 0. Give "
            "other units, or take away a public number."
        )


def _columns(judged: Judged) -> Iterator[str]:
    columns = judged.columns
    # Of a slope that is as unknown as before.
    prior = np.sqrt(np.diag(judged.prior.covariance()))[int(judged.intercept) :]
    width = judged.sds[int(judged.intercept) :] / prior
    rare = {name for name, one in zip(columns, judged.units.still, strict=False) if one}
    alike: list[list[str]] = []
    white = judged.found.whitening
    noise = white.noise / math.sqrt(2 * len(white.values))
    for value, vector in zip(white.values, white.vectors.T, strict=True):
        if white.noise > SEEN or not judged.units.seen or value > 2 * noise:
            continue
        loadings = np.abs(vector[int(judged.intercept) :])
        both = zip(columns, loadings, width > COLLINEAR, strict=True)
        names = [name for name, one, open_ in both if one > 0.3 and open_]
        if len(names) > 1:
            alike.append(names)
        # A column that shares its direction with the constant alone hardly differs.
        rare |= set(names) if len(names) == 1 else set()
    few = [name for name, open_ in zip(columns, width > UNKNOWN, strict=True) if open_]
    few = [name for name in few if name in rare]
    if few:
        yield (
            f"As far as noise shows, {_listed(few)} differ{'s' * (len(few) == 1)} between too "
            "few rows to be of use: what is said of it is the prior's. For what is rare, as a "
            "level that hardly any row has, a larger epsilon or more rows help; leave out what is "
            "constant."
        )
    for names in alike:
        if not set(names) <= set(few):
            yield (
                f"As far as noise shows, {_listed(names)} can be told from each other by no row: "
                "they are collinear, and the prior shares out their slopes. "
                "Leave out one of them; a larger epsilon does not help."
            )


def _budget(judged: Judged) -> Iterator[str]:
    widest = float(judged.cost.widening.max())
    displaced = judged.cost.displacement
    if widest <= WORTH_HAVING:
        return
    epsilon, num_rows = judged.cost.enough()
    such = f"{num_rows:,} such {judged.cost.what}"
    help_ = f"About epsilon {epsilon:.2g}, or {such}, would bring that to 2."
    cause = ""
    rare = min(judged.found.ones, 1 - judged.found.ones)
    if judged.kind == POISSON:
        rare = judged.found.ones
    if judged.kind in RARE and rare < RARE[judged.kind]:
        count = rare * judged.cost.num_rows
        what = "of the rarer response" if judged.kind == LOGISTIC else "counted in all rows"
        cause = f" About {count:,.0f} {what}, {rare:.2g} a row, are what it learns from."
    name = judged.names[int(np.argmax(judged.cost.widening))]
    yield (
        f"The budget does not carry this posterior: the widest interval, of {name!r}, is "
        f"{widest:.3g} times what the rows allow, and noise displaces means by {displaced:.2g} "
        f"deviations.{cause} {help_}"
    )


def _prior(judged: Judged) -> Iterator[str]:
    sds = np.maximum(np.sqrt(np.diag(judged.prior.covariance())), 1e-300)
    away = np.abs(judged.mean - judged.prior.mean) / sds
    worst = int(np.argmax(away))
    if away[worst] > FAR:
        cure = (
            "Give `prior_sd` in the units of the columns, or leave it out."
            if judged.given
            else "Give a wider `prior_sd`."
        )
        yield (
            f"The posterior of {judged.names[worst]!r} is {away[worst]:.2g} deviations of the "
            f"prior from its mean: the prior pulls it back. {cure}"
        )


def _model(judged: Judged) -> Iterator[str]:
    ratio, noise = judged.found.dispersion
    if judged.found.heavy:
        yield (
            "Residuals have heavier tails than normal ones: rows far away are clipped, and the "
            "means, the variance and the widths differ from those without privacy. Use "
            "likelihood='student_t', or transform the response."
        )
    if abs(ratio - 1) > max(DISPERSED, CLEAR * noise) and not judged.robust:
        root = math.sqrt(max(ratio, 0.0))
        what = "are widened" if ratio > 1 else "are too wide"
        yield (
            f"Residuals vary {ratio:.2g} times as the model says, so that intervals {what}, by a "
            f"factor of {root:.2g} where privacy does not widen them. covariance='robust', or "
            "another likelihood, has the width of each."
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")
