"""The mean with Laplace noise, normal by the central limit theorem, in closed form.

[alparslan2023thesis, section 4.2.2]
"""

from __future__ import annotations

import numpy as np

from dpmc.statsel.fisher import information
from dpmc.statsel.fisher.information import InformationEstimate, ReleaseSetting
from dpmc.statsel.fisher.methods import _clt
from dpmc.statsel.fisher.methods._clt import Params
from dpmc.statsel.mechanisms import laplace


def evaluate(
    params: Params, release: ReleaseSetting, rng: np.random.Generator
) -> InformationEstimate:
    """Return the information; `rng` is not used."""
    mechanism = laplace.build(laplace.Params())
    return _clt.evaluate(information.mean_with_laplace, mechanism, params, release)
