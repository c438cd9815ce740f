"""Every way to call the ways in beside `fit` wrongly, and what is said of it.

As :mod:`tests.test_bad_input` for `fit`: one line, or accepted because it means one thing.
"""

from __future__ import annotations

import importlib
import math
import warnings

import numpy as np
import pandas as pd
import pytest

import dpmc
from dpmc import priors, statsel
from dpmc.diagnostics.autocorrelation import ShortChainWarning
from dpmc.ep.mixture.model import MixtureModel
from dpmc.mcmc.methods import dp_penalty
from dpmc.models import logistic
from tests.support.bad_input import OK, judge, labelled

N, D = 60, 3
RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(N, 2)), RNG.normal(size=N)
ROWS = np.column_stack([RNG.normal(size=(N, D)), RNG.integers(0, 2, N)])
ONE = ROWS[:, :1]
MODEL = logistic.build(logistic.Params(D, intercept=False))
MIXTURE = MixtureModel.isotropic(1.0, [[0.0, 0.0], [3.0, 3.0]], precision=0.1)
NORMAL = statsel.population("normal_variance", bound=10.0)
ABSOLUTE, SQUARE = statsel.statistic("abs_1"), statsel.statistic("abs_2")
LAPLACE = statsel.mechanism("laplace")
RECORDS = NORMAL.draw(2.0, np.random.default_rng(1), 100)


def compared(methods, rows=ROWS, **more):
    given = {"epsilon": 4, "delta": 1e-5, "num_draws": 5, "progress": False, **more}
    return next(iter(dpmc.compare(MODEL, rows, methods, **given).fits.values()))


LABELS = "`methods` must have a mapping of arguments for each label, which is a text, got "
HOLED = np.where(np.arange(N)[:, None] == 3, np.nan, ROWS)
COMPARISONS = {
    "no methods": (lambda: compared([]), "`methods` must name at least one method, got none"),
    "methods a text": (lambda: compared("auto"), "`methods` must be a list of methods, or what "),
    "the same twice": (
        lambda: compared(["auto", "auto"]),
        "`methods` must have different names, or be a mapping whose labels differ, got auto, auto",
    ),
    "a label without arguments": (lambda: compared({"auto": None}), LABELS + "'auto': None"),
    "a label that is a number": (lambda: compared({1: {}}), LABELS + "1: {}"),
    "an epsilon of one method": (
        lambda: compared({"auto": {"epsilon": 2}}),
        "`epsilon` must be given once, for all methods, got one of auto",
    ),
    "a second method that is none": (lambda: compared(["auto", "nope"]), "`method` must be one of"),
    "names too few": (lambda: compared(["auto"], names=["a"]), "`names` must be 3 different names"),
    "an option that none has": (
        lambda: compared(["auto"], max_iterations=5),
        "`max_iterations` must be left out for the automatic method",
    ),
    "options of two kinds": (
        lambda: compared(["auto", "dp_penalty"], max_iterations=5, diagnostics="none"),
        OK,
    ),
    "rows that are not finite": (lambda: compared(["auto"], HOLED), "finite numbers only"),
    "rows that count as zero": (lambda: compared(["auto"], HOLED, invalid_rows="zero"), OK),
}


def raising(p, row):
    raise KeyError("two\nlines")


def level(p, row):
    return -0.5 * (row[0] - p.level) ** 2


def modelled(log_likelihood=level, parameters=Ellipsis, **more):
    named = {"level": priors.normal(0, 10)} if parameters is Ellipsis else parameters
    model = dpmc.model(log_likelihood, named, **{"num_columns": 1, **more})
    return dpmc.fit(model, ONE, epsilon=4, delta=1e-5, num_draws=5, progress=False)


