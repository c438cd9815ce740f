"""Sessions: parts add up in mu^2, and nothing of them is given twice, whatever happens."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpmc
from dpmc import journals
from dpmc import session as session_module
from dpmc.models import gaussian_mean
from dpmc.privacy import GaussianBudget, Ledger, asserted, compose, discrete
from dpmc.privacy.budgets import ROUNDING, paid_by
from dpmc.types import DpmcError, labels
from tests.support.bad_input import OK, judge, labelled

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning"),
    pytest.mark.skipif(journals.fcntl is None, reason="a session needs the locks of POSIX"),
]

TERMS = {"epsilon": 2.0, "delta": 1e-6}
MEAN = asserted(0.25, sensitivity=0.01)
RNG = np.random.default_rng(3)
TABLE = pd.DataFrame({"age": RNG.uniform(20, 80, 400)})
TABLE["y"] = (TABLE.age > 50).astype(float)
MODEL = gaussian_mean.build(gaussian_mean.Params(1, [[1]], prior_variance=1e4))
QUICK = {"num_draws": 20, "progress": False}


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "study.budget"


def opened(path: Path, **terms) -> dpmc.Session:
    return dpmc.Session(**{**TERMS, **terms}, path=path)


def spent(path: Path) -> Fraction:
    """Sum of mu^2 that a journal has, by itself."""
    lines = path.read_text().splitlines()[1:]
    return sum((Fraction(json.loads(line[:-65])["mu"]) ** 2 for line in lines), Fraction())


def test_parts_add_up_in_mu_squared(path) -> None:
    with opened(path) as session:
        whole = session.regression("y ~ age", TABLE, likelihood="logistic", epsilon=1.5, **QUICK)
        assert (whole.guarantee.epsilon, whole.guarantee.delta) == (1.5, 1e-6)
        assert (whole.guarantee.noise, whole.guarantee.outside) == ("discrete", ())
        session.fit(MODEL, TABLE[["age"]], share=0.2, label="mean age", **QUICK)
        session.release(MEAN, noise_multiplier=16.0, label="rate")
        assert [part.what for part in session.parts] == ["y ~ age", "mean age", "rate"]
        assert "mean age" in str(session)
        left = session.remaining
    mus = [GaussianBudget.of(1.5, 1e-6).mu, math.sqrt(0.2) * session.mu, 1 / 16]
    rest = math.sqrt(session.mu**2 - sum(mu**2 for mu in mus))
    assert left == pytest.approx(GaussianBudget(rest).guarantee(1e-6).epsilon, rel=1e-6)
    with opened(path) as session:
        assert session.remaining == left
        with pytest.raises(DpmcError, match="must fit into what is left of the session"):
            session.release(MEAN, epsilon=left * 1.0001)
        session.release(MEAN, epsilon=left)
        assert session.remaining < 0.01
        joint = compose([session], delta=1e-6)
    assert joint.epsilon == pytest.approx(2.0, rel=1e-6)
    assert spent(path) <= Fraction(session.mu) ** 2


@pytest.mark.parametrize("shares", [[0.1] * 10, [1 / 3] * 3, [0.7, 0.2, 0.1], [1.0]])
def test_shares_that_add_up_to_one_fit(path, shares) -> None:
    with opened(path) as session:
        for share in shares:
            session.release(MEAN, share=share)


def test_all_of_a_budget_may_be_one_part(path) -> None:
    with opened(path) as session:
        session.release(MEAN, epsilon=session.remaining)
        assert session.remaining == 0


def asked(rng, last: float) -> dict[str, float]:
    """Part that an adversary asks for who looks at the last output."""
    kind = int(rng.integers(3))
    if kind == 0:
        return {"share": min(abs(last), 1.0) or 0.5}
    size = 0.05 + abs(last) % 0.7
    return {"epsilon": size} if kind == 1 else {"noise_multiplier": 1 / size}


@pytest.mark.parametrize("seed", range(8))
def test_an_adversary_who_chooses_from_outputs_gets_no_more(path, monkeypatch, seed) -> None:
    """Releases that really happen are counted where noise is drawn, by exact fractions."""
    given = Fraction()
    draw = Ledger.release

    def counted(self, clipped, noise_multiplier, rng, batch=None):
        nonlocal given
        noisy = draw(self, clipped, noise_multiplier, rng, batch)
        given += 1 / Fraction(noise_multiplier) ** 2
        return noisy

    monkeypatch.setattr(Ledger, "release", counted)
    rng, last, refused = np.random.default_rng(seed), 0.3, 0
    while refused < 20:
        with opened(path) as session:
            for _ in range(4):
                try:
                    last = session.release(asserted(last, 1.0), **asked(rng, last))
                except DpmcError:
                    refused += 1
                assert given <= Fraction(session.mu) ** 2 * (1 + ROUNDING)
    assert given > 0.2 * Fraction(session.mu) ** 2
    assert given <= spent(path) * (1 + ROUNDING)


def losses(path: Path, runs: int, choose) -> np.ndarray:
    """Privacy losses of runs on a row of 1 against one of 0, by the noise that was chosen."""
    found = []
    for run in range(runs):
        session, loss, last = opened(path / str(run), epsilon=1.0, delta=0.05), 0.0, 0.0
        with session:
            for _ in range(8):
                multiplier = choose(loss, session)
                try:
                    last = session.release(asserted(1.0, 1.0), noise_multiplier=multiplier)
                except DpmcError:
                    break
                loss += (last - 0.5) / multiplier**2
        found.append(loss)
    return np.array(found)


def test_the_delta_of_adaptive_choices_is_kept(tmp_path, monkeypatch) -> None:
    """An adversary who asks for more where the loss is large already.

    The estimate of delta exceeds 0.05 by five standard errors with probability below 1e-6; a
    session that forgets its parts has one of about 0.2.
    """
    monkeypatch.setattr(os, "fsync", lambda file: None)  # of thousands

    def choose(loss: float, session: dpmc.Session) -> float:
        return (2.0 if loss <= 0.3 else 1.45) / session.mu

    found = losses(tmp_path, 600, choose)
    terms = np.maximum(0.0, 1 - np.exp(1.0 - found))
    assert terms.mean() <= 0.05 + 5 * max(terms.std(), 0.1) / math.sqrt(len(terms))


X, Y = TABLE[["age"]], TABLE.y
REFUSED = {
    "made": {
        "epsilon": (lambda p: opened(p, epsilon=0), "`epsilon` must be positive and finite, got 0"),
        "delta": (lambda p: opened(p, delta=None), "`delta` must be in (0, 1), got None"),
        "a path that is none": (lambda p: opened(3), "`path` must be the path of a file, got 3"),
        "a path of bytes": (lambda p: opened(b"a"), "`path` must be the path of a file, got b'a'"),
        "a path with a zero": (
            lambda p: opened("a\0"),
            "`path` must be the path of a file, got 'a",
        ),
        "a path that is no text": (lambda p: opened("\ud800"), "`path` must be the path of a file"),
        "no folder": (lambda p: opened(p / "a"), "No such file or directory"),
        "a folder": (lambda p: opened(p.parent), "Is a directory"),
        "another epsilon": (
            lambda p: (opened(p).close(), opened(p, epsilon=3)),
            'it is about {"session": 1, "epsilon": 2.0, "delta": 1e-06}, not {"session": 1, "eps',
        ),
        "the same again": (lambda p: (opened(p).close(), opened(p, epsilon=2).close()), OK),
        "a file of something": (
            lambda p: (p.write_text("age,y\n20,1\n"), opened(p)),
            "it is something else, or was emptied",
        ),
        "an empty file": (lambda p: (p.touch(), opened(p)), "it is something else, or was emptied"),
        "a pipe": (lambda p: (os.mkfifo(p), opened(p)), "it is something else, or was emptied"),
    },
    "fit": {
        "neither": (
            lambda p: opened(p).fit(MODEL, X),
            "`epsilon` or `share` must be given, got neither",
        ),
        "both": (
            lambda p: opened(p).fit(MODEL, X, epsilon=1, share=0.5),
            "`share` must be the only size of a part, got another beside it",
        ),
        "too much": (
            lambda p: opened(p).fit(MODEL, X, epsilon=2.5),
            "`epsilon` must fit into what is left of the session, epsilon 2.0 or 1 of mu^2, got 2.",
        ),
        "an epsilon": (lambda p: opened(p).fit(MODEL, X, epsilon="1"), "`epsilon` must be positi"),
        "a share": (lambda p: opened(p).fit(MODEL, X, share=1.1), "`share` must be in (0, 1], got"),
        "a share of nothing": (
            lambda p: opened(p).fit(MODEL, X, share=1e-14),
            "`share` must buy an epsilon above 0, got 1e-14",
        ),
        **{
            f"a {name} of its own": (
                lambda p, name=name: opened(p).fit(MODEL, X, epsilon=1, **{name: 1}),
                f"`{name}` must be left out in a session: ",
            )
            for name in ("delta", "method", "neighbours", "noise", "seed")
        },
        "nodes": (
            lambda p: opened(p).fit(MODEL, dpmc.federation([X, X]), epsilon=1),
            "`data` must be rows that are here, got a federation",
        ),
        "bounds from the data": (
            lambda p: opened(p).fit(
                MODEL, dpmc.Dataset("a", X.to_numpy(), bounds_source="data"), epsilon=1
            ),
            "`data` must have public bounds in a session, got bounds from the data",
        ),
        "no model": (lambda p: opened(p).fit(None, X, epsilon=1), "`model` must be a dpmc.Model"),
        "an option": (
            lambda p: opened(p).fit(MODEL, X, epsilon=1, num_samples=5),
            "`num_samples` must be an argument of dpmc.fit (did you mean num_draws?)",
        ),
        "a label": (
            lambda p: opened(p).fit(MODEL, X, epsilon=1, label="a\nb"),
            "`label` must be a text on one line, got 'a\\nb'",
        ),
    },
    "regression": {
        "a likelihood": (
            lambda p: opened(p).regression(X, Y, epsilon=1, likelihood="cubic"),
            "`likelihood` must be one of",
        ),
        "draws without room": (
            lambda p: opened(p).regression(
                X, Y + 1, epsilon=1, likelihood="weibull", event=Y, num_draws=10**15
            ),
            "`num_draws` must be fewer",
        ),
    },
    "split": {
        "no column": (lambda p: opened(p).split(3, [1, 2]), "`column` must be the name of a col"),
        "one level": (
            lambda p: opened(p).split("site", "ab"),
            "`levels` must be at least two different texts or integers, got ['ab']",
        ),
        "a level twice": (
            lambda p: opened(p).split("site", [1, 1]),
            "`levels` must be at least tw",
        ),
        "a level of numbers": (
            lambda p: opened(p).split("site", [1.5, 2]),
            "`levels` must be at l",
        ),
        "a split of a level": (
            lambda p: opened(p).split("site", ["a", "b"])["a"].split("sex", ["f", "m"]),
            "`split` must be of a whole session, got that of 'a'",
        ),
        "no such column": (
            lambda p: opened(p).split("site", ["a", "b"])["a"].fit(MODEL, X, epsilon=1),
            "`data` must be a table with one column 'site', as was split",
        ),
        "arrays": (
            lambda p: opened(p).split("site", ["a", "b"])["a"].regression(X, Y, epsilon=1),
            "`x` must be a formula in a split, got DataFrame",
        ),
    },
    "release": {
        "no sensitivity": (
            lambda p: opened(p).release(0.25, epsilon=1),
            "`value` must be one that carries its sensitivity, as dpmc.privacy.asserted(value, ",
        ),
        "another relation": (
            lambda p: opened(p).release(asserted(1.0, 1.0, "add_remove"), epsilon=1),
            "`neighbours` must be 'replace'",
        ),
        "single precision": (
            lambda p: opened(p).release(MEAN._replace(value=np.ones(2, "f4")), epsilon=1),
            "`value` must be a float or an array of float64, got float32",
        ),
        "no bound": (
            lambda p: opened(p).release(MEAN._replace(sensitivity=math.inf), epsilon=1),
            "`sensitivity` must be finite",
        ),
        "two": (
            lambda p: opened(p).release(MEAN, epsilon=1, noise_multiplier=9.0),
            "`noise_multiplier` must be the only size of a part, got another beside it",
        ),
        "a multiplier of 0": (
            lambda p: opened(p).release(MEAN, noise_multiplier=0),
            "`noise_multiplier` must be positive and finite, got 0.0",
        ),
        "too little noise": (
            lambda p: opened(p).release(MEAN, noise_multiplier=1.0),
            "`noise_multiplier` must fit into what is left of the session",
        ),
        "after the end": (
            lambda p: ((s := opened(p)).close(), s.release(MEAN, epsilon=1)),
            "the session must be open, got a closed one: open it again",
        ),
    },
}


@pytest.mark.parametrize(("call", "message"), labelled(REFUSED).values(), ids=labelled(REFUSED))
def test_what_is_refused_is_said_in_one_line_and_costs_nothing(path, call, message) -> None:
    judge(lambda: call(path), message)
    if path.is_file() and path.read_text().startswith("0" * 11 + " "):
        assert spent(path) == 0


class PowerError(Exception):
    """The power went out."""


CALLS = "open", "pwrite", "fsync", "ftruncate", "link", "pread"


def failing(monkeypatch, at: int, half: bool, error: BaseException) -> list[str]:
    """Let the call number `at` of the journal's to the system fail, before or amid its work."""
    made: list[str] = []

    def wrapped(name):
        work = getattr(os, name)

        def call(*args, **more):
            made.append(name)
            if len(made) == at:
                if half:
                    args = (
                        (args[0], args[1][: len(args[1]) // 2], *args[2:])
                        if name == "pwrite"
                        else args
                    )
                    work(*args, **more)
                raise error
            return work(*args, **more)

        return call

    fake = SimpleNamespace(**{**vars(os), **{name: wrapped(name) for name in CALLS}})
    monkeypatch.setattr(journals, "os", fake)
    return made


@pytest.mark.parametrize("error", [PowerError(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("half", [False, True])
def test_a_crash_at_any_call_gives_nothing_twice(tmp_path, monkeypatch, half, error) -> None:
    """Two parts of 0.4 of the budget are asked for, and after the crash all that is left."""
    at, crashed = 0, True
    while crashed:
        at, given = at + 1, 0
        path = tmp_path / f"{at}.budget"
        with monkeypatch.context() as patched:
            failing(patched, at, half, error)
            try:
                with opened(path) as session:
                    for _ in range(2):
                        session.release(MEAN, share=0.4)
                        given += 1
                crashed = False
            except (PowerError, DpmcError):
                pass
        with opened(path) as session:
            while session.remaining > 1.0:
                session.release(MEAN, share=0.4)
                given += 1
        assert given <= 2
        assert given >= 1  # of two parts at most one is lost
    assert at > 12


def test_every_line_is_on_the_disk_before_its_noise_is_drawn(path, monkeypatch) -> None:
    with opened(path) as session:
        made = failing(monkeypatch, 0, False, PowerError())
        seen: list[str] = []
        monkeypatch.setattr(discrete, "add_gaussian", lambda *args, **more: seen.extend(made))
        session.release(MEAN, share=0.1)
        assert seen == ["pwrite", "fsync", "pwrite", "fsync"]


KILLED = """
import os, signal, sys
import dpmc
from dpmc.privacy import asserted, discrete
path, where = sys.argv[1:]
draw = discrete.add_gaussian
def killed(*args, **more):
    os.kill(os.getpid(), signal.SIGKILL)
if where == "before noise":
    discrete.add_gaussian = killed
with dpmc.Session(2.0, 1e-6, path) as session:
    while True:
        noisy = session.release(asserted(0.25, 0.01), share=0.0005)
        print(noisy, flush=True)
"""


@pytest.mark.parametrize("where", ["before noise", "anywhere"])
def test_a_killed_process_has_spent_what_it_gave(path, where) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path), where], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    given = 0
    if where == "anywhere":
        for _ in range(int.from_bytes(os.urandom(1), "big") % 40 + 1):
            given += bool(child.stdout.readline())
        with pytest.raises(DpmcError, match="another session has it open"):
            opened(path)
        child.send_signal(signal.SIGKILL)
    given += len(child.stdout.readlines())
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()
    with opened(path) as session:
        paid = len(session.parts)
    assert paid - 1 <= given <= paid
    assert paid == 1 if where == "before noise" else given >= 1


def shortened(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 5)


def edited(path: Path) -> None:
    path.write_text(path.read_text().replace("rate", "race"))


def reordered(path: Path) -> None:
    first, *rest = path.read_text().splitlines(keepends=True)
    path.write_text(first + "".join(rest[::-1]))


def lengthened(path: Path) -> None:
    path.write_text(path.read_text() + path.read_text().splitlines(keepends=True)[-1])


def copied(path: Path) -> None:
    shutil.copy(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)


CHANGES = {
    shortened: "it was shortened, to 1 lines of 2",
    cut: "it was shortened, to 1 lines of 2",
    edited: "line 2 is not as it was written",
    reordered: "line 2 is not as it was written",
    lengthened: "line 4 is not as it was written",
    copied: "it is a copy",
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("while_open", [False, True])
def test_a_changed_journal_is_refused(path, change, while_open) -> None:
    session = opened(path)
    for k in range(2):
        session.release(MEAN, share=0.1, label=f"rate {k}")
    if not while_open:
        session.close()
    change(path)
    if while_open and change not in (edited, reordered):  # of the same length
        with pytest.raises(DpmcError, match="it was changed while it was open"):
            session.release(MEAN, share=0.1)
    session.close()
    with pytest.raises(DpmcError) as caught:
        opened(path)
    assert CHANGES[change] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_journal_may_be_moved(path) -> None:
    with opened(path) as session:
        session.release(MEAN, share=0.1)
    there = path.with_name("elsewhere")
    path.rename(there)
    with opened(there) as session:
        assert len(session.parts) == 1


def test_neither_a_second_session_nor_a_copy_nor_a_fork_spends(path) -> None:
    with opened(path) as session:
        with pytest.raises(DpmcError, match="another session has it open"):
            opened(path)
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(DpmcError, match="must be passed on as it is"):
                duplicate(session)
        child = os.fork()
        if not child:
            try:
                session.release(MEAN, share=0.1)
            except DpmcError as error:
                os._exit(7 if "by the process that opened it" in str(error) else 8)
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        session.release(MEAN, share=0.1)
        assert len(session.parts) == 1


def test_threads_share_what_is_left(path) -> None:
    def some(session) -> int:
        given = 0
        for _ in range(20):
            try:
                session.release(MEAN, share=0.01)
            except DpmcError:
                continue
            given += 1
        return given

    with opened(path) as session, ThreadPoolExecutor(8) as pool:
        given = sum(pool.map(some, [session] * 8))
    assert given == 100


def test_the_journal_knows_nothing_of_the_rows(path, tmp_path) -> None:
    texts = []
    for k, rows in enumerate((TABLE, TABLE + 3)):
        with opened(tmp_path / f"{k}") as session:
            session.regression("y ~ age", rows, epsilon=1, **QUICK)
            session.release(asserted(float(rows.age.mean()), 0.1), share=0.1)
        lines = (tmp_path / f"{k}").read_text().splitlines()[1:]
        entries = [json.loads(line[:-65]) for line in lines]
        texts.append([{**entry, "when": ""} for entry in entries])
    assert texts[0] == texts[1]


def test_of_disjoint_rows_the_dearest_count(path) -> None:
    """Rows of a site are in parts of all rows, of their site and of their sex."""
    with opened(path) as session:
        sites, sexes = session.split("site", ["a", "b", 3]), session.split("sex", ["f", "m"])
        for site in sites.values():
            site.release(MEAN, share=0.5)
        sites["a"].release(MEAN, share=0.1)
        assert float(session._left()) == pytest.approx(0.4 * session.mu**2)
        sexes["m"].release(MEAN, share=0.3)
        for one, left in ((session, 0.1), (sites["a"], 0.1), (sites["b"], 0.2), (sexes["f"], 0.4)):
            assert float(one._left()) == pytest.approx(left * session.mu**2)
        session.release(MEAN, share=0.05)
        with pytest.raises(DpmcError, match="must fit into what is left"):
            sites["a"].release(MEAN, share=0.06)
        sites["b"].release(MEAN, share=0.14)
        lefts = [one._left() for one in (session, *sites.values(), *sexes.values())]
    with opened(path) as session:
        sites, sexes = session.split("site", ["a", "b", 3]), session.split("sex", ["f", "m"])
        assert lefts == [one._left() for one in (session, *sites.values(), *sexes.values())]
        assert session.parts[0].what == "release (site = a)"
        assert session.guarantee.outside == (
            "the column 'site', which is public",
            "the column 'sex', which is public",
        )


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_part_of_a_level_is_of_its_rows_alone(path, monkeypatch, kind) -> None:
    table = TABLE.assign(site=np.where(np.arange(400) % 4 == 0, "a", "b"))
    seen = {}

    def noted(name):
        work = getattr(session_module, name)

        def call(first, rows, **more):
            seen[name] = rows
            return work(first, rows, **more)

        return call

    for name in ("fit", "regression"):
        monkeypatch.setattr(session_module, name, noted(name))
    table.loc[1, "site"] = None
    made = {"pandas": pd.DataFrame, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}
    frame = made[kind](table)
    with opened(path) as session:
        part = session.split("site", ["a", "b"])["a"]
        fits = [
            part.regression("y ~ age", frame, likelihood="logistic", epsilon=0.5, **QUICK),
            part.fit(MODEL, made[kind](table[["age", "site"]]), epsilon=0.5, **QUICK),
        ]
    for fit in fits:
        assert fit.guarantee.outside == ("the column 'site', which is public",)
    assert labels(seen["fit"]) == ["age"]
    for rows in seen.values():
        assert np.array_equal(rows["age"], table.age[::4])


def test_a_fit_that_releases_nothing_costs_nothing(path) -> None:
    with opened(path) as session:
        fit = session.fit(MODEL, TABLE[["age"]].iloc[:3], epsilon=0.01, **QUICK)
        assert fit.ledger == ()
        assert session.remaining == 2.0


def test_only_budgets_are_paid_for() -> None:
    paid: list[float] = []
    with paid_by(paid.append):
        with pytest.raises(DpmcError, match="`plan` must be a GaussianBudget in a part of a sess"):
            Ledger()
        ledger = Ledger(GaussianBudget(0.5))
    rng = np.random.default_rng()
    assert paid == []
    for _ in range(2):
        ledger.release(MEAN, 4.0, rng)
    assert paid == [0.5]


def test_all_parts_of_a_session_have_its_relation(path) -> None:
    relation = {"neighbours": "add_remove"}
    with opened(path, **relation) as session:
        assert session.guarantee.relation == "addition or removal of one row"
        parts = session.regression("y ~ age", TABLE, likelihood="logistic", epsilon=0.5, **QUICK)
        model = session.fit(MODEL, TABLE[["age"]], epsilon=0.5, **QUICK)
        assert {parts.guarantee.neighbours, model.guarantee.neighbours} == {"add_remove"}
        assert session.release(asserted(400.0, 1.0, "add_remove"), epsilon=0.5)
        with pytest.raises(DpmcError, match="`neighbours` must be 'add_remove'"):
            session.release(MEAN, epsilon=0.5)
        none = session.split("y", [2, 3])[2]
        assert none.regression("y ~ age", TABLE, epsilon=0.1, **QUICK).plan.method == "prior"
        remaining = session.remaining
    with pytest.raises(DpmcError, match="it is about"):
        opened(path)
    with opened(path, **relation) as session:
        assert session.remaining == remaining


@pytest.mark.parametrize("persons_first", [True, False])
def test_persons_and_levels_do_not_share_a_session(path, persons_first) -> None:
    """One person may have a row at each level: what levels pay apart, the person pays in all."""
    people = np.arange(len(TABLE)) // 2
    calls = [
        lambda session: session.fit(MODEL, TABLE[["age"]], unit=people, share=0.6, **QUICK),
        lambda session: session.split("y", [0, 1])[0].release(MEAN, share=0.3),
    ]
    with opened(path) as session:
        first, second = calls if persons_first else calls[::-1]
        first(session)
        left = session.remaining
        with pytest.raises(DpmcError, match="may have rows at two levels"):
            second(session)
        assert session.remaining == left
