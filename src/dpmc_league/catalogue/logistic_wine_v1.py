"""Is a red wine good? Logistic regression on real rows: 1,599 wines, eleven measurements.

[Cortez et al. 2009]. The raw file is looked for in ``DPMC_UCI_DIR/wine_red`` and in the user's
cache, where the reproduction's loader puts it. Measurements are scaled to [-1, 1] by public ranges.
"""

import hashlib
import math
import os
from pathlib import Path

import numpy as np

from dpmc.models import logistic
from dpmc.numerics import user_cache
from dpmc.types import UNAVAILABLE, Array, DpmcError, UnavailableError
from dpmc_league.simulate import rounded
from dpmc_league.task import Task

DIGEST = "534264c08debcb4546344febeff2929d307d68a998b507ca44712a9d5e223e61"
FOLDER, FILE = "wine_red", "winequality-red.csv"
SHA256 = "4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e"
GOOD_FROM = 6
# Public ranges, in the units of the file and the order of its columns.
LOW = 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.985, 2.5, 0.0, 8.0
HIGH = 16.0, 1.6, 1.0, 16.0, 0.6, 80.0, 300.0, 1.005, 4.5, 2.0, 15.0
NAMES = (
    "constant",
    "fixed_acidity",
    "volatile_acidity",
    "citric_acid",
    "residual_sugar",
    "chlorides",
    "free_sulfur_dioxide",
    "total_sulfur_dioxide",
    "density",
    "ph",
    "sulphates",
    "alcohol",
)


def _numbers() -> Array:
    local = os.environ.get("DPMC_UCI_DIR")
    roots = ([Path(local)] if local else []) + [user_cache.folder()]
    for path in (root / FOLDER / FILE for root in roots):
        if path.is_file():
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest() != SHA256:
                raise DpmcError(f"{path}: must have the SHA-256 digest {SHA256}, and has another")
            lines = content.decode().splitlines()[1:]
            return np.array([line.split(";") for line in lines], dtype=np.float64)
    raise UnavailableError(
        f"{UNAVAILABLE}: logistic-wine-v1 needs {FOLDER}/{FILE} where DPMC_UCI_DIR says"
    )


def build() -> Task:
    """Task.

    Raises
    ------
    UnavailableError
        If the file is not on this machine.
    """
    numbers = _numbers()
    scaled = 2 * (numbers[:, :-1] - LOW) / (np.array(HIGH) - LOW) - 1
    good = (numbers[:, -1] >= GOOD_FROM).astype(np.float64)
    x = np.column_stack([rounded(np.clip(scaled, -1.0, 1.0)), good])
    norm = math.sqrt(12)
    return Task(
        name="logistic-wine-v1",
        title="logistic regression on red wine, d = 12",
        model=logistic.build(logistic.Params(11, prior_sd=2.5, row_norm=norm)),
        rows=x,
        names=NAMES,
        bounds={"row_norm": norm},
        start=np.zeros(12),
    )