NAMED = "model 'level': a parameter must have a name of Python, without an underscore in front"
PRIORS = "model 'level': `priors` must be a mapping of names to priors of dpmc.priors, got "
TRACED = {
    "a function that is none": (
        lambda: modelled(None),
        "model 'model': `log_likelihood` must be a function, got None",
    ),
    "a function that raises": (
        lambda: modelled(raising),
        "`raising` must be a function of the parameters and of one row, got KeyError: 'two",
    ),
    "a function": (lambda: modelled(), OK),
    "more columns than it reads": (
        lambda: dpmc.fit(
            dpmc.model(level, {"level": priors.normal(0, 10)}, num_columns=1),
            ROWS[:, :2],
            epsilon=4,
            delta=1e-5,
        ),
        "`data` must have 1 columns for model 'level', got 2",
    ),
    "more columns in a plan": (
        lambda: dpmc.plan(
            dpmc.model(level, {"level": priors.normal(0, 10)}, num_columns=1),
            (100, 2),
            epsilon=4,
            delta=1e-5,
        ),
        "`shape[1]` must be 1, the columns of model 'level', got 2",
    ),
    "priors a list": (lambda: modelled(parameters=[priors.normal()]), PRIORS + "list"),
    "priors None": (lambda: modelled(parameters=None), PRIORS + "NoneType"),
    "priors none": (lambda: modelled(parameters={}), PRIORS + "none"),
    "a prior that is a number": (
        lambda: modelled(parameters={"level": 1.0}),
        "model 'level': `level` must be of dpmc.priors, got float",
    ),
    "a name that is a keyword": (lambda: modelled(parameters={"if": priors.normal()}), NAMED),
    "normal mean text": (lambda: priors.normal("0", 1), "`mean` must be a finite number, got '0'"),
    "uniform text": (lambda: priors.uniform("a", 1), "`low` must be a finite number, got 'a'"),
    "uniform reversed": (lambda: priors.uniform(1, 0), "`low` must be below `high`, got 1 and 0"),
    "dirichlet number": (
        lambda: priors.dirichlet(1.0),
        "`concentrations` must be a number for each share, got 1.0",
    ),
}

FIT = dpmc.Fit(
    np.zeros((1, 40, 3)),
    {},
    {},
    "complete",
    (),
    dpmc.Guarantee(1.0, 1e-6),
    dpmc.types.Plan(likelihood={"name": "linear", "intercept": False}),
)


def doors(y=Y, x=X, **more):
    settings = {"epsilon": 1.0, "delta": 1e-6, "num_draws": 20, "seed": 1, "progress": False}
    return dpmc.regression(x, y, **{**settings, **more})


def mixed(model=MIXTURE, **more):
    settings = {"epsilon": 5.0, "delta": 1e-5, "num_passes": 1, "num_draws": 5, "seed": 1}
    return dpmc.mixture(X, model, **{**settings, "progress": False, **more})


def networked(**more):
    settings = {"epsilon": 9.0, "delta": 1e-5, "x_range": (-1, 1), "y_range": (-1, 1), "seed": 1}
    lengths = {"hidden": 2, "num_passes": 1, "num_draws": 5, "progress": False}
    return dpmc.network(X, Y, **{**settings, **lengths, **more})


def added(data, size, rng):
    return data + rng.laplace(size=size)


def raised(data):
    raise KeyError("no")


def audited(mechanism=added, **more):
    return dpmc.audit(mechanism, 0.0, 1.0, **{"num_runs": 400, "seed": 1, **more})


def selected(x=RECORDS, mechanism=LAPLACE, **more):
    settings = {"epsilon": 5.0, "theta": 2.0, "prior": (0.0, 100.0), "num_draws": 60, "seed": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortChainWarning)
        return dpmc.select_statistic(
            x, NORMAL, [ABSOLUTE, SQUARE], mechanism, **{**settings, "progress": False, **more}
        )


