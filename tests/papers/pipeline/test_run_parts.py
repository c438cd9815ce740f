"""Parts of tables: the same bytes whatever is known already, and nothing made twice."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dpmc.types import UNAVAILABLE, Dataset, DpmcError, UnavailableError
from dpmc_papers.config import grids, kept_draws
from dpmc_papers.config.setups import StudySetup
from dpmc_papers.pipeline import folders, run_parts, store
from dpmc_papers.pipeline.jobs import StudyPart, part_of
from tests.support import setups
from tests.support.papers import load

POINTS = [{"epsilon": 4.0}, {"epsilon": 0.5}, {"epsilon": 10.0}]


def part(
    label: str = "one",
    first: int = 0,
    last: int = 2,
    digest: str = "0123abcd",
    problem: str = "rows",
) -> StudyPart:
    setup = StudySetup(
        paper="p",
        study="s",
        experiment="e",
        problem=setups.problem({"name": problem, "data": {"name": "banana_rows", "params": {}}}),
        label=label,
        method="m",
        variant="corrected",
        params={},
        outside=[],
        seed=1,
        points=POINTS,
    )
    return StudyPart(label, "all", digest, first, last, setup)


class Measure:
    """Counts what it is asked for; rows come replicate by replicate, two for each point."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def __call__(self, wanted, replicates, progress) -> pd.DataFrame:
        self.asked += [(wanted.label, replicate) for replicate in replicates]
        names = ["eps=4", "eps=0.5", "eps=10"]
        return pd.DataFrame(
            [
                {"point": name, "replicate": replicate, "value": 100 * replicate + k + row / 2}
                for replicate in replicates
                for k, name in enumerate(names)
                for row in range(2)
            ]
        )


def write(folder: Path, name: str, parts, measure) -> Path:
    """Write a table as a job does."""
    known = run_parts.earlier(folder, "rows", [entry.digest for entry in parts])
    path = folder / f"rows-{name}.parquet"
    store.write_parts(path, run_parts.run_parts(parts, known, measure))
    return path


def test_a_table_has_points_in_order_and_within_each_replicates(tmp_path):
    table = store.read_tables([write(tmp_path, "00000000", [part()], Measure())])
    assert list(dict.fromkeys(table["point"])) == ["eps=4", "eps=0.5", "eps=10"]
    for _, rows in table.groupby("point"):
        assert list(rows["replicate"]) == [0, 0, 1, 1, 2, 2]
        assert rows["value"].is_monotonic_increasing


def test_one_replicate_more_computes_one_and_gives_the_same_bytes(tmp_path):
    new, old = tmp_path / "new", tmp_path / "old"
    fresh = write(new, "11111111", [part(last=3)], Measure())
    write(old, "00000000", [part()], Measure())
    measure = Measure()
    again = write(old, "11111111", [part(last=3)], measure)
    assert measure.asked == [("one", 3)]
    assert again.read_bytes() == fresh.read_bytes()


def test_another_method_of_the_job_leaves_the_first_as_it_is(tmp_path):
    first = part()
    write(tmp_path, "00000000", [first, part("two", digest="11111111")], Measure())
    measure = Measure()
    changed = part("two", digest="22222222")
    path = write(tmp_path, "11111111", [first, changed], measure)
    assert {label for label, _ in measure.asked} == {"two"}
    fresh = write(tmp_path / "fresh", "11111111", [first, changed], Measure())
    assert path.read_bytes() == fresh.read_bytes()


def test_parts_divided_otherwise_are_not_computed_again(tmp_path):
    write(tmp_path, "00000000", [part(last=1)], Measure())
    write(tmp_path, "11111111", [part(first=2, last=4)], Measure())
    measure = Measure()
    path = write(tmp_path, "22222222", [part(last=4)], measure)
    assert measure.asked == []
    fresh = write(tmp_path / "fresh", "22222222", [part(last=4)], Measure())
    assert path.read_bytes() == fresh.read_bytes()


