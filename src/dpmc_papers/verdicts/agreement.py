"""Agreement of a printed number with runs, both of which are uncertain.

One rule serves every document. Nothing in it is chosen for a table: what print may differ by is
half a unit in its last place and the sampling error of both sides, on a scale that fits the
quantity. The one constant, ``TOLERANCE``, only takes verdicts away: where print and runs are so
uncertain that a number wrong by a factor of 1.3 would pass, nothing is called reproduced.
"""

from __future__ import annotations

import math

from dpmc_papers.verdicts.bootstrap import Measurement
from dpmc_papers.verdicts.decision import (
    Decision,
    runs_in_words,
    runs_until,
    without_uncertainty,
)
from dpmc_papers.verdicts.verdict import CONTRADICTED, REPRODUCED, UNDECIDED

# A number that is wrong by this, on a scale of logarithms, must not be called reproduced.
TOLERANCE = math.log(1.3)


def compare(
    measurement: Measurement, low: float, high: float, error_rate: float, family: int = 1
) -> Decision:
    """Compare a measurement with a printed number.

    With the distance d from the numbers that are printed so and the length w of a one-sided
    interval around the measurement, the error of print included, a number is

    - reproduced if d <= w and d + w <= ``TOLERANCE``, w at level `error_rate` and, in the sum, on
      the wider side: a true value that is ``TOLERANCE`` or more away is called so with at most this
      probability;
    - contradicted if d > w, w at level ``error_rate / (2 family)``: some number of a family
      whose true values all print so is called contradicted with at most this probability;
    - undecided otherwise.

    What nothing random enters is one of the first two.

    Parameters
    ----------
    measurement : Measurement
        With the standard error of print in ``limit_se``.
    low, high : float
        Least and largest number that is printed so.
    error_rate : float
    family : int
        How many printed numbers share the second error rate.
    """
    scale, ours = measurement.scale, measurement.estimate
    middle, bottom, top = (scale.of(number) for number in (ours, low, high))
    away = max(bottom - middle, middle - top, 0.0)
    if measurement.runs == 0:
        same = away <= 1e-9 * max(abs(bottom), abs(top), 1e-300)
        said = f"{ours:.7g} ({measurement.setting}), to be within {low:.7g} and {high:.7g}"
        return Decision(REPRODUCED if same else CONTRADICTED, said, ours, 0.0, resolution=1.0)
    below, above = measurement.slack(error_rate)
    if math.isinf(max(below, above)):
        return Decision(UNDECIDED, without_uncertainty(measurement), ours)
    error = math.hypot(measurement.se, measurement.limit_se)
    # Towards print, and to the side where the truth may be further away.
    toward, single = below if middle > top else above, max(below, above)
    joint = measurement.slack(error_rate / (2 * family))[0 if middle > top else 1]
    resolution = math.exp(min(2 * single, TOLERANCE) if single <= TOLERANCE else 2 * single)
    reason = f"{_distance(away, error)}, {measurement.runs} runs"
    needed = math.nan
    if away > joint:
        verdict = CONTRADICTED
    elif away <= toward and away + single <= TOLERANCE:
        verdict = REPRODUCED
    else:
        verdict = UNDECIDED
        if away > toward:
            needed = runs_until(measurement, away, error_rate / (2 * family))
        else:
            needed = runs_until(measurement, TOLERANCE - away, error_rate)
        reason += f"; {_lack(measurement, away, toward)}: {runs_in_words(needed)}"
    return Decision(verdict, reason, ours, measurement.natural_se, needed, resolution)


def _distance(away: float, error: float) -> str:
    if away == 0:
        return f"printed the same; error of both {100 * error:.2g} %"
    if error == 0:
        return f"{100 * away:.2g} % from print, all values the same"
    return f"{100 * away:.2g} % from print, {away / error:.2g} standard errors"


def _lack(measurement: Measurement, away: float, single: float) -> str:
    if away > single:
        return "further away than one number in ten is by chance, but not one of all"
    if measurement.limit_se > measurement.se:
        return "print is too uncertain for a factor of 1.3"
    return "too uncertain for a factor of 1.3"
