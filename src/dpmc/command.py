"""The commands of ``dpmc``: fits of files, plans of them, and audits."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
import warnings
from dataclasses import asdict, fields
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from msgspec import Meta

from dpmc.families.likelihoods import LIKELIHOODS
from dpmc.families.regression import MODELS, regression
from dpmc.fits import Fit
from dpmc.fits.predictive import BINOMIAL
from dpmc.fitting import PosteriorWarning, fit
from dpmc.formulas.design import DROP, Design
from dpmc.planning import plan
from dpmc.privacy.empirical import audit
from dpmc.rows.persons import numbered
from dpmc.shards.arrow_files import ArrowFile
from dpmc.shards.csv_lines import CsvFile
from dpmc.shards.tables import Table, open_table, refuse_missing
from dpmc.shards.units import Column
from dpmc.types import Array, DpmcError, Model, frames, is_name, is_unnamed
from dpmc.yaml_files import Settings, read_typed

Text = Annotated[str, Meta(min_length=1)]
Positive = Annotated[float, Meta(gt=0, description="a number > 0")]
Count = Annotated[int, Meta(ge=1, description="an integer of at least 1")]


# What is given beside a formula alone.
OF_FORMULAS = "ranges", "missing", "offset", "exposure", "trials", "event"
# What a formula says.
BY_FORMULA = "features", "response", "names"


class FitFile(Settings, frozen=True):
    """The YAML of ``dpmc fit``; paths are relative to it."""

    rows: Annotated[Text, Meta(description="the path of a CSV, Parquet or Feather file")]
    epsilon: Positive
    delta: Annotated[
        float, Meta(gt=0, lt=1, description="a number between 0 and 1; write 1.0e-6 for 1e-6")
    ]
    output: Annotated[Text, Meta(description="the path of the Parquet file to write")] = (
        "fit.parquet"
    )
    names: Annotated[
        list[Text] | None, Meta(description="of all columns of a CSV file without a header")
    ] = None
    features: list[Text] | None = None
    response: Text | None = None
    likelihood: Text | None = None
    formula: Text | None = None
    ranges: dict[str, tuple[float, float]] | None = None
    missing: dict[str, Any] | None = None
    offset: Text | None = None
    exposure: Text | None = None
    trials: Text | None = None
    event: Text | None = None
    model: Annotated[Text, Meta(description="FILE.py:NAME, a dpmc.Model")] | None = None
    intercept: bool = True
    prior_sd: Positive | None = None
    degrees_of_freedom: Positive = 4.0
    num_chains: Count = 4
    num_draws: Count = 2000
    noise: Literal["continuous", "discrete"] | None = None
    neighbours: Literal["replace", "add_remove"] = "replace"
    unit: (
        Annotated[Text, Meta(description="the column that says whose a row is: a person's")] | None
    ) = None
    invalid_rows: Literal["refuse", "zero"] = "refuse"


def fit_file(path: str | Path, as_json: bool = False) -> str:
    """Fit what a YAML file asks for, write the fit, and return its summary, or its record."""
    path = Path(path)
    settings = read(path)
    output = path.parent / settings.output
    _check_output(path, output, path.parent / settings.rows)
    common: dict[str, Any] = {
        "epsilon": settings.epsilon,
        "delta": settings.delta,
        "num_chains": settings.num_chains,
        "num_draws": settings.num_draws,
        "noise": settings.noise,
        "neighbours": settings.neighbours,
    }
    with warnings.catch_warnings():  # the summary has the remarks
        warnings.simplefilter("ignore", PosteriorWarning)
        fitted = _fitted(path, settings, common)
    try:
        fitted.save(output)
    except DpmcError as error:  # a disk that is full by now, or a folder that is gone
        print(f"{fitted.summary()}\n")
        spent = f"({settings.epsilon:g}, {settings.delta:g}) of privacy is spent"
        raise DpmcError(f"{error}; {spent}, and the summary is what there is of it") from None
    if as_json:
        return json.dumps({**fitted.record(), "output": str(output)}, indent=1)
    return f"{fitted.summary()}\n\nWritten to {output}."


def _fitted(path: Path, settings: FitFile, common: dict[str, Any]) -> Fit:
    """Fit by a formula, of columns, or of a model."""
    of_regressions: dict[str, Any] = {
        "likelihood": settings.likelihood,
        "prior_sd": settings.prior_sd,
        "degrees_of_freedom": settings.degrees_of_freedom,
    }
    if settings.formula is not None:
        given = {name: getattr(settings, name) for name in OF_FORMULAS}
        given = {name: value for name, value in given.items() if value is not None}
        table = path.parent / settings.rows
        given |= {"unit": settings.unit}
        return regression(settings.formula, table, **of_regressions, **given, **common)
    common = {**common, "invalid_rows": settings.invalid_rows, "unit": _whose(path, settings)}
    names, rows = _rows(path, settings)
    if settings.model is not None:
        return fit(_model(path, settings.model), rows, **common)
    x = pd.DataFrame(rows[:, :-1], columns=list(map(frames.label, names[:-1])))
    intercept = settings.intercept
    return regression(x, rows[:, -1], intercept=intercept, **of_regressions, **common)


def _whose(path: Path, settings: FitFile) -> Column | None:
    """Column that says whose rows are."""
    if settings.unit is None:
        return None
    file = _opened(path, settings)
    refuse_missing(file, (settings.unit,), f"{path}: ")
    return Column(settings.unit, frames.column(file.frame((settings.unit,)), settings.unit))


def _check_output(path: Path, output: Path, rows: Path) -> None:
    """Refuse an output that cannot be written, by writing beside it, before a row is used."""
    if output.exists() and any(one.exists() and output.samefile(one) for one in (path, rows)):
        raise DpmcError(f"{path}: `output` must be another file than rows and settings: {output}")
    folder = output.absolute().parent
    if not folder.is_dir():
        raise DpmcError(f"{path}: `output` must lie in a folder that exists, got {output}")
    if output.is_dir():
        raise DpmcError(f"{path}: `output` must be a file, got the folder {output}")
    try:
        # With the length of the name that a file has before it is complete.
        with tempfile.NamedTemporaryFile(
            dir=folder, prefix=f"{output.name}.", suffix=".part".rjust(29, "_")
        ):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise DpmcError(
            f"{path}: `output` must be a file that can be written, got {output} ({reason})"
        ) from None


def plan_file(path: str | Path, as_json: bool = False) -> str:
    """Expected errors of the fit that a YAML file asks for; only rows, or persons, are counted."""
    path = Path(path)
    settings = read(path)
    if settings.neighbours != "replace":
        raise DpmcError(
            f"{path}: `neighbours` must be replace for a plan, which says how many rows there are, "
            "got add_remove: dpmc.plan takes a number of your own"
        )
    file = _opened(path, settings)
    classes, intercept = None, settings.intercept
    whose = _whose(path, settings)
    count = file.num_rows
    if whose is not None:
        count = numbered(whose.entries, whose.name, "zero")[1]
    if settings.formula is None:
        columns = len(_columns(path, settings, file))
    else:
        design = Design.of(settings.formula, settings.ranges, settings.missing or DROP)
        refuse_missing(file, design.columns, f"{path}: ")
        columns = len(design.names) + 1
        classes, intercept = design.classes, design.intercept
        if design.group is not None:
            raise DpmcError(f"{path}: `formula` must have no groups for a plan")
    if settings.likelihood == BINOMIAL:
        raise DpmcError(
            f"{path}: `likelihood` must be another than 'binomial' for a plan of a file: "
            "dpmc.plan(..., trials=) takes a number of trials"
        )
    shape = count, columns
    budget: dict[str, Any] = {"epsilon": settings.epsilon, "delta": settings.delta}
    if classes is not None and classes > 2:
        budget["classes"] = classes
    if settings.model is not None:
        planned = plan(_model(path, settings.model), shape, **budget)
    else:
        assert settings.likelihood is not None
        planned = plan(
            settings.likelihood,
            shape,
            intercept=intercept,
            prior_sd=settings.prior_sd,
            degrees_of_freedom=settings.degrees_of_freedom,
            **budget,
        )
    if not as_json:
        return str(planned)
    told = {one.name: getattr(planned, one.name) for one in fields(planned) if one.repr}
    return json.dumps(told, indent=1)


def audit_file(path: str | Path, as_json: bool = False, **options: Any) -> str:
    """Audit the mechanism that a Python file defines.

    Parameters
    ----------
    path : str or Path
        A file that defines ``mechanism``, ``data`` and ``neighbour``.
    as_json : bool
    **options
        Of `dpmc.audit`.
    """
    path = Path(path)
    module = _module(path)
    given = [_attribute(path, module, name) for name in ("mechanism", "data", "neighbour")]
    found = audit(*given, **options)
    if as_json:
        return json.dumps({**asdict(found), "violates_claim": found.violates_claim}, indent=1)
    return str(found)


def read(path: Path) -> FitFile:
    """Settings of a fit."""
    settings = read_typed(path, FitFile)
    if (settings.model is None) == (settings.likelihood is None):
        given = "none" if settings.model is None else "both"
        raise DpmcError(f"{path}: one of `model` and `likelihood` must be given, got {given}")
    if settings.likelihood is not None and settings.likelihood not in (*MODELS, *LIKELIHOODS):
        known = ", ".join((*MODELS, *LIKELIHOODS))
        raise DpmcError(f"{path}: `likelihood` must be one of {known}, got {settings.likelihood!r}")
    _check_formula(path, settings)
    if settings.likelihood is not None and settings.response is None and settings.formula is None:
        raise DpmcError(f"{path}: `response` must be given with a `likelihood`")
    if settings.model is not None and settings.response is not None:
        raise DpmcError(f"{path}: `response` must be left out with a `model`, which reads all rows")
    names = settings.names
    if names is not None and (len({*names}) < len(names) or not all(map(_is_given, names))):
        raise DpmcError(
            f"{path}: `names` must be different names of columns, texts that are no numbers or "
            f"integers, got {names}"
        )
    features = settings.features
    if features is not None:
        if not features or len({*features}) != len(features):
            raise DpmcError(
                f"{path}: `features` must be different names of columns, got {features}"
            )
        if settings.response in features:
            raise DpmcError(
                f"{path}: `features` must not have the response, got {settings.response!r} there"
            )
    return settings


def _check_formula(path: Path, settings: FitFile) -> None:
    """Refuse what goes together with a formula, or without one, no better than a key misspelt."""
    by_formula = settings.formula is not None
    if by_formula and settings.model is not None:
        raise DpmcError(f"{path}: `formula` must be left out with a `model`")
    for name in BY_FORMULA if by_formula else OF_FORMULAS:
        if getattr(settings, name) is not None:
            beside = "beside" if by_formula else "without"
            raise DpmcError(f"{path}: `{name}` must be left out {beside} a `formula`")
    special = settings.likelihood in LIKELIHOODS
    if special and not by_formula:
        raise DpmcError(f"{path}: `formula` must be given with {settings.likelihood!r}")
    if by_formula and (not settings.intercept or settings.invalid_rows != "refuse"):
        wrong = "intercept" if not settings.intercept else "invalid_rows"
        raise DpmcError(f"{path}: `{wrong}` must be left out beside a `formula`")


def _is_given(name: str) -> bool:
    return is_name(name) or name.isdecimal()


def _opened(path: Path, settings: FitFile) -> Table:
    """File of rows, of which no row is read."""
    source = path.parent / settings.rows
    return open_table(source, settings.names, f"{path}: `rows`")


def _columns(path: Path, settings: FitFile, file: Table) -> tuple[str, ...]:
    """Names of the columns that a fit reads, the response last."""
    response = () if settings.response is None else (settings.response,)
    features = settings.features
    if features is None:
        features = [name for name in file.names if name not in (*response, settings.unit)]
        index = [name for name in features if is_unnamed(name)]
        index = [*(file.index if isinstance(file, ArrowFile) else ()), *index]
        if index:
            raise DpmcError(
                f"{path}: `features` must name the columns to fit, since {file.path.name} has the "
                f"index of a data frame or a column without a name, {index[0]!r}"
            )
    wanted = (*features, *response)
    refuse_missing(file, wanted, f"{path}: ")
    return wanted


def _rows(path: Path, settings: FitFile) -> tuple[tuple[str, ...], Array]:
    """Columns that a fit reads: their names, and numbers, the response last."""
    file = _opened(path, settings)
    wanted = _columns(path, settings, file)
    if isinstance(file, ArrowFile):
        rows = file.numbers(wanted, settings.invalid_rows)
    else:
        rows = file.numbers(wanted)
    if settings.invalid_rows == "refuse":
        fields = f" of {len(file.names)} fields" if isinstance(file, CsvFile) else ""
        for name, column in zip(wanted, rows.T, strict=True):
            if not np.isfinite(column).all():
                raise DpmcError(
                    f"{path}: column {name!r} of {file.path.name} must have a finite number in "
                    f"every row{fields}, unless `invalid_rows` is zero"
                )
    return wanted, rows


def _model(path: Path, text: str) -> Model:
    file, colon, name = text.rpartition(":")
    if not colon:
        raise DpmcError(f"{path}: `model` must be FILE.py:NAME, got {text!r}")
    source = path.parent / file
    model = _attribute(source, _module(source), name)
    if not isinstance(model, Model):
        raise DpmcError(f"{path}: `model` must name a dpmc.Model, got {type(model).__name__}")
    return model


def _module(path: Path) -> ModuleType:
    """Run a Python file, once, and return it as a module."""
    if not path.is_file():
        raise DpmcError(f"{path}: must be a Python file, and is not there")
    # No name of a package that is installed: other processes find its functions by this one.
    name = f"dpmc_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise DpmcError(f"{path}: must be a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses and pickle look
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # of the file, whatever it is
        del sys.modules[name]
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise DpmcError(f"{path}: must be a Python file that runs, got {reason}") from None
    return module


def _attribute(path: Path, module: ModuleType, name: str) -> Any:
    """Value that a Python file calls `name`."""
    if not hasattr(module, name):
        raise DpmcError(f"{path}: `{name}` must be defined there")
    return getattr(module, name)
