"""Guarantees checked by what is recorded: what is changed is found, or said to be out of reach."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import dpmc
from dpmc.fits.verification import verify
from dpmc.types import NO_GUARANTEE, DpmcError, Guarantee

RELEASES = (("gaussian(6.0)", 1), ("gaussian(9.0)", 2))
STATED = dpmc.privacy.compose([RELEASES], 1e-6)
FIT = dpmc.Fit(np.arange(40.0).reshape(1, 40, 1), {}, {}, "complete", RELEASES, STATED)
RECORD = FIT.record()


def changed(**of_guarantee):
    return {**RECORD, "guarantee": {**RECORD["guarantee"], **of_guarantee}}


@pytest.fixture
def told(tmp_path):
    """Function that verifies a record, and releases in a file of their own where there are any."""

    def run(record, releases=None):
        path, ledger = tmp_path / "record.json", tmp_path / "ledger.json"
        path.write_text(record if isinstance(record, str) else json.dumps(record))
        if releases is None:
            return verify(path)
        ledger.write_text(json.dumps(releases))
        return verify(path, ledger)

    return run


def test_what_was_not_changed_is_true(told, tmp_path):
    line = told(RECORD)
    assert line.startswith(f"true: ({STATED.epsilon:g}, 1e-06)-DP, substitution of one row:")
    assert "\n" not in line
    assert told(STATED.to_json(RELEASES), RELEASES) == line
    FIT.save(tmp_path / "fit.parquet")
    assert verify(tmp_path / "fit.parquet") == line
    assert dpmc.Fit.load(tmp_path / "fit.parquet").record() == RECORD


@pytest.mark.parametrize(
    ("record", "message"),
    {
        "epsilon much lower": (changed(epsilon=0.9 * STATED.epsilon), "more than the"),
        "epsilon a little lower": (changed(epsilon=STATED.epsilon * (1 - 1e-5)), "`mu` is not"),
        "epsilon higher": (changed(epsilon=2 * STATED.epsilon), "`mu` is not"),
        "delta lower": (changed(delta=1e-7), "more than the"),
        "mu lower": (changed(mu=0.1), "`mu` is not"),
        "another relation": (changed(neighbours="add_remove"), "`deployment` is not"),
        "another relation there too": (
            changed(neighbours="add_remove", deployment={}), "`deployment` is not"
        ),
        "another unit": (changed(unit="patient"), "`deployment` is not"),
        "another noise": (changed(noise="discrete"), "`deployment` is not"),
        "nothing outside": (changed(outside=["weather"]), "`deployment` is not"),
        "a release removed": ({**RECORD, "releases": RECORD["releases"][:1]}, "`digest` is not"),
        "a count lower": (
            {**RECORD, "releases": [["gaussian(6.0)", 1], ["gaussian(9.0)", 1]]}, "`digest` is not"
        ),
        "a count higher": (
            {**RECORD, "releases": [["gaussian(6.0)", 4], ["gaussian(9.0)", 2]]}, "more than the"
        ),
        "more noise": (
            {**RECORD, "releases": [["gaussian(7.0)", 1], ["gaussian(9.0)", 2]]}, "`digest` is not"
        ),
        "no guarantee": (changed(epsilon=None), "no guarantee is stated"),
    }.values(),
)  # fmt: skip
def test_what_was_changed_is_false(told, record, message):
    with pytest.raises(DpmcError, match=f"json: false: .*{message}") as caught:
        told(record)
    assert "\n" not in str(caught.value)


def test_releases_of_others_are_found_by_the_digest(told):
    stated = STATED.to_json(RELEASES)
    with pytest.raises(DpmcError, match="`digest` is not that of this guarantee"):
        told(stated, (*RELEASES, ("gaussian(500.0)", 1)))
    # Without a digest, that releases are missing cannot be found, and is said.
    assert "no digest: some may be missing" in told(STATED.to_json(), RELEASES[:1])


@pytest.mark.parametrize(
    ("guarantee", "releases"),
    [
        (Guarantee(1.0, 0.0, accountant="laplace"), ()),
        (Guarantee(1.0, 1e-6, accountant="smooth sensitivity"), ()),
        (
            Guarantee(9.0, 1e-6, "add_remove", "subsampled"),
            (("sampled_gaussian(9.0, batch_size=5, num_rows=100)", 1),),
        ),
    ],
)
def test_what_no_ledger_shows_is_not_called_true(told, guarantee, releases):
    with pytest.raises(DpmcError, match="json: cannot be told: "):
        told(guarantee.to_json(releases), list(releases))


def test_nothing_released_is_within_every_budget(told):
    assert told(STATED.to_json(()), []).startswith("true: ")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("{", "must be a JSON file with each name once, got a file of another kind"),
        ("", "must be a JSON file with each name once, got a file of another kind"),
        # Who reads the first one is told another epsilon than the one that is true.
        (
            json.dumps(RECORD).replace('"guarantee": {', '"guarantee": {"epsilon": 0.001, ', 1),
            "must be a JSON file with each name once",
        ),
        ('{"releases": [], ' + json.dumps(RECORD)[1:], "must be a JSON file with each name once"),
        (changed(neighbours=["replace"]), "`neighbours` must be one of replace, add_remove, got"),
        (changed(neighbours={}), "`neighbours` must be one of replace, add_remove, got {}"),
        ([], "must be the record of a fit or a guarantee, got no mapping"),
        ({"releases": []}, "must be the record of a fit or a guarantee, got no 'epsilon'"),
        (STATED.to_json(), "has no releases, a second file with a ledger must be given"),
        (changed(epsilon="1"), "`epsilon` and `delta` must be numbers of a guarantee, got '1'"),
        (changed(neighbours="near"), "`neighbours` must be one of replace, add_remove, got 'near'"),
        (changed(unit="row\ntrue: all of it"), "`accountant`, `unit` and `noise` must be texts"),
        (changed(outside=["\x1b[2Jtrue"]), "and `outside` a list of them"),
        (changed(outside=[1]), "and `outside` a list of them"),
        (changed(unit=3), "`accountant`, `unit` and `noise` must be texts"),
        ({**RECORD, "releases": None}, "must have a list of releases"),
        ({**RECORD, "releases": [["gaussian(1.0)", "x"]]}, "must be an integer of at least 0"),
        ({**RECORD, "releases": [3]}, "a record must be a text and a count, got 3"),
        ({**RECORD, "releases": [["laplace(1)", 1]]}, "an event must read gaussian"),
    ],
)
def test_what_is_no_record_is_refused_in_one_line(told, record, message):
    with pytest.raises(DpmcError, match=message) as caught:
        told(record)
    assert "\n" not in str(caught.value)


def leaves(value, path=()):
    """Paths of all that is in a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*path, key))