RANGE = "`x_range` must be "
LABELS = np.where(Y > 0, 1.0, -1.0)
WAYS_IN = {
    "regression": (lambda: doors(), OK),
    "regression, intercept text": (
        lambda: doors(intercept="yes"),
        "`intercept` must be True or False, got 'yes'",
    ),
    "regression, y None": (
        lambda: doors(None),
        "`y` must be one response for each of 60 rows, got None",
    ),
    "regression, labels of -1": (
        lambda: doors(LABELS, likelihood="logistic"),
        "`y` must be 0 or 1 with likelihood 'logistic', unless `invalid_rows` is 'zero'",
    ),
    "regression, labels as flags": (lambda: doors(Y > 0, likelihood="logistic"), OK),
    "regression, labels that count as zero": (
        lambda: doors(LABELS, likelihood="logistic", invalid_rows="zero"),
        OK,
    ),
    "regression, counts below 0": (
        lambda: doors(likelihood="poisson"),
        "`y` must be at least 0 with likelihood 'poisson'",
    ),
    "regression, names a text": (lambda: doors(names="abc"), "`names` must be 3 different names"),
    "regression, likelihood typo": (
        lambda: doors(likelihood="probit"),
        "`likelihood` must be one of",
    ),
    "regression, names in levels": (
        lambda: doors(x=pd.DataFrame(X, columns=pd.MultiIndex.from_product([["a"], ["b", "c"]]))),
        "one text or integer for the name of each column, got several, as of a MultiIndex",
    ),
    "regression, one column": (lambda: doors(x=X[:, 0]), "got shape (60,): give one column as x[:"),
    "regression, texts": (
        lambda: doors(x=pd.DataFrame({"sex": ["f", "m"] * 30})),
        "column 'sex' must hold real numbers, got others: a formula of dpmc.regression declares",
    ),
    "regression, categories": (
        lambda: doors(x=pd.DataFrame({"sex": pd.Categorical(["f", "m"] * 30)})),
        "got others: a formula of dpmc.regression declares categories, C(name, levels=",
    ),
    "regression, labels as text": (
        lambda: doors(np.where(Y > 0, "yes", "no"), likelihood="logistic"),
        "data 'y': must be real numbers, got others: a formula of dpmc.regression declares",
    ),
    "regression, dates": (
        lambda: doors(x=pd.DataFrame({"day": pd.date_range("2000", periods=60)})),
        "column 'day' must hold real numbers, got others, dates or durations: give numbers",
    ),
    "mixture": (lambda: mixed(), OK),
    "mixture of other columns": (
        lambda: mixed(MixtureModel.isotropic(1.0, [[0.0], [3.0]], precision=0.1)),
        "`rows` must have shape",
    ),
    "mixture, model a text": (
        lambda: mixed("two"),
        "`model` must be a dpmc.ep.mixture.model.MixtureModel, got 'two'",
    ),
    "network": (lambda: networked(), OK),
    "network, range None": (lambda: networked(x_range=None), RANGE + "a lower and an upper end"),
    "network, range a number": (lambda: networked(x_range=1), RANGE + "a lower and an upper end"),
    "network, range reversed": (lambda: networked(x_range=(1, -1)), RANGE + "finite numbers"),
    "network, range of others": (lambda: networked(x_range=([0] * 3, [1] * 3)), RANGE[:-4]),
    "statistic": (lambda: selected(), OK),
    "statistic, records of several lengths": (
        lambda: selected([[1.0], [1.0, 2.0]]),
        "`x` must be rows of equal length",
    ),
    "statistic, method typo": (
        lambda: selected(method="nuts"),
        "`method` must be one of 'auto', 'exact',",
    ),
    "statistic, iterations": (
        lambda: selected(num_iterations=50),
        "`num_iterations` must be left out, since `num_draws` decides it",
    ),
    "statistic, delta text": (lambda: selected(delta="a"), "`delta` must be in (0, 1) for select"),
    "predict": (lambda: FIT.predict(X), OK),
    "predict for no rows": (lambda: FIT.predict(X[:0]), OK),
    "predict for rows of several lengths": (
        lambda: FIT.predict([[1.0], [1.0, 2.0]]),
        "`x` must be rows of equal length",
    ),
    "predict for masked rows": (
        lambda: FIT.predict(np.ma.masked_array(X)),
        "`x` must be an ordinary array",
    ),
    "predict for nan": (lambda: FIT.predict(X * math.nan), "`x` must hold finite numbers only"),
    "predict for one row": (lambda: FIT.predict(X[0]), "`x` must have shape (m, p), got (2,)"),
    "predict for other columns": (lambda: FIT.predict(X[:, :1]), "`x` must have 2 columns, got 1"),
    "predict, seed -1": (
        lambda: FIT.predict(X, seed=-1),
        "`seed` must be an integer of at least 0",
    ),
    "predict for flags and numbers": (
        lambda: FIT.predict(pd.DataFrame({"a": [True, False], "b": [0.1, 0.2]})),
        OK,
    ),
    "predict for a frame with text": (
        lambda: FIT.predict(pd.DataFrame({"a": ["x", "y"], "b": [0.1, 0.2]})),
        "`x`: column 'a' must hold real numbers, got others",
    ),
    "regression on a name": (
        lambda: doors(y="age"),
        "`y` must be one response for each of 60 rows, got the text 'age'",
    ),
    "load what is not there": (
        lambda: dpmc.Fit.load("/no/such/fit.parquet"),
        "/no/such/fit.parquet: must be a file that `Fit.save` wrote, got no file",
    ),
    "load a folder": (
        lambda: dpmc.Fit.load("/tmp"),
        "/tmp: must be a file that `Fit.save` wrote, got a folder",
    ),
    "load a text": (
        lambda: dpmc.Fit.load(__file__),
        "must be a file that `Fit.save` wrote, got a file of another kind",
    ),
    "mixture of a model": (
        lambda: mixed(model=MODEL),
        "`model` must be a dpmc.ep.mixture.model.MixtureModel, such as MixtureModel.isotropic(",
    ),
    "audit of a number": (lambda: audited(3), "`mechanism` must be a function, got int"),
    "audit that never runs": (
        lambda: audited(raised),
        "`mechanism` must return an outcome in some run, got KeyError: 'no' and the like in all",
    ),
    "audit, delta text": (lambda: audited(delta="a"), "`delta` must be in [0, 1), got 'a'"),
    "audit, claim text": (lambda: audited(claim="1"), "`claim` must be a number of at least 0"),
    "audit, seed text": (lambda: audited(seed="x"), "`seed` must be an integer or None, got 'x'"),
    "audit, seed -1": (lambda: audited(seed=-1), OK),
    "audit, runs int64": (lambda: audited(num_runs=np.int64(400)), OK),
    "audit, one outcome for all": (
        lambda: audited(lambda data, size: 1.0),
        "`mechanism` must return ",
    ),
    "audit, a mechanism that stays here": (
        lambda: audited(lambda data, rng: data + rng.laplace(), workers=2),
        "`mechanism` and data must be what `pickle` can send to processes, or `workers` 1, got ",
    ),
    "save to a number": (lambda: FIT.save(3), "`path` must be the path of a file, got 3"),
    "save where no folder is": (
        lambda: FIT.save("/no/such/folder/fit.parquet"),
        "/no/such/folder/fit.parquet: must be a file that can be written, got No such file",
    ),
}

