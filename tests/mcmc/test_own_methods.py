"""Methods of a user: as objects, and as entry points of other packages."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

import dpmc
from dpmc.mcmc import own_methods
from dpmc.mcmc.methods import dp_penalty, rwmh
from dpmc.privacy.events import Releases, gaussian
from tests.support.posteriors import gaussian_model, rows

pytestmark = pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")

PENALTY = {"proposal_sd": 0.05, "ratio_noise_multiplier": 20.0, "ratio_clip_bound": 2.0}
METHOD = """
from dpmc.mcmc.methods.dp_penalty import Params, sampler
from dpmc.privacy.events import Releases, gaussian


def releases(params, num_rows):
    return Releases((), ((gaussian(params.ratio_noise_multiplier), 1),))
"""


def fit(method, **changes):
    given = {"epsilon": 4.0, "delta": 1e-5, "max_iterations": 20, "num_chains": 2, "seed": 3}
    given = {**given, "progress": False, **PENALTY, **changes}
    given = {name: value for name, value in given.items() if value is not None}
    return dpmc.fit(gaussian_model(), rows("own", 500, 2), method=method, **given)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return what puts a distribution into a folder of its own, found as an installed one is."""

    def put(package: str, entries: str, source: str = METHOD) -> None:
        folder = tmp_path / package
        about = folder / f"{package}-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[{own_methods.GROUP}]\n{entries}\n")
        (folder / f"{package}.py").write_text(textwrap.dedent(source))
        monkeypatch.syspath_prepend(folder)
        monkeypatch.delitem(sys.modules, package, raising=False)

    return put


def test_an_entry_point_of_another_package_is_a_method(install):
    """It is named as its package says, and runs the chains of an object of that name."""
    install("penalties", "walk = penalties")
    found = fit("walk")
    assert "walk" in own_methods.names()
    given = fit(
        SimpleNamespace(
            name="walk",
            Params=dp_penalty.Params,
            releases=dp_penalty.releases,
            sampler=dp_penalty.sampler,
        )
    )
    assert found.draws.tobytes() == given.draws.tobytes()
    assert found.ledger == given.ledger
    assert dict(found.ledger)["gaussian(20.0)"] == 40
    assert found.guarantee.epsilon < 4
    assert fit("dp_penalty").draws.tobytes() != found.draws.tobytes()  # streams are keyed by name


def test_a_module_is_a_method_as_it_stands():
    """A built-in one, given as an object, runs the chains that it runs by its name."""
    assert fit(dp_penalty).draws.tobytes() == fit("dp_penalty").draws.tobytes()
    assert fit(
        rwmh,
        epsilon=None,
        delta=None,
        max_iterations=None,
        num_iterations=20,
        ratio_noise_multiplier=None,
        ratio_clip_bound=None,
    ).draws.shape == (2, 20, 2)


class Walk:
    """A method as an instance with settings of its own."""

    name = "walk_of_a_class"
    Params = dp_penalty.Params

    def releases(self, params, num_rows):
        return Releases((), ((gaussian(params.ratio_noise_multiplier), 1),))

    def sampler(self, posterior, params):
        return dp_penalty.sampler(posterior, params)


def test_an_instance_is_a_method_and_may_come_first():
    first = dpmc.fit(
        gaussian_model(),
        rows("own", 500, 2),
        method=Walk(),
        epsilon=4,
        delta=1e-5,
        max_iterations=5,
        progress=False,
        **PENALTY,
    )
    assert first.draws.shape == (4, 5, 2)
    assert dict(first.ledger)["gaussian(20.0)"] == 20


@dataclass(frozen=True)
class Other:
    """Parameters that the method of dpmc with this name does not have."""

    size: float
    clip_bound: float = 2.0