def put(value, path, new):
    """Copy of a JSON value with another one at a path."""
    if not path:
        return new
    first, *rest = path
    if isinstance(value, dict):
        return {**value, first: put(value[first], rest, new)}
    return [put(one, rest, new) if k == first else one for k, one in enumerate(value)]


GUARANTEE = json.loads(STATED.to_json(RELEASES))
FACTS = {name: value for name, value in GUARANTEE.items() if name != "made_with"}


@pytest.mark.parametrize("path", [*leaves(FACTS)], ids=lambda path: ".".join(map(str, path)))
def test_no_fact_of_a_guarantee_can_be_another(told, path):
    listed = [list(one) for one in RELEASES]
    for new in (None, True, -1, 0, 1e-9, 3.5, 1e308, math.nan, math.inf, "", "a", [], {}, [[]]):
        record = put(FACTS, path, new)
        if record != FACTS:
            with pytest.raises(DpmcError) as caught:
                told(record, listed)
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", [*leaves([list(one) for one in RELEASES])], ids=str)
def test_no_release_can_be_another(told, path):
    listed = [list(one) for one in RELEASES]
    for new in (None, True, -1, 0, 3, 1.0, 10**30, math.nan, "gaussian(6.5)", "6", [], {}, [[]]):
        if put(listed, path, new) != listed:
            with pytest.raises(DpmcError) as caught:
                told(GUARANTEE, put(listed, path, new))
            assert "\n" not in str(caught.value)


def test_releases_are_those_of_the_record_or_of_a_ledger(told):
    with pytest.raises(DpmcError, match="has its own releases, a second file must be left out"):
        told(RECORD, [["gaussian(6.0)", 1]])


def test_a_fit_without_privacy_has_a_record_that_states_none(told):
    found = replace(FIT, guarantee=NO_GUARANTEE).record()
    with pytest.raises(DpmcError, match="false: no guarantee is stated"):
        told(found)
