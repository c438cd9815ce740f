"""The time that is left: from expected costs, corrected by the jobs that are done."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmc_papers.config.reader import load_config
from dpmc_papers.pipeline import costs, pace, plan, store
from dpmc_papers.pipeline.workload import Workload

ROOT = Path(__file__).parents[3]
KNOWN = costs.load(ROOT / "config" / "costs.yaml")


class Clock:
    """A clock that tests set."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_every_job_that_is_priced_is_announced():
    source = {"papers": ["raisa2021thesis"], "scale": "smoke", "results_dir": "nowhere"}
    work = Workload(load_config(source, ROOT), "raisa2021thesis")
    pace.announce([work], KNOWN)
    found = pace.announced()
    for stage in plan.stages(work, KNOWN):
        outputs = ("figure", "table", "numbered_table", "verdict", "guarantees", "page")
        rules = outputs if stage.rule == "output" else (stage.rule,)
        assert sum(len(found[rule]) for rule in rules) == stage.jobs
        seconds = sum(sum(found[rule].values()) for rule in rules)
        assert seconds == pytest.approx(stage.seconds)
    pace.announce([], KNOWN)
    assert pace.announced() == {}


def test_time_left_is_the_expected_time_over_the_cores(clock):
    follows = pace.Pace({"chain": {"a": 100.0, "b": 300.0}}, clock)
    follows.plan({"chain": 2})
    assert follows.seconds_left() == pytest.approx(400)
    follows.cores = 2
    assert follows.seconds_left() == pytest.approx(200)
    follows.start(1, "chain", "a")
    assert follows.running == 1
    assert follows.seconds_left() == pytest.approx(200)
    clock.now = 60.0
    assert follows.seconds_left() == pytest.approx((40 + 300) / 2)


def test_no_run_ends_before_its_longest_job(clock):
    follows = pace.Pace({"chain": {"a": 100.0}}, clock)
    follows.plan({"chain": 1})
    follows.cores = 8
    follows.start(1, "chain", "a")
    clock.now = 30.0
    assert follows.seconds_left() == pytest.approx(70)
    clock.now = 300.0
    assert follows.seconds_left() == 0


def test_jobs_that_take_twice_as_long_double_what_is_left(clock):
    paths = {str(k): 1000.0 for k in range(20)}
    follows = pace.Pace({"chain": paths}, clock)
    follows.plan({"chain": 20})
    for k in range(10):
        follows.start(k, "chain", str(k))
        clock.now += 2000.0
        follows.finish(k)
    assert follows.running == 0
    assert follows.seconds_left() == pytest.approx(2 * 10_000, rel=0.01)


def test_files_that_are_there_say_nothing_of_those_that_are_not(clock, tmp_path):
    done = tmp_path / "done"
    done.write_text("", encoding="utf-8")
    follows = pace.Pace({"chain": {str(done): 1000.0, "left": 10.0}}, clock)
    follows.plan({"chain": 1})
    assert follows.seconds_left() == pytest.approx(10)


@pytest.mark.parametrize("rule", ["raw", "data"])
def test_what_reads_rows_that_cannot_be_had_takes_no_time(rule, clock, tmp_path):
    rows = tmp_path / "rows.parquet"
    expected = {rule: {str(rows): 1.0}, "study": {"a": 5000.0, "b": 20.0}}
    follows = pace.Pace(expected, clock, {str(rows): [("study", "a")]})
    follows.plan({rule: 1, "study": 2})
    follows.start(1, rule, str(rows))
    assert follows.seconds_left() == pytest.approx(5021)
    store.write_absence(rows, "no file")
    follows.finish(1)
    clock.now = 1.0
    assert follows.seconds_left() == pytest.approx(20 + pace.SECONDS_OTHERWISE, rel=0.1)
    follows.start(2, "study", "a")
    assert follows.seconds_left() == pytest.approx(20 + pace.SECONDS_OTHERWISE, rel=0.1)


def test_rows_that_an_earlier_run_could_not_have_are_known(tmp_path):
    source = {"papers": ["alparslan2023thesis"], "scale": "smoke", "results_dir": str(tmp_path)}
    work = Workload(load_config(source, ROOT), "alparslan2023thesis")
    study = next(study for study in work.studies if study.problem == "power_plant")
    pace.announce([work], KNOWN)
    assert pace.announced()["study"][study.path] != pace.SECONDS_OTHERWISE
    raw = work.problems["power_plant"].raw
    for rows in (raw, study.data):
        assert ("study", study.path) in pace.readers()[rows]
    store.write_absence(study.data, "no file")
    pace.announce([work], KNOWN)
    assert pace.announced()["study"][study.path] == pace.SECONDS_OTHERWISE
    pace.announce([], KNOWN)
    assert pace.readers() == {}


def test_a_job_that_failed_is_left_to_do(clock):
    follows = pace.Pace({"chain": {"a": 50.0}}, clock)
    follows.plan({"chain": 1})
    follows.start(1, "chain", "a")
    follows.fail(1)
    assert follows.running == 0
    assert follows.seconds_left() == pytest.approx(50)
    follows.start(1, "chain", "a")
    clock.now = 50.0
    follows.finish(1)
    assert follows.seconds_left() == 0


def test_without_expectations_every_job_counts_the_same(clock):
    follows = pace.Pace({}, clock)
    follows.plan({"chain": 3, "figure": 2})
    assert follows.seconds_left() == pytest.approx(5 * pace.SECONDS_OTHERWISE)
    follows.finish(7)  # of which nobody has heard
    assert follows.running == 0


def test_times_in_words():
    told = [pace.in_words(s) for s in (0, 4.9, 12, 54, 56, 89, 3500, 3590, 7300)]
    assert told == [
        "5 s",
        "5 s",
        "15 s",
        "55 s",
        "1 min",
        "1 min",
        "58 min",
        "1 h 00 min",
        "2 h 02 min",
    ]