def test_an_object_with_the_name_of_a_method_of_dpmc_is_itself():
    """Nothing is tuned for it: that is for the parameters of the other one."""
    seen = []

    def sampler(posterior, params):
        seen.append(params)
        given = dp_penalty.Params(params.size, 20.0, params.clip_bound)
        return dp_penalty.sampler(posterior, given)

    mine = SimpleNamespace(
        name="dp_penalty",
        Params=Other,
        releases=lambda params, num_rows: Releases((), ((gaussian(20.0), 1),)),
        sampler=sampler,
    )
    none = dict.fromkeys(PENALTY)
    fit(mine, **none | {"size": 0.05, "clip_bound": 3.0})
    assert seen[0] == Other(0.05, 3.0)
    with pytest.raises(dpmc.DpmcError, match="`size` must be given to dp_penalty"):
        fit(mine, **none)


def test_a_method_that_releases_more_than_it_says_is_refused():
    """The ledger knows what `releases` said and no more."""
    said = gaussian(40.0)
    more = SimpleNamespace(
        Params=dp_penalty.Params,
        sampler=dp_penalty.sampler,
        name="more",
        releases=lambda params, num_rows: Releases((), ((said, 1),)),
    )
    with pytest.raises(dpmc.DpmcError, match=r"releases of gaussian\(20.0\) must be at most 0"):
        fit(more)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"releases": lambda params, n: 3}, "`method` 'own': `releases` must return dpmc.privacy"),
        (
            {"sampler": lambda posterior, params: None},
            "`method` 'own': `sampler` must return a function",
        ),
    ],
)
def test_a_method_that_returns_something_else_is_refused_in_one_line(parts, told):
    whole = {"releases": dp_penalty.releases, "sampler": dp_penalty.sampler, **parts}
    with pytest.raises(dpmc.DpmcError, match=told):
        fit(SimpleNamespace(name="own", Params=dp_penalty.Params, **whole))


def test_own_methods_are_compared():
    both = dpmc.compare(
        gaussian_model(),
        rows("own", 500, 2),
        [Walk(), "dp_penalty"],
        epsilon=4,
        delta=1e-5,
        max_iterations=5,
        progress=False,
        **PENALTY,
    )
    assert list(both.fits) == ["walk_of_a_class", "dp_penalty"]


def parts(**changes):
    given = {
        "Params": dp_penalty.Params,
        "releases": dp_penalty.releases,
        "sampler": dp_penalty.sampler,
        "name": "mine",
    } | changes
    return SimpleNamespace(**{key: value for key, value in given.items() if value is not None})


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (3, "`method` 'int' must have Params, releases and sampler, got none of Params"),
        (parts(releases=None), "`method` 'mine' must have Params, releases and sampler, got none"),
        (parts(sampler="x"), "`method` 'mine': `sampler` must be a function, got str"),
        (parts(clip_shares=1), "`method` 'mine': `clip_shares` must be a function, got int"),
        (parts(Params=dict), "`method` 'mine': `Params` must be a dataclass, got dict"),
        (
            parts(Params=dp_penalty.Params(1.0, 1.0)),
            "`method` 'mine': `Params` must be a dataclass",
        ),
    ],
)
def test_what_is_no_method_is_refused_in_one_line(method, message):
    with pytest.raises(dpmc.DpmcError) as caught:
        fit(method)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("entries", "source", "method", "message"),
    [
        ("walk = elsewhere", METHOD, "walk", "must load, got ModuleNotFoundError: No module named"),
        ("walk = offered:nothing", METHOD, "walk", "must load, got AttributeError: "),
        ("walk = offered", "import numpy as np", "walk", "of offered (offered) must have Params"),
        ("walk = offered", "1 / 0", "walk", "must load, got ZeroDivisionError: division by zero"),
        ("walk = offered", "raise ValueError('a\\nb')", "walk", "must load, got ValueError: a b"),
        ("dp_hmc = offered", METHOD, "dp_hmc", "is one of dpmc and must not be that of another"),
        ("walk = offered", METHOD, "wlka", "(did you mean walk?)"),
    ],
)
def test_entry_points_that_do_not_work_are_refused_in_one_line(
    install, entries, source, method, message
):
    install("offered", entries, source)
    with pytest.raises(dpmc.DpmcError) as caught:
        own_methods.resolve(method)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
