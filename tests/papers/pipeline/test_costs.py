"""Expected costs and batches: sizes from the configuration alone, no job forgotten or late."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmc.types import DpmcError
from dpmc_papers.config.reader import load_config
from dpmc_papers.data import _sizes
from dpmc_papers.pipeline import costs
from dpmc_papers.pipeline.workload import Workload
from tests.support import setups

ROOT = Path(__file__).parents[3]
KNOWN = costs.load(ROOT / "config" / "costs.yaml")


@pytest.fixture(scope="module")
def works():
    papers = ["raisa2021dphmc", "vinaroz2022dpsep"]
    config = load_config({"papers": papers, "scale": "paper", "results_dir": "results"}, ROOT)
    return {paper: Workload(config, paper) for paper in papers}


@given(
    st.lists(st.floats(0.01, 500), max_size=80),
    st.floats(0.1, 300),
    st.integers(1, 20),
)
def test_batches_are_long_enough_and_lose_no_job(seconds, least, most):
    numbers = costs.batches(seconds, least, most)
    assert len(numbers) == len(seconds)
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(len(set(numbers))))
    for number in set(numbers):
        inside = [value for value, n in zip(seconds, numbers, strict=True) if n == number]
        assert len(inside) <= most
        last = number == max(numbers)
        assert last or sum(inside) >= least or len(inside) == most


@given(
    st.lists(st.tuples(st.floats(0.01, 500), st.integers(2, 40)), max_size=80),
    st.floats(0.1, 300),
    st.integers(1, 20),
    st.integers(40, 120),
    st.integers(1, 4),
)
def test_no_submission_asks_for_more_than_the_longest_limit(jobs, least, most, longest, attempt):
    """Limits of whole minutes, as `requested_minutes` makes them, at every attempt."""
    seconds = [15.0 * limit for _, limit in jobs]
    numbers = costs.batches(
        [value for value, _ in jobs], least, most, [m for _, m in jobs], longest
    )
    assert len(numbers) == len(jobs)
    for number in set(numbers):
        inside = [k for k, n in enumerate(numbers) if n == number]
        together = costs.Submission(len(inside), sum(jobs[k][1] for k in inside))
        assert together.minutes <= longest
        asked = [costs.requested_minutes(seconds[k], attempt, together, longest) for k in inside]
        assert min(asked) >= 1
        assert sum(asked) <= longest
        if together.minutes * 2 ** (attempt - 1) <= longest:
            assert sum(asked) == together.minutes * 2 ** (attempt - 1)


def test_limits_cut_submissions_and_spare_a_long_job():
    assert costs.batches([10] * 5, 100, 10, [4] * 5, 8) == [0, 0, 1, 1, 2]
    assert costs.batches([10] * 5, 100, 10, [4] * 5, 20) == [0] * 5
    assert costs.batches([10] * 5, 100, 10, [4] * 5) == [0] * 5
    # One job whose limit is too long goes alone, and the last ones do not join it.
    assert costs.batches([10, 500, 10], 100, 10, [4, 40, 4], 8) == [0, 1, 2]


def test_a_job_asks_for_the_longest_limit_at_most_and_is_named_if_that_is_too_short():
    assert [costs.requested_minutes(600, attempt, None, 60) for attempt in (1, 2, 3)] == [
        40,
        60,
        60,
    ]
    assert costs.requested_minutes(7200, 1, None, 60) == 60
    assert costs.too_long({"a": 3600, "b": 10}, 60) is None
    told = costs.too_long({"a": 3601, "b": 10, "c": 7200}, 60)
    assert told is not None
    assert told.startswith("`longest_minutes` is 60, and 2 of 3 jobs should take longer")
    assert "(c: 120)" in told


def test_a_short_last_batch_joins_the_one_before():
    assert costs.batches([60, 60, 5], 100, 10) == [0, 0, 0]
    assert costs.batches([60, 60, 5], 100, 2) == [0, 0, 1]
    assert costs.batches([500, 500], 100, 10) == [0, 1]
    assert costs.batches([], 100, 10) == []


@pytest.mark.parametrize(("least", "most"), [(0, 1), (float("nan"), 1), (1, 0)])
def test_batches_refuse(least, most):
    with pytest.raises(DpmcError, match="must be"):
        costs.batches([1.0], least, most)


def test_requests_grow_and_stop_at_the_largest_node():
    asked = [costs.requested_memory_mb(1000, attempt) for attempt in (1, 2, 3)]
    assert asked == [1600, 3200, 6400]
    assert costs.requested_memory_mb(1000, 3, most=5000) == 5000
    assert costs.requested_memory_mb(1, 1) == costs.LEAST_MEMORY_MB
    assert [costs.requested_minutes(60, attempt) for attempt in (1, 2)] == [4, 8]
    assert costs.requested_minutes(0.1, 1) == costs.LEAST_MINUTES


def test_sites_of_ep_follow_rows_and_columns(works):
    """[vinaroz2022dpsep, Table 4]: 2 numbers for each row and weight; other methods have none."""
    found = {
        (s.problem, part.setup.method): costs.work_of(part.setup).megabytes
        for s in works["vinaroz2022dpsep"].studies
        for part in s.parts
    }
    # Of the tables that results/published has: bytes that the method itself counts for the
    # training rows, nine tenths of all.
    table = (ROOT / "results/published/vinaroz2022dpsep/table4.csv").read_text(encoding="utf-8")
    checked = 0
    for line in table.splitlines()[1:]:
        problem, status, *_, ep_bytes, _ = line.split(",")
        if status == "complete":
            assert found[problem, "ep"] == pytest.approx(float(ep_bytes) / 0.9 / 1e6, rel=0.15)
            checked += 1
    assert checked == 5
    assert found["protein", "sep"] == 0
    assert found["year", "ep"] > 50_000


def rows_of(name, **params):
    return setups.problem({"name": "p", "data": {"name": name, "params": params}})


def test_rows_are_sized_without_being_made():
    generated = rows_of("banana_rows", num_rows=7, theta=[0.0] * 3)
    assert _sizes.shape(generated) == (7, 3)
    drawn = rows_of("network_rows", num_rows=8000, dim=8)
    assert _sizes.shape(drawn) == (8000, 9)
    read = rows_of("uci_network", dataset="power")
    assert _sizes.shape(read) == (9568, 5)
    assert _sizes.megabytes(generated) == pytest.approx(7 * 3 * 8e-6)


def test_more_work_costs_more(works):
    jobs = works["raisa2021dphmc"].jobs
    of_label = {
        (job.setup.budget.epsilon, job.first): job
        for job in jobs
        if (job.problem, job.label) == ("paper_banana_2d", "dp_hmc")
        and job.experiment == "comparison"
    }
    by_epsilon = {
        epsilon: sum(
            KNOWN.expected_seconds("chain", j) for (e, _), j in of_label.items() if e == epsilon
        )
        for epsilon, _ in of_label
    }
    values = [by_epsilon[epsilon] for epsilon in sorted(by_epsilon)]
    assert len(values) == 7
    assert values == sorted(values)
    assert values[-1] > 10 * values[0] / 3


def test_a_table_that_was_not_measured_costs_by_its_size(works):
    parts = {
        (s.problem, part.label): part
        for s in works["vinaroz2022dpsep"].studies
        if s.experiment == "networks"
        for part in s.parts
    }
    small, large = parts["wine", "sep-as_published"], parts["year", "sep-as_published"]
    known = msgspec.structs.replace(KNOWN, measured={})
    each = [known.seconds_of(part) / costs.runs_of(part) for part in (small, large)]
    assert each[1] > 100 * each[0]


def test_a_job_of_studies_costs_what_its_parts_cost(works):
    for study in works["vinaroz2022dpsep"].studies:
        alone = [replace(study, parts=(part,)) for part in study.parts]
        start = KNOWN.start_up + KNOWN.seconds["study"]
        parts = sum(KNOWN.expected_seconds("study", one) - start for one in alone)
        assert KNOWN.expected_seconds("study", study) == pytest.approx(start + parts)
        memory = max(KNOWN.expected_memory_mb("study", one) for one in alone)
        assert KNOWN.expected_memory_mb("study", study) == memory


def test_costs_are_refused_in_one_line(tmp_path):
    text = (ROOT / "config" / "costs.yaml").read_text(encoding="utf-8")
    path = tmp_path / "costs.yaml"
    path.write_text(text.replace("start_up: 0.65", "start_up: -1"), encoding="utf-8")
    with pytest.raises(DpmcError, match="`start_up` must be a number > 0, got -1") as told:
        costs.load(path)
    assert "\n" not in str(told.value)
    path.write_text(text.replace("start_up: 0.65", ""), encoding="utf-8")
    with pytest.raises(DpmcError, match="start_up"):
        costs.load(path)
