"""Every way to call `fit`, `Model` and `Budget` wrongly, and what is said of it.

A call is refused in one line that is asked for here word by word where it matters, or accepted
because it means one thing only. Nothing ends in a traceback of another library.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpmc
from dpmc.models import logistic
from dpmc.types import Budget
from tests.support.bad_input import OK, judge, labelled

N, D = 60, 3
ROWS = np.column_stack(
    [np.random.default_rng(1).normal(size=(N, D)), np.random.default_rng(2).integers(0, 2, N)]
)
MODEL = logistic.build(logistic.Params(D, intercept=False, row_norm=None))
PENALTY = {"proposal_sd": 0.01, "ratio_noise_multiplier": 30.0, "ratio_clip_bound": 5.0}
HMC = {
    "step_size": 0.01,
    "num_leapfrog_steps": 2,
    "ratio_noise_multiplier": 30.0,
    "gradient_noise_multiplier": 30.0,
    "gradient_clip_bound": 1.0,
    "ratio_clip_bound": 5.0,
}
SGLD = {"gradient_clip_bound": 1.0, "step_size": 1e-4}


def run(method="dp_penalty", model=MODEL, rows=ROWS, **changes):
    """Fit with three iterations of one method, but for what is changed."""
    settings = {"epsilon": 4, "delta": 1e-5, "num_chains": 2, "max_iterations": 3, "seed": 1}
    params = PENALTY if method == "dp_penalty" else {}
    given = {**settings, "progress": False, **params, **changes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpmc.PosteriorWarning)
        warnings.filterwarnings("error", category=RuntimeWarning)
        return dpmc.fit(
            model, rows, method=method, **{k: v for k, v in given.items() if v is not Ellipsis}
        )


def mean_ll(theta, z):
    return -0.5 * (z[0] - theta[0]) ** 2


def mean_gradient(theta, z):
    return (z[0] - theta[0],)


def own(**changes):
    """Return a model of a mean in one dimension, but for what is changed."""
    given = {
        "name": "own",
        "dim": 1,
        "log_likelihood": mean_ll,
        "gradient": mean_gradient,
        "log_prior": lambda theta: float(-0.5 * theta[0] ** 2),
        "log_prior_gradient": lambda theta: -theta,
    }
    given |= changes
    return dpmc.Model(**{k: v for k, v in given.items() if v is not Ellipsis})


ONE = ROWS[:, :1]


def run_own(rows=ONE, **changes):
    return run(model=own(**changes), rows=rows)


def text_ll(theta, z):
    return "a"


def nan_ll(theta, z):
    return math.nan


def tuple_ll(theta, z):
    return (1.0, 2.0)


def importing_ll(theta, z):
    import json

    return -0.5 * (z[0] - theta[0]) ** 2 * json.loads("1")


def importing_gradient(theta, z):
    import json

    return ((z[0] - theta[0]) * json.loads("1"),)


def one_argument(theta):
    return theta[0]


def numpy_ll(theta, z):
    return -0.5 * np.sum(np.array([z[0] - theta[0]]) ** 2)


def scalar_gradient(theta, z):
    return z[0] - theta[0]


def list_gradient(theta, z):
    return [z[0] - theta[0]]


def array_gradient(theta, z):
    return np.array([z[0] - theta[0]])


def wrong_sign(theta, z):
    return (theta[0] - z[0],)


HUGE = np.full((N, D + 1), 1e308)
HUGE[:, -1] = 1.0
FRAME = pd.DataFrame(ROWS, columns=list("abcd"))

EPSILON = "`epsilon` must be positive and finite, got "
DELTA = "`delta` must be in (0, 1)"
METHODS = "`method` must be one of "

BUDGETS = {
    "epsilon 0": (lambda: run(epsilon=0), EPSILON + "0"),
    "epsilon -1": (lambda: run(epsilon=-1), EPSILON + "-1"),
    "epsilon text": (lambda: run(epsilon="4"), EPSILON + "'4'"),
    "epsilon nan": (lambda: run(epsilon=math.nan), EPSILON + "nan"),
    "epsilon inf": (lambda: run(epsilon=math.inf), EPSILON + "inf"),
    "epsilon None": (lambda: run(epsilon=None), "`epsilon` must be a number for dp_penalty"),
    "epsilon None, auto": (lambda: dpmc.fit(MODEL, ROWS, delta=1e-5), EPSILON + "None"),
    "epsilon float32": (lambda: run(epsilon=np.float32(4)), OK),
    "epsilon int64": (lambda: run(epsilon=np.int64(4)), OK),
    "epsilon flag": (lambda: run(epsilon=True), EPSILON + "True"),
    "epsilon NumPy flag": (lambda: run(epsilon=np.True_), EPSILON + "np.True_"),
    "epsilon list": (lambda: run(epsilon=[1, 4]), EPSILON + "[1, 4]"),
    "epsilon array": (lambda: run(epsilon=np.array([1.0, 4.0])), EPSILON + "array([1., 4.])"),
    "epsilon complex": (lambda: run(epsilon=4 + 0j), EPSILON + "(4+0j)"),
    "epsilon huge": (lambda: run(epsilon=500), OK),
    "delta 0": (lambda: run(delta=0), DELTA),
    "delta 1": (lambda: run(delta=1), DELTA),
    "delta nan": (lambda: run(delta=math.nan), DELTA),
    "delta text": (lambda: run(delta="1e-5"), DELTA + ", got '1e-5'"),
    "delta flag": (lambda: run(delta=True), DELTA + ", got True"),
    "delta None": (lambda: run(delta=None), "`delta` must be a number for dp_penalty"),
    "delta 1/n": (lambda: run(delta=1 / N), OK),  # with a warning: see below
    "delta 0.5": (lambda: run(delta=0.5), OK),
    "Budget accountant no text": (
        lambda: Budget(4, 1e-5, None),
        "`accountant` must be the name of an accountant, got None",
    ),
    "no budget, num_iterations": (
        lambda: run(epsilon=None, delta=None, max_iterations=None, num_iterations=10),
        "`epsilon` must be a number for dp_penalty",
    ),
    "hmc with epsilon": (
        lambda: run("hmc", max_iterations=None, step_size=0.1, num_leapfrog_steps=2),
        "`epsilon` must be None for hmc, which has no privacy guarantee, got 4",
    ),
    "accountant typo": (lambda: run(accountant="rdpp"), "`accountant` must be one of "),
    "accountant that is too small": (
        lambda: run(accountant="rdp_truncated"),
        "`accountant` must be one of barker_pld, barker_rdp, ",
    ),
    "accountant pld": (lambda: run(accountant="pld"), OK),
}

ARGUMENTS = {
    "method typo": (lambda: run("dp_penality"), METHODS),
    "method None": (
        lambda: dpmc.fit(MODEL, ROWS, method=None),
        "must have Params, releases and sampler",
    ),
    "method capitals": (lambda: run("DP_PENALTY"), METHODS),
    "method nuts": (lambda: run("nuts"), METHODS),
    "parameter typo": (lambda: run(proposal_std=1), "(did you mean proposal_sd?)"),
    "parameter None": (lambda: run(proposal_sd=None), "`proposal_sd` must be "),
    "multiplier float32": (lambda: run(ratio_noise_multiplier=np.float32(30)), OK),
    "multiplier int64": (lambda: run(ratio_noise_multiplier=np.int64(30)), OK),
    "multiplier array of one": (lambda: run(ratio_noise_multiplier=np.array(30.0)), OK),
    "proposal of other length": (
        lambda: run(proposal_sd=[1, 2]),
        "`proposal_sd` must have 1 or 3 entries, got 2",
    ),
    "chains 0": (lambda: run(num_chains=0), "`num_chains` must be an integer of at least 1"),
    "chains int64": (lambda: run(num_chains=np.int64(2)), OK),
    "chains flag": (lambda: run(num_chains=True), "`num_chains` must be an integer"),
    "draws int64": (
        lambda: dpmc.fit(MODEL, ROWS, epsilon=4, delta=1e-5, num_draws=np.int64(5)),
        OK,
    ),
    "draws 2.0": (
        lambda: dpmc.fit(MODEL, ROWS, epsilon=4, delta=1e-5, num_draws=2.0),
        "`num_draws` must be an integer of at least 1, got 2.0",
    ),
    "max_iterations 0": (lambda: run(max_iterations=0), "`max_iterations` must be an integer"),
    "max_iterations text": (lambda: run(max_iterations="5"), "`max_iterations` must be an integer"),
    "max_iterations int64": (lambda: run(max_iterations=np.int64(5)), OK),
    "num_iterations beside a budget": (
        lambda: run(num_iterations=10),
        "`num_iterations` must be None",
    ),
    "seed text": (lambda: run(seed="1"), "`seed` must be an integer or None, got '1'"),
    "seed generator": (lambda: run(seed=np.random.default_rng(1)), "`seed` must be an integer"),
    "seed -1": (lambda: run(seed=-1), OK),
    "seed int64": (lambda: run(seed=np.int64(1)), OK),
    "start of other shape": (
        lambda: run(start=[0.0, 0.0]),
        "`start` must be finite, of shape (3,)",
    ),
    "start nan": (lambda: run(start=[0.0, math.nan, 0.0]), "`start` must be finite"),
    "start text": (lambda: run(start=["a", "b", "c"]), "`start` must be numbers"),
    "start complex": (lambda: run(start=[0j, 0j, 0j]), "`start` must be numbers"),
    "start masked": (lambda: run(start=np.ma.zeros(3)), "`start` must be numbers"),
    "start list": (lambda: run(start=[0.0, 0.0, 0.0]), OK),
    "noise typo": (lambda: run(noise="discreet"), "`noise` must be 'continuous' or 'discrete'"),
    "diagnostics typo": (lambda: run(diagnostics="all"), "`diagnostics` must be one of "),
    "invalid_rows typo": (lambda: run(invalid_rows="drop"), "`invalid_rows` must be 'refuse'"),
    "diagnostics typo, auto": (
        lambda: dpmc.fit(MODEL, ROWS, epsilon=4, delta=1e-5, diagnostics="all"),
        "`diagnostics` must be left out for the automatic method, which chooses it, or given ",
    ),
    "parameter of a method, auto": (
        lambda: dpmc.fit(MODEL, ROWS, epsilon=4, delta=1e-5, gradient_clip_bound=5),
        "`gradient_clip_bound` must be left out for the automatic method, which chooses it, or ",
    ),
    "option typo, auto": (
        lambda: dpmc.fit(MODEL, ROWS, epsilon=4, delta=1e-5, num_drws=5),
        "`num_drws` must be an argument of dpmc.fit (did you mean num_draws?)",
    ),
    "draws beside a method": (
        lambda: run(num_draws=5),
        "`num_draws` must be left out beside a `method`, whose draws are its iterations",
    ),
    "progress text": (lambda: run(progress="no"), "`progress` must be True or False, got 'no'"),
    "threads": (lambda: run(num_threads=0), "`num_threads` must be an integer of at least 1"),
    "proposal of too many scales": (
        lambda: run(proposal_sd=[1, 2]),
        "`proposal_sd` must have 1 or 3",
    ),
    "budget of no iteration": (lambda: run(epsilon=1e-3), "`epsilon` must be at least 0."),
    "mass that is not positive": (lambda: run("dp_hmc", **HMC, mass=-1.0), "`mass` must be a "),
    "jitter typo": (
        lambda: run("dp_hmc", **HMC, jitter="some"),
        "`jitter` must be 'halton' or 'none'",
    ),
    "Barker noise variance": (
        lambda: run("dp_barker", proposal_sd=0.1, batch_size=10, noise_variance=3.3),
        "`noise_variance` must be positive and below pi^2/3 = 3.2899",
    ),
    "accountant of another noise": (
        lambda: run("dp_sgld", accountant="gaussian", batch_size=9, **SGLD),
        "sampled_gaussian",
    ),
    "names too few": (lambda: run(names=["a"]), "`names` must be 3 different names"),
    "names a text": (lambda: run(names="abc"), "`names` must be 3 different names"),
    "clip bound missing": (
        lambda: run(ratio_clip_bound=None),
        "`ratio_clip_bound` must be positive, got None (model 'logistic' declares no Lipschitz",
    ),
    "mass of other shape": (lambda: run("dp_hmc", **HMC, mass=[1.0, 2.0]), "`mass` must "),
    "mass text": (lambda: run("dp_hmc", **HMC, mass="a"), "`mass` must "),
    "batch larger than the rows": (
        lambda: run("dp_sgld", batch_size=1_000_000, gradient_clip_bound=1.0, step_size=1e-4),
        "`batch_size` must be ",
    ),
    "Barker clip scale": (
        lambda: run("dp_barker", proposal_sd=0.1, batch_size=10, clip_scale=3.0),
        "`clip_scale` must be ",
    ),
    "model a name": (
        lambda: run(model="logistic"),
        "`model` must be a dpmc.Model, got 'logistic'",
    ),
    "model and rows swapped": (
        lambda: run(model=ROWS, rows=MODEL),
        "`model` must be a dpmc.Model, got ndarray",
    ),
}

NUMBERS = "data 'data': must be real numbers, got others"
COLUMN = "data 'data': column 'a' must hold real numbers, got others"
DATA = {
    "one dimension": (lambda: run(rows=ROWS[:, 0]), "`x` must have rows and columns, got shape"),
    "list of lists": (lambda: run(rows=ROWS.tolist()), OK),
    "Dataset of integers": (
        lambda: run(rows=dpmc.Dataset("d", np.ones((N, D + 1), dtype=np.int64))),
        OK,
    ),
    "flags": (lambda: run(rows=ROWS > 0), OK),
    "text": (lambda: run(rows=np.full((N, D + 1), "a")), NUMBERS),
    "numbers as text": (lambda: run(rows=np.full((N, D + 1), "1")), NUMBERS),
    "nan": (lambda: run(rows=np.where(ROWS[3, 1] == ROWS, np.nan, ROWS)), "finite numbers only"),
    "inf": (lambda: run(rows=np.where(ROWS[3, 1] == ROWS, np.inf, ROWS)), "finite numbers only"),
    "an empty cell": (
        lambda: run(rows=np.where(ROWS[3, 1] == ROWS, None, ROWS)),
        "column 1 must hold finite numbers only",
    ),
    "no rows": (lambda: run(rows=ROWS[:0]), "`x` must have rows and columns, got shape (0, 4)"),
    "one row": (lambda: run(rows=ROWS[:1]), OK),
    "a column too many": (
        lambda: run(rows=np.column_stack([ROWS, ROWS[:, 0]])),
        "`data` must have 4 columns for model 'logistic', got 5",
    ),
    "a column too few": (
        lambda: run(rows=ROWS[:, 1:]),
        "`data` must have 4 columns for model 'logistic', got 3",
    ),
    "three dimensions": (lambda: run(rows=ROWS[None]), "`x` must have rows and columns"),
    "float32": (lambda: run(rows=ROWS.astype(np.float32)), OK),
    "complex": (lambda: run(rows=ROWS.astype(complex)), NUMBERS),
    "Dataset complex": (
        lambda: dpmc.Dataset("d", ROWS.astype(complex)),
        "data 'd': must be real numbers, got others",
    ),
    "1e308": (lambda: run(rows=HUGE), OK),
    "Dataset of 1e308": (lambda: run(rows=dpmc.Dataset("d", HUGE)), OK),
    "1e308, discrete noise": (lambda: run(rows=HUGE, noise="discrete"), OK),
    "1e308, HMC": (lambda: run("dp_hmc", rows=HUGE, **HMC), OK),
    "1e308, auto": (lambda: dpmc.fit(MODEL, HUGE, epsilon=4, delta=1e-5, num_draws=5), OK),
    "pandas": (lambda: run(rows=FRAME), OK),
    "pandas, integers and flags": (
        lambda: run(rows=FRAME.assign(a=1, b=True)),
        OK,
    ),
    "pandas with text": (lambda: run(rows=FRAME.assign(a="x")), COLUMN),
    "pandas with numbers as text": (lambda: run(rows=FRAME.assign(a="1")), COLUMN),
    "pandas with dates": (
        lambda: run(rows=FRAME.assign(a=pd.Timestamp("2020-01-01"))),
        COLUMN,
    ),
    "pandas with categories": (
        lambda: run(rows=FRAME.assign(a=pd.Categorical(["x", "y"] * (N // 2)))),
        COLUMN,
    ),
    "pandas with a missing number": (
        lambda: run(rows=FRAME.assign(a=pd.array([1.5, pd.NA] * (N // 2), dtype="Float64"))),
        "data 'data': column 'a' must hold finite numbers only, unless `invalid_rows` is 'zero'",
    ),
    "pandas with a missing number, as nothing": (
        lambda: run(
            rows=FRAME.assign(a=pd.array([1.5, pd.NA] * (N // 2), dtype="Float64")),
            invalid_rows="zero",
        ),
        OK,
    ),
    "pandas series": (lambda: run(rows=FRAME["a"]), "`x` must have rows and columns"),
    "polars": (lambda: run(rows=pl.DataFrame(ROWS)), OK),
    "polars with text": (
        lambda: run(rows=pl.DataFrame({"a": ["x"] * N, "b": [1.0] * N})),
        COLUMN,
    ),
    "a pair of x and y": (
        lambda: run(rows=(ROWS[:, :3], ROWS[:, 3])),
        "data 'data': must be rows of equal length, got tuple",
    ),
    "None": (lambda: run(rows=None), "data 'data': must be rows of numbers, got None"),
    "a path": (
        lambda: run(rows="data.csv"),
        "`data` must be rows in memory for a method of your choice",
    ),
    "masked": (lambda: run(rows=np.ma.masked_array(ROWS)), "got a masked one"),
    "a model": (lambda: run(rows=MODEL), "data 'data': must be rows of numbers, got Model"),
    "Dataset of a list": (lambda: run(rows=dpmc.Dataset("d", ROWS.tolist())), OK),
    "Dataset bounds nan": (
        lambda: dpmc.Dataset("d", ROWS, bounds={"row_norm": math.nan}),
        "bound 'row_norm' must be a finite number, got nan",
    ),
    "Dataset bounds text": (
        lambda: dpmc.Dataset("d", ROWS, bounds={"row_norm": "8"}),
        "bound 'row_norm' must be a finite number, got '8'",
    ),
    "Dataset bounds list": (lambda: dpmc.Dataset("d", ROWS, bounds=[8]), "`bounds` must be "),
}

DIM = "`dim` must be an integer of at least 1, got "
MODELS = {
    "dim 0": (lambda: own(dim=0), DIM + "0"),
    "dim text": (lambda: own(dim="4"), DIM + "'4'"),
    "dim int64": (lambda: run_own(dim=np.int64(1)), OK),
    "lipschitz text": (lambda: own(lipschitz="3"), "`lipschitz` must be positive"),
    # Which rows are admissible is not known, and rows are clipped whatever they are.
    "lipschitz too small": (lambda: run_own(lipschitz=0.001), OK),
    "lipschitz too small for rows of a known norm": (
        lambda: run_own(rows=dpmc.Dataset("d", ONE, bounds={"row_norm": 3.0}), lipschitz=0.001),
        "`lipschitz` must be at least",
    ),
    "tempering text": (lambda: own(tempering="1"), "`tempering` must be in (0, 1], got '1'"),
    "name no text": (lambda: own(name=None), "`name` of a model must be a text, got None"),
    "log_likelihood None": (
        lambda: own(log_likelihood=None),
        "model 'own': `log_likelihood` must be a function, got None",
    ),
    "gradient a number": (
        lambda: own(gradient=3),
        "model 'own': `gradient` must be a function, got 3",
    ),
    "log_prior None": (
        lambda: own(log_prior=None),
        "model 'own': `log_prior` must be a function, got None",
    ),
    "features text": (
        lambda: own(features="x"),
        "model 'own': `features` must be a function or None, got 'x'",
    ),
    "dim of too many": (lambda: run_own(dim=3), "must have 3 components, got 1"),
    "dim of far too many": (lambda: run_own(dim=100_000), "must have 100000 components, got 1"),
    "gradient a scalar": (
        lambda: run_own(gradient=scalar_gradient),
        "`gradient` must return a tuple of 1 numbers",
    ),
    "gradient a list": (lambda: run("dp_hmc", own(gradient=list_gradient), ONE, **HMC), OK),
    "gradient an array": (lambda: run("dp_hmc", own(gradient=array_gradient), ONE, **HMC), OK),
    "gradient of the wrong sign": (
        lambda: run_own(gradient=wrong_sign),
        "`gradient` must be that of log_likelihood",
    ),
    "log_likelihood with NumPy": (lambda: run_own(log_likelihood=numpy_ll), OK),
    "log_likelihood text": (lambda: run_own(log_likelihood=text_ll), "could not convert"),
    "log_likelihood nan": (lambda: run_own(log_likelihood=nan_ll), "is finite on no probe"),
    "log_likelihood tuple": (lambda: run_own(log_likelihood=tuple_ll), "`log_likelihood` must "),
    "log_likelihood that imports": (lambda: run_own(log_likelihood=importing_ll), "do not compile"),
    "gradient that imports, in batches": (
        lambda: run(
            "dp_sgld",
            own(gradient=importing_gradient),
            ONE,
            batch_size=2,
            gradient_clip_bound=1.0,
            step_size=1e-6,
        ),
        "do not compile",
    ),
    "log_likelihood of one argument": (
        lambda: run_own(log_likelihood=one_argument),
        "takes 1 positional argument but 2 were given",
    ),
    "log_prior array": (
        lambda: run_own(log_prior=lambda theta: -0.5 * np.array([1.0, 2.0])),
        "`log_prior` must return a number",
    ),
    "log_prior array of one": (lambda: run_own(log_prior=lambda theta: -0.5 * theta**2), OK),
    "log_prior gradient scalar": (
        lambda: run(
            model=dpmc.Model(
                "plane",
                2,
                lambda t, z: -0.5 * ((z[0] - t[0]) ** 2 + (z[1] - t[1]) ** 2),
                lambda t, z: (z[0] - t[0], z[1] - t[1]),
                lambda t: -0.5 * float(t @ t),
                lambda t: -t[0],
            ),
            rows=ROWS[:, :2],
        ),
        "`log_prior_gradient` must return 2 finite numbers at the start, got shape ()",
    ),
    "log_prior nan": (
        lambda: run_own(log_prior=lambda theta: math.nan),
        "`log_prior` must be a number at the start",
    ),
    "log_prior -inf at the start": (
        lambda: run_own(log_prior=lambda theta: -math.inf if theta[0] <= 0 else 0.0),
        "`start` must be where the prior has density",
    ),
}

CALLS = labelled({"budget": BUDGETS, "argument": ARGUMENTS, "data": DATA, "model": MODELS})


@pytest.mark.parametrize("label", CALLS)
def test_a_call_is_refused_in_one_line_or_accepted(label):
    call, message = CALLS[label]
    result = judge(call, message)
    if message is OK:
        assert isinstance(result, dpmc.Fit)
        assert result.draws is not None
        assert np.isfinite(result.draws).all()


def test_a_forgotten_function_is_named_by_python_itself():
    """It is one clear line already, and type checkers see it before anything runs."""
    with pytest.raises(TypeError, match="'log_prior'"):
        own(log_prior=Ellipsis)


def test_a_delta_that_protects_nobody_is_warned_of():
    with pytest.warns(dpmc.PosteriorWarning, match="publishes one row"):
        dpmc.fit(
            MODEL,
            ROWS,
            method="dp_penalty",
            epsilon=4,
            delta=0.5,
            max_iterations=3,
            progress=False,
            **PENALTY,
        )
