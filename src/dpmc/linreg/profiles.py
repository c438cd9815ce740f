"""Four ways to run private distributed regression, as plain values.

``correct``: noise that keeps (epsilon, delta) when a row is replaced, and chains that leave
their posterior invariant. ``thesis``: the same with the sensitivity and the formulas that
[alparslan2023thesis, section 5.2 and chapter 7] prints. ``authors``: what the first version of
the public code of the thesis does, which Tables 7.1 and 7.2 are reproduced with; its noise is too
small. ``final``: what the last version of that code does, with the same noise and the prior of
the text. MCMC-B&S and adaSSP are the same in both: the one has a precision of its own, the other
no prior.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from dpmc import checks
from dpmc.linreg.release import Split
from dpmc.linreg.types import Prior
from dpmc.privacy.gaussian_noise import Calibration
from dpmc.types import Neighbours

# Shape of the prior of sigma_y^2.
SHAPE = 20.0
# Rate of the prior of sigma_y^2.
RATE = 0.5
# Mean of the prior of sigma_y^2, 0.0263.
MEAN_VARIANCE = RATE / (SHAPE - 1)
# Stands for that number, which is known with the data only.
THIRD = "y_bound / 3"

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Profile:
    """Settings of releases, of the prior and of methods.

    Parameters
    ----------
    name : str
        Name of the profile.
    neighbours : {"replace", "add_remove"}
        Relation whose sensitivity the noise is relative to.
    calibration : {"analytic", "published"}
        How noise is calibrated: exactly, or as in the published code.
    split : {"joint", "best"}
        Whether S and z share one calibration, or the better of joint and separate ones.
    coefficient_variance : float
        C is this times the identity.
    overrides : mapping of str to mapping
        Parameters of each method that differ from its defaults.
    """

    name: str
    neighbours: Neighbours
    calibration: Calibration
    split: Split
    coefficient_variance: float
    overrides: Mapping[str, Values] = field(default_factory=dict)

    def release_settings(self, statistics: str = "sz") -> dict[str, Any]:
        """Keyword arguments of the release that a method needs.

        `statistics` in {"sz", "szu", "own"}: `STATISTICS` of the method: of
        `dpmc.linreg.release.release` without and with u, or of the release of the method's own
        module.
        """
        checks.one_of("statistics", statistics, ("sz", "szu", "own"))
        terms = {"neighbours": self.neighbours, "calibration": self.calibration}
        if statistics == "own":
            return terms
        return {**terms, "split": self.split, "with_u": statistics == "szu"}

    def parameters(self, method: str, y_bound: float) -> dict[str, Any]:
        """Parameters of `method` that differ from its defaults.

        `method`: empty for a method of which the profile says nothing. `y_bound`: Y, > 0: a third
        of it is where a chain starts, or what sigma_y^2 is set to.
        """
        checks.positive("y_bound", y_bound)
        values = self.overrides.get(method, {})
        return {key: y_bound / 3 if value == THIRD else value for key, value in values.items()}


def _frozen(overrides: Mapping[str, Values]) -> Mapping[str, Values]:
    return MappingProxyType({name: MappingProxyType(dict(v)) for name, v in overrides.items()})


# A random walk on sigma_y^2 itself, its step never tuned, from a point far from the prior.
_WALK = {"variance_move": "linear", "variance_walk_sd": 0.1, "variance_start": THIRD}
_FAST = {"noise_variance": THIRD}

_AUTHORS = Profile(
    "authors",
    neighbours="add_remove",
    calibration="published",
    split="best",
    coefficient_variance=MEAN_VARIANCE,
    overrides=_frozen(
        {
            "mcmc_normal_x": {
                **_WALK,
                "ridge": 1.0,
                "statistics_move": "wishart",
                "scale_moves": 0,
                "start": "node",
                "target_acceptance": 0.1,
                "adaptation": "diminishing",
            },
            "mcmc_fixed_s": {**_WALK, "ridge": 1.0},
            "bayes_fixed_s_fast": _FAST,
            "mcmc_bs": {
                "update": "direct",
                "law": "normal",
                "coefficient_prior": "conjugate",
                "precision": MEAN_VARIANCE,
                "project": True,
                "ridge": 1.0,
                "variance_start": THIRD,
            },
            "adassp": {"lambda_rule": "sum", "lambda_noise": "published"},
            "posterior": {"precision": MEAN_VARIANCE},
        }
    ),
)

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        "correct": Profile(
            "correct",
            neighbours="replace",
            calibration="analytic",
            split="joint",
            coefficient_variance=1 / MEAN_VARIANCE,
            overrides=_frozen({"bayes_fixed_s_fast": _FAST}),
        ),
        "thesis": Profile(
            "thesis",
            neighbours="add_remove",
            calibration="analytic",
            split="joint",
            coefficient_variance=1 / MEAN_VARIANCE,
            overrides=_frozen({"bayes_fixed_s_fast": _FAST, "adassp": {"lambda_rule": "sum"}}),
        ),
        "authors": _AUTHORS,
        "final": replace(_AUTHORS, name="final", coefficient_variance=1 / MEAN_VARIANCE),
    }
)


def profile(name: str) -> Profile:
    """Profile by name."""
    checks.one_of("profile", name, tuple(PROFILES))
    return PROFILES[name]


def make_prior(profile: Profile, dim: int, rng: np.random.Generator) -> Prior:
    """Prior of [alparslan2023thesis, section 7.2] for `dim` features.

    Parameters
    ----------
    profile : Profile
        Says how wide the prior of the coefficients is.
    dim : int
        Number d of features.
    rng : numpy.random.Generator
        Of V, d x d and standard normal: V'V is the scale of Sigma_x, with d + 1 degrees of
        freedom. To be drawn once per problem.
    """
    checks.at_least("dim", dim, 1)
    v = rng.standard_normal((dim, dim))
    scale = v.T @ v
    return Prior(
        mean=np.zeros(dim),
        covariance=profile.coefficient_variance * np.eye(dim),
        shape=SHAPE,
        rate=RATE,
        scale=(scale + scale.T) / 2,
        dof=dim + 1.0,
    )