def test_another_digest_is_never_taken_over(tmp_path):
    """Should a changed setting keep its rows, this fails."""
    write(tmp_path, "00000000", [part()], Measure())
    measure = Measure()
    write(tmp_path, "11111111", [part(digest="ffffffff")], measure)
    assert measure.asked == [("one", replicate) for replicate in range(3)]


def test_rows_of_another_problem_are_not_looked_at(tmp_path):
    write(tmp_path, "00000000", [part()], Measure()).rename(tmp_path / "rows_b-00000000.parquet")
    assert run_parts.earlier(tmp_path, "rows", ["0123abcd"]) == {}
    assert set(run_parts.earlier(tmp_path, "rows_b", ["0123abcd"])) == {"0123abcd"}


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    middle = len(content) // 3
    content[middle : middle + 8] = bytes(8)
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def replace(path: Path) -> None:
    """Put another table in its place, undamaged, of which its log knows nothing."""
    other = pd.DataFrame({"point": ["eps=4"], "replicate": [0], "value": [-1.0]})
    store.write_parts(path, [("0123abcd", store.to_rows(other))])


@pytest.mark.parametrize("spoil", [damage, cut, replace])
def test_nothing_is_taken_from_a_table_that_is_damaged_or_replaced(tmp_path, spoil):
    path = write(tmp_path / "studies", "00000000", [part()], Measure())
    log = tmp_path / "logs" / "studies" / "rows-00000000.log"
    log.parent.mkdir(parents=True)
    log.write_text(folders.told(path) + "\n", encoding="utf-8")
    assert set(run_parts.earlier(path.parent, "rows", ["0123abcd"])) == {"0123abcd"}
    spoil(path)
    assert run_parts.earlier(path.parent, "rows", ["0123abcd"]) == {}


def test_lines_tell_the_time_of_each_part_and_what_was_taken_over(tmp_path):
    write(tmp_path, "00000000", [part()], Measure())
    known, lines = run_parts.earlier(tmp_path, "rows", ["0123abcd"]), []
    list(run_parts.run_parts([part(last=3)], known, Measure(), lines.append))
    (line,) = lines
    assert "s of processor time, 3 taken over: one, all, replicates 0 to 3" in line


def order_of(problem: str) -> list[str]:
    """The methods of a problem in the order in which they are computed."""
    measure, labels = Measure(), [f"m{k}" for k in range(5)]
    parts = [
        part(label, last=0, digest=f"{k:08d}", problem=problem) for k, label in enumerate(labels)
    ]
    given = list(run_parts.run_parts(parts, {}, measure))
    assert [digest for digest, _ in given] == [entry.digest for entry in parts]
    order = [label for label, _ in measure.asked]
    assert sorted(order) == labels
    return order


def test_problems_begin_with_different_methods_and_keep_the_order_of_the_table():
    first, second = order_of("simulated_2d"), order_of("simulated_5d")
    assert first[0] != second[0]
    assert order_of("simulated_2d") == first


def test_of_no_parts_nothing_is_yielded():
    assert list(run_parts.run_parts([], {}, Measure())) == []


def test_parts_of_other_columns_are_refused(tmp_path):
    tables = [store.to_rows(pd.DataFrame({name: [1.0]})) for name in "ab"]
    with pytest.raises(DpmcError, match="must have the same columns"):
        store.write_parts(tmp_path / "x.parquet", [("0" * 8, table) for table in tables])
    assert list(tmp_path.iterdir()) == []


def test_a_table_without_parts_has_none(tmp_path):
    store.write_table(tmp_path / "x.parquet", pd.DataFrame({"a": [1.0]}))
    assert store.read_parts(tmp_path / "x.parquet") == []


@pytest.fixture(scope="module")
def real() -> StudyPart:
    """A part of a study that takes little time, of several points."""
    from dpmc_papers.pipeline.workload import Workload

    paper = "alparslan2023thesis"
    work = Workload(load("smoke", paper), paper)
    return next(p for s in work.studies if s.experiment == "posterior_laplace" for p in s.parts)


