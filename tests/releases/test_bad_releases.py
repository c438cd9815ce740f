"""Every way to call `dpmc.from_release` wrongly, and what is said of it in one line."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri

import dpmc
from dpmc import mechanisms, priors
from dpmc.models import gaussian_mean
from tests.support.bad_input import OK, judge, labelled


def log_share(p, row):
    return row[0] * math.log(p.share) + (1 - row[0]) * math.log1p(-p.share)


def log_normal(p, row):
    return -math.log(p.sd) - 0.5 * ((row[0] - p.mean) / p.sd) ** 2


SHARE = dpmc.model(log_share, {"share": priors.beta(1, 1)}, num_columns=1)
NORMAL = dpmc.model(
    log_normal, {"mean": priors.normal(0, 3), "sd": priors.half_normal(2)}, num_columns=1
)
LAPLACE = mechanisms.laplace(3.0)
GEOMETRIC = mechanisms.geometric(2.0)
ANSWERS = mechanisms.randomised_response(0.8)


def release(value=31, statistic=lambda x: x, mechanism=GEOMETRIC):
    return dpmc.Release(value, statistic, mechanism)


def counted(releases=None, model=SHARE, **options):
    given = {"n": 100, "values": [0, 1], "num_draws": 2, "num_chains": 12, "seed": 1}
    given |= {"progress": False}
    return dpmc.from_release(model, releases or release(), **{**given, **options})


def summed(sample, releases=None, **options):
    told = releases or release([20.0, 40.0], lambda x: (x, x * x), LAPLACE)
    given = {"sample": sample, "values": None, "n": 30, "method": "normal"}
    return counted(told, NORMAL, **{**given, **options})


MECHANISMS = {
    "scale 0": (lambda: mechanisms.laplace(0), "`scale` must be a positive number"),
    "scale nan": (lambda: mechanisms.gaussian(math.nan), "`scale` must be a positive number"),
    "scale 1e300": (lambda: mechanisms.laplace(1e300), "`scale` must be from 1e-150 to 1e+150"),
    "scale 1e-300": (lambda: mechanisms.gaussian([1, 1e-300]), "`scale` must be from 1e-150 to"),
    "scale text": (lambda: mechanisms.geometric("2"), "`scale` must be a positive number"),
    "scale list": (lambda: mechanisms.laplace([1, 2.5]), OK),
    "clamp reversed": (lambda: mechanisms.laplace(1, clamp=(1, 0)), "`clamp` must be two numbers"),
    "clamp one": (lambda: mechanisms.laplace(1, clamp=0), "`clamp` must be two numbers"),
    "rounded array": (
        lambda: mechanisms.laplace(1, rounded=np.ones(40)),
        "`rounded` must be positive and finite, got array([1., 1.",
    ),
    "rounded 0": (lambda: mechanisms.laplace(1, rounded=0), "`rounded` must be positive"),
    "truth 2": (lambda: mechanisms.randomised_response(2), "`truth` must be a probability, got 2"),
    "truth 0": (lambda: mechanisms.randomised_response(0), "`truth` must be positive"),
}
RELEASES = {
    "value nan": (lambda: release(math.nan), "`value` must be a finite number or a list"),
    "value text": (lambda: release("31"), "`value` must be a finite number or a list"),
    "value none": (lambda: release([]), "`value` must be a finite number or a list"),
    "value table": (lambda: release(np.ones((2, 2))), "`value` must be a finite number or a list"),
    "value int64": (lambda: release(np.int64(31)), OK),
    "value between integers": (lambda: release(3.5), "`value` must be a multiple of 1, got 3.5"),
    "value off the grid": (
        lambda: release(3.55, mechanism=mechanisms.laplace(1, rounded=0.1)),
        "`value` must be a multiple of 0.1, got 3.55",
    ),
    "value beyond the clamp": (
        lambda: release(-1, mechanism=mechanisms.geometric(1, clamp=(0, 9))),
        "`value` must be inside of the clamp (0.0, 9.0), got -1",
    ),
    "statistic text": (lambda: release(statistic="x"), "`statistic` must be a function"),
    "mechanism text": (
        lambda: release(mechanism="laplace"),
        "`mechanism` must be one of dpmc.mechanisms, got 'laplace'",
    ),
    "mechanism function": (
        lambda: release(mechanism=mechanisms.laplace),
        "`mechanism` must be one of dpmc.mechanisms, got function",
    ),
    "scales of another number": (
        lambda: release([1, 2, 3], mechanism=mechanisms.laplace([1, 2])),
        "`scale` must have 1 or 3 entries, got 2",
    ),
}
WAYS_IN = {
    "counts": (counted, OK),
    "sums": (lambda: summed(lambda p, u: p.mean + p.sd * ndtri(u)), OK),
    "model of another kind": (
        lambda: counted(model=gaussian_mean.build(gaussian_mean.Params(1, [[1]], 1.0))),
        "`model` must be a model by dpmc.model, got Model",
    ),
    "releases number": (lambda: counted(31.0), "`releases` must be one or more dpmc.Release"),
    "releases none": (lambda: counted(()) and counted([3]), "`releases` must be one or more"),
    "release of a number of records": (
        lambda: counted(release(statistic=None)),
        "`releases` must have a `statistic` each: a number of records is `n`",
    ),
    "n 0": (lambda: counted(n=0), "`n` must be an integer of at least 1, got 0"),
    "n 10.5": (lambda: counted(n=10.5), "`n` must be an integer of at least 1, got 10.5"),
    "n 10**400": (lambda: counted(n=10**400), "`n` must be at most 2**53, got one of 401 digits"),
    "n beyond enumeration": (lambda: counted(release(10**8), n=10**9), OK),
    "n beyond memory": (
        lambda: counted(release(10**14), n=10**15, method="augmentation"),
        "`n` must be fewer: memory has no room for them",
    ),
    "n beside a parameter of that name": (
        lambda: counted(
            model=dpmc.model(lambda p, row: row[0] * p.n, {"n": priors.beta(1, 1)}, num_columns=1),
            n=release(99, None),
        ),
        "`model` must have no parameter 'n' beside a release of `n`",
    ),
    "n with a statistic": (lambda: counted(n=release()), "`n` must be an integer, or a release"),
    "n of two": (
        lambda: counted(n=release([9, 9], None)),
        "`n` must be an integer, or a release of one number without a statistic",
    ),
    "n with noise": (lambda: counted(n=release(99, None)), OK),
    "no records": (lambda: counted(values=None), "one of `sample` and `values` must be given"),
    "both": (lambda: counted(sample=lambda p, u: u), "one of `sample` and `values` must be given"),
    "sample text": (lambda: summed("normal"), "`sample` must be a function, got 'normal'"),
    "sample without uniforms": (
        lambda: summed(lambda p: p.mean),
        "`sample` must be a function of the parameters and of one or more uniforms",
    ),
    "sample of two columns": (
        lambda: summed(lambda p, u: (p.mean + p.sd * ndtri(u), u)),
        "`sample` must return 1 columns, as the model has, got 2",
    ),
    "sample of another model": (
        lambda: summed(lambda p, u: p.mean + p.sd**2 * ndtri(u)),
        "`sample` must draw records of the model",
    ),
    "sample that raises": (
        lambda: summed(lambda p, u: p.location + u),
        "`sample` must be a function of the parameters and of uniforms, got AttributeError",
    ),
    "sample of all records": (
        lambda: summed(lambda p, u: np.sort(p.mean + p.sd * ndtri(u), axis=-1)),
        "`sample` must work entry by entry, on one record as on many",
    ),
    "sample of another shape": (
        lambda: summed(lambda p, u: (p.mean + p.sd * ndtri(u)).ravel()),
        "`sample` must return real numbers, one for each record, got ndarray of float64",
    ),
    "sample of no numbers": (
        lambda: summed(lambda p, u: {"x": u}),
        "`sample` must return real numbers, one for each record, got dict of object",
    ),
    "sample of one record": (lambda: summed(lambda p, u: 1.0), "`sample` must draw records of the"),
    "sample that changes parameters": (
        lambda: summed(lambda p, u: p.mean.__iadd__(1) + u),
        "got ValueError: output array is read-only",
    ),
    "sample without a signature": (lambda: summed(max), "`sample` must be a function of the"),
    "values of two columns": (
        lambda: counted(values=[[0, 1]]),
        "of shape (v, 1), got shape (1, 2)",
    ),
    "values twice": (lambda: counted(values=[0, 1, 1]), "`values` must be different records"),
    "values text": (lambda: counted(values=["no", "yes"]), "of shape (v, 1), got others"),
    "values of several lengths": (lambda: counted(values=[0, [1]]), "of shape (v, 1), got others"),
    "values none": (lambda: counted(values=np.ones((0, 1))), "of shape (v, 1), got shape (0, 1)"),
    "values that are too few": (
        lambda: counted(
            model=dpmc.model(log_share, {"share": priors.uniform(0, 1e-9)}, num_columns=1),
            values=[1],
        ),
        "`values` must be all records that the model has",
    ),
    "probabilities beyond 1": (
        lambda: counted(values=[0, 1, 0.5]),
        "log-likelihoods whose exponentials add up to at most 1 over `values`",
    ),
    "statistic of two numbers": (
        lambda: counted(release(statistic=lambda x: (x, x))),
        "`statistic` must return 1 numbers, as `value` has, got 2",
    ),
    **{
        f"statistic of {label}": (
            lambda statistic=statistic: counted(release(statistic=statistic, mechanism=LAPLACE)),
            "`statistic` must return real numbers, one for each record, got ",
        )
        for label, statistic in {
            "no number": lambda x: None,
            "texts": lambda x: x.astype(str),
            "complex numbers": lambda x: x * 1j,
            "masked numbers": lambda x: np.ma.masked_equal(x, 0),
            "another shape": np.ravel,
            "one more axis": lambda x: x[..., None],
            "several lengths": lambda x: ([0, [1]],),
        }.items()
    },
    **{
        f"statistic of all records: {label}": (
            lambda statistic=statistic: counted(release(statistic=statistic, mechanism=LAPLACE)),
            "`statistic` must work entry by entry, on one record as on many",
        )
        for label, statistic in {
            "mean": np.mean,
            "deviation": lambda x: x - x.mean(axis=-1, keepdims=True),
            "sum before": lambda x: np.cumsum(x, axis=-1),
            "rank": lambda x: x.argsort(axis=-1),
            "largest": lambda x: np.full(x.shape, x.max()),
            "number": len,
            "random": lambda x: x + np.random.default_rng().normal(size=x.shape),
        }.items()
    },
    "statistic without a bound": (
        lambda: counted(release(statistic=np.log, mechanism=LAPLACE)),
        "`statistic` must be finite for each record, got others",
    ),
    "statistic without a value": (
        lambda: summed(
            lambda p, u: p.mean + p.sd * ndtri(u), release(3.0, np.sqrt, LAPLACE), method="auto"
        ),
        "`statistic` must be finite for each record, got others",
    ),
    "statistic that changes rows": (
        lambda: counted(release(statistic=lambda x: x.__imul__(0), mechanism=LAPLACE)),
        "`statistic` must be a function of 1 columns, got ValueError: output array is read-only",
    ),
    "statistic of two columns": (
        lambda: counted(release(statistic=lambda x, y: x)),
        "`statistic` must be a function of 1 columns, got TypeError",
    ),
    "statistic no integer": (
        lambda: counted(release(statistic=lambda x: x / 2)),
        "`statistic` must be integers for geometric, got others",
    ),
    "method array": (lambda: counted(method=np.ones(2)), "`method` must be one of 'auto', "),
    "seed -1": (lambda: counted(seed=-1), "`seed` must be at least 0, got -1"),
    "method typo": (lambda: counted(method="exact"), "`method` must be one of 'auto', "),
    "enumeration of sums": (
        lambda: summed(lambda p, u: p.mean + p.sd * ndtri(u), method="enumeration"),
        "`method` 'enumeration' must have counts of disjoint `values`",
    ),
    "guarantee text": (lambda: counted(guarantee="(1, 0)"), "`guarantee` must be a dpmc.Guarantee"),
    "chains 4": (lambda: counted(num_chains=4), "`num_chains` must be an integer of at least 8"),
    "chains odd": (lambda: counted(num_chains=13), "`num_chains` must be even, got 13"),
    "draws 0": (lambda: counted(num_draws=0), "`num_draws` must be an integer of at least 1"),
    "seed text": (lambda: counted(seed="1"), "`seed` must be an integer or None"),
    "progress 1": (lambda: counted(progress=1), "`progress` must be True or False"),
    "value far beyond n": (lambda: counted(release(10_000), n=10), OK),
    "value far below 0": (lambda: counted(release(-500)), OK),
    "impossible": (
        lambda: summed(lambda p, u: p.mean * u * math.nan),
        "`releases` must be possible under the model",
    ),
    "answers": (lambda: counted(release(40, mechanism=ANSWERS)), OK),
    "answers beyond n": (
        lambda: counted(release(140, mechanism=ANSWERS)),
        "`value` must be numbers of answers that add up to n = 100",
    ),
    "answers in part": (
        lambda: counted(release(40.5, mechanism=ANSWERS)),
        "`value` must be numbers of answers that add up to n = 100",
    ),
    "answers and noise": (
        lambda: counted([release(40, mechanism=ANSWERS), release()]),
        "`releases` must be a single one with randomised response",
    ),
    "answers of no category": (
        lambda: counted(release(40, lambda x: 2 * x, ANSWERS)),
        "`statistic` must be 1 for the category of a record",
    ),
    "answers drawn": (
        lambda: counted(release(40, mechanism=ANSWERS), method="normal"),
        "`method` must be 'enumeration' of answers, got 'normal'",
    ),
}
CALLS = labelled({"mechanism": MECHANISMS, "release": RELEASES, "way in": WAYS_IN})


@pytest.mark.parametrize("label", CALLS)
def test_what_is_wrong_is_said_in_one_line(label: str) -> None:
    judge(*CALLS[label])
