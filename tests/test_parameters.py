"""What methods, models and samplers are set by: whatever is no such setting is refused by name."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import pkgutil

import pytest

import dpmc
from dpmc import registry

WRONG = {
    "int": (2.5, -1, "2", math.nan),
    "float": ("1", math.nan),
    "str": ("no_such_word", 1),
    "bool": (2, "no"),
}
# Of parameters that have no default, where there is no example.
NEEDED = {
    "batch_size": 10, "gradient_clip_bound": 1.0, "noise_variance": 1.0, "num_features": 2,
    "prior_means": [[0.0], [1.0]], "step_size": 0.1, "num_passes": 1, "step": 0.1,
    "clip_bound": 1.0, "h_multiplier": 1.0, "precision_multiplier": 1.0,
}  # fmt: skip
# Those that hand their parameters to settings, which refuse them, and models of the papers alone.
CHECKED_ELSEWHERE = (
    "ep.mixture.dp_sep", "ep.mixture.methods", "ep.network.dp_sep", "ep.network.methods",
    "ep.perturbation", "models.banana", "models.circle", "models.gaussian_mean", "statsel.fisher",
)  # fmt: skip


def classes() -> dict[str, type]:
    """Return classes of parameters of the library, by where they are."""
    found = {}
    for info in pkgutil.walk_packages(dpmc.__path__, "dpmc."):
        where = info.name.removeprefix("dpmc.")
        if info.name.endswith("__main__") or where.startswith(CHECKED_ELSEWHERE):
            continue
        for name, one in vars(importlib.import_module(info.name)).items():
            own = inspect.isclass(one) and one.__module__ == info.name
            if own and name.endswith(("Params", "Settings")) and dataclasses.is_dataclass(one):
                found[f"{where}.{name}"] = one
    return found


CLASSES = classes()
FIELDS = [
    (name, field.name)
    for name, one in CLASSES.items()
    for field in dataclasses.fields(one)
    if field.name not in ("mass", "prior_means")
]


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_what_is_no_such_setting_is_refused_by_its_name(name: str, field: str) -> None:
    one = CLASSES[name]
    fields = {entry.name: entry for entry in dataclasses.fields(one)}
    example = getattr(importlib.import_module(one.__module__), "EXAMPLE", None)
    known = dataclasses.asdict(example) if isinstance(example, one) else NEEDED
    given = {key: known[key] for key, f in fields.items() if f.default is dataclasses.MISSING}
    registry.called(one, name, given)
    kind = str(fields[field].type).partition(" |")[0]
    for value in WRONG.get(kind, WRONG["str"]):
        with pytest.raises(dpmc.DpmcError, match=field) as caught:
            registry.called(one, name, given | {field: value})
        assert "\n" not in str(caught.value)


def test_methods_of_every_family_are_looked_at() -> None:
    kinds = {name.partition(".")[0] for name in CLASSES}
    assert kinds >= {"ep", "linreg", "mcmc", "models", "statsel"}
    assert len(FIELDS) > 150