def test_a_real_study_gives_the_same_bytes_in_two_steps(tmp_path, real):
    import dataclasses

    from dpmc_papers.config.problems import make_data

    def measure(wanted, replicates, progress):
        rows = lambda: make_data(wanted.setup.problem, wanted.setup.seed)  # noqa: E731
        return run_parts.measured(wanted, replicates, rows, progress)

    whole = dataclasses.replace(real, first=0, last=1)
    fresh = write(tmp_path / "fresh", "00000000", [whole], measure)
    write(tmp_path, "11111111", [dataclasses.replace(whole, last=0)], measure)
    assert write(tmp_path, "00000000", [whole], measure).read_bytes() == fresh.read_bytes()


def test_rows_that_cannot_be_had_are_named_in_the_table():
    from dpmc_papers.pipeline.workload import Workload

    def rows() -> Dataset:
        raise UnavailableError("no network")

    paper = "alparslan2023thesis"
    work = Workload(load("smoke", paper), paper)
    wanted = next(p for s in work.studies if s.experiment == "real_data" for p in s.parts)
    table = run_parts.measured(wanted, [0], rows, lambda *_: None)
    assert set(table["status"]) == {f"{UNAVAILABLE}: no network"}
    assert len(table) == len(wanted.setup.points)


def chosen(label: str, experiment: str = "posterior_laplace", replicate: int = 1) -> StudyPart:
    from dpmc_papers.pipeline.workload import Workload

    work = Workload(load("smoke", "alparslan2023thesis"), "alparslan2023thesis")
    (job,) = [job for job in work.studies if job.experiment == experiment][:1]
    point = grids.name(next(p for p in job.parts if p.label == label).setup.points[-1])
    return part_of(work.studies, experiment, job.problem, label, point, replicate)[1]


def rows_of(wanted: StudyPart) -> Dataset:
    from dpmc_papers.config.problems import make_data

    return make_data(wanted.setup.problem, wanted.setup.seed)


def test_draws_of_a_study_are_those_that_its_table_measures():
    wanted = chosen("pmmh-corrected", replicate=0)
    draws = run_parts.draws_of(wanted, rows_of(wanted))
    table = run_parts.measured(wanted, [0], lambda: rows_of(wanted), lambda *_: None)
    assert draws.ndim == 3
    assert draws.shape[1:] == (1, 1)
    assert len(table) == 1
    assert draws.mean() == pytest.approx(table["estimate"][0], rel=1e-14)
    assert draws.std() == pytest.approx(table["estimate_sd"][0], rel=1e-14)


def test_a_method_without_a_chain_has_no_draws():
    wanted = chosen("quadrature", replicate=0)
    with pytest.raises(DpmcError, match="`label` must be a method that draws a chain"):
        run_parts.draws_of(wanted, rows_of(wanted))


def test_draws_are_forgotten_where_nobody_asks():
    wanted = chosen("pmmh-corrected", replicate=0)
    with kept_draws.kept() as found:
        pass
    run_parts.measured(wanted, [0], lambda: rows_of(wanted), lambda *_: None)
    assert found == {}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"study": "none"}, "`experiment` must be one of"),
        ({"problem": "none"}, "`problem` must be one of normal_variance"),
        ({"label": "none"}, "`label` must be one of"),
        ({"point": "eps=3"}, "`point` of pmmh-corrected must be one of"),
        ({"replicate": 999}, "`seed` of pmmh-corrected must be 0 to"),
    ],
)
def test_what_is_no_replicate_of_a_study_is_one_line(changed, told):
    from dpmc_papers.pipeline.workload import Workload

    wanted = chosen("pmmh-corrected", replicate=0)
    asked = {
        "study": "posterior_laplace",
        "problem": "normal_variance",
        "label": "pmmh-corrected",
        "point": grids.name(wanted.setup.points[0]),
        "replicate": 0,
    }
    work = Workload(load("smoke", "alparslan2023thesis"), "alparslan2023thesis")
    with pytest.raises(DpmcError, match=told) as error:
        part_of(work.studies, **{**asked, **changed})
    assert "\n" not in str(error.value)