CALLS = labelled({"comparison": COMPARISONS, "traced": TRACED, "ways in": WAYS_IN})


@pytest.mark.parametrize("label", CALLS)
def test_a_call_is_refused_in_one_line_or_accepted(label):
    judge(*CALLS[label])


class Own:
    """A method that counts how often it is run."""

    Params = dp_penalty.Params
    runs = 0

    @staticmethod
    def releases(params, num_rows):
        return dp_penalty.releases(params, num_rows)

    @classmethod
    def sampler(cls, posterior, params):
        cls.runs += 1
        return dp_penalty.sampler(posterior, params)


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_nothing_runs_before_all_methods_of_a_comparison_are_known():
    first = {
        "method": Own,
        "proposal_sd": 0.1,
        "ratio_noise_multiplier": 9.0,
        "ratio_clip_bound": 1.0,
    }
    with pytest.raises(dpmc.DpmcError, match="`method` must be one of"):
        compared({"own": first, "nope": {}}, max_iterations=3)
    with pytest.raises(dpmc.DpmcError, match="`proposl_sd` must be a parameter of dp_penalty"):
        compared({"own": first, "dp_penalty": {"proposl_sd": 0.1}}, max_iterations=3)
    assert Own.runs == 0
    compared({"own": first}, max_iterations=3, num_draws=None)
    assert Own.runs > 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"prior": (100.0, 0.0)},
        {"prior": "x"},
        {"progress": "no"},
        {"foo": 1},
        {"method": "pmmh", "foo": 1},
    ],
)
def test_records_are_not_released_before_the_chain_is_known(wrong, monkeypatch):
    """A release is made once: what it is for has to be right before."""
    made = []
    door = importlib.import_module("dpmc.families.select_statistic")
    release = door.release
    monkeypatch.setattr(door, "release", lambda *a, **k: made.append(1) or release(*a, **k))
    with pytest.raises(dpmc.DpmcError):
        selected(**wrong)
    assert not made
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selected()
    assert made


def test_warnings_name_the_line_of_the_caller(tmp_path):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        doors(likelihood="linear")
        doors(method="dp_penalty", ratio_clip_bound=1.0, num_draws=None, max_iterations=3)
    of_fits = [one for one in told if one.category is dpmc.PosteriorWarning]
    assert len(of_fits) >= 2
    assert {one.filename for one in of_fits} == {__file__}
