"""Coverage of documents by their claims: sentences that can be tested have a row or a reason."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

from dpmc.types import DpmcError
from dpmc_papers.verdicts import claim_file, sentences

ROOT = Path(__file__).parents[3]
PAPERS = sorted(path.stem for path in ROOT.glob("config/published/*.yaml"))
GOOD = "- {where: section 1, says: a thing, rows: [A]}\n"


def ids_of(paper):
    values = claim_file.load(ROOT / f"config/published/{paper}.yaml")
    entries = [entry["id"] for entry in [*values["entries"], *values.get("series", ())]]
    return [*entries, *values.get("settings", ())]


@functools.cache
def functions(path):
    """Return the names of the functions of a file of tests, None if there is no such file."""
    file = ROOT / path
    if not file.is_file():
        return None
    return {n.name for n in ast.parse(file.read_text()).body if isinstance(n, ast.FunctionDef)}


def missing_tests(listed):
    """Return the tests that sentences name and that do not exist."""
    named = {test for sentence in listed for test in sentence.tests}
    return sorted(f"{path}::{name}" for path, name in named if name not in (functions(path) or ()))


@pytest.fixture(params=PAPERS)
def document(request):
    path = ROOT / f"config/published/sentences/{request.param}.yaml"
    if not path.is_file():
        pytest.skip(f"no list of the sentences of {request.param}")
    return request.param, path


def test_sentences_and_claims_name_each_other(document):
    paper, path = document
    sentences.check(sentences.load(path), ids_of(paper), path.name)


def test_tests_that_sentences_name_exist(document):
    assert missing_tests(sentences.load(document[1])) == []


def test_every_list_of_sentences_is_of_a_document():
    assert {path.stem for path in ROOT.glob("config/published/sentences/*")} <= set(PAPERS)


def test_a_sentence_has_rows_or_a_reason_with_tests(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(
        GOOD + '- where: section 2\n  says: another\n  instead: "no run; '
        'tests/a/test_b.py::test_c and tests/test_d.py"\n'
    )
    first, second = sentences.load(path)
    assert first == sentences.Sentence("section 1", "a thing", rows=("A",))
    assert (first.tests, second.rows) == ((), ())
    assert second.tests == (("tests/a/test_b.py", "test_c"), ("tests/test_d.py", ""))
    assert missing_tests([second]) == ["tests/a/test_b.py::test_c", "tests/test_d.py::"]
    here = "tests/papers/verdicts/test_coverage.py"
    reason = f"{here}::test_a_sentence_has_rows_or_a_reason_with_tests; {here}::test_x"
    assert missing_tests([sentences.Sentence("a", "b", instead=reason)]) == [f"{here}::test_x"]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "must be a list of sentences, got NoneType"),
        ("a: 1", "must be a list of sentences, got dict"),
        ("- [a", "line 1, "),
        ("- word", "line 1, a sentence must be a mapping, got 'word'"),
        (GOOD + GOOD, "line 2, the sentence 'a thing' is given twice"),
        (GOOD + "- {says: b, rows: [A]}", "line 2, `where` is missing"),
        ("- {where: a, rows: [A]}", "`says` is missing"),
        ("- {where: a, says: b}", "one of `rows` and `instead` must be given"),
        ("- {where: a, says: b, rows: [A], instead: c}", "one of `rows` and `instead` must be"),
        ("- {where: a, says: b, rows: [A], row: c}", "a key must be one of where, .* got 'row'"),
        ("- {where: a, says: b, rows: [A], rows: [B]}", "`rows` is given twice"),
        ("- {where: a, says: b, rows: A}", "`rows` must be a list of ids, got 'A'"),
        ("- {where: a, says: b, rows: []}", r"`rows` must be a list of ids, got \[\]"),
        ("- {where: a, says: b, rows: [1]}", r"`rows` must be text, got \[1\]"),
        ("- {where: a, says: b, rows: [A, A]}", "`rows` must name every id once"),
        ("- {where: a, says: b, instead: ' '}", "`instead` must be text, got ' '"),
        ("- {where: a, says: 2, instead: c}", "`says` must be text, got 2"),
    ],
)
def test_bad_sentences_are_refused(text, match, tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(DpmcError, match=match) as caught:
        sentences.load(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("ids", "match"),
    [
        (["T-1", "B"], "s.yaml: `rows` must name entries .* got 'T-2'; did you mean 'T-1'"),
        (["T-2", "B", "C"], "s.yaml: entry 'C' of the file of claims is named by no sentence"),
    ],
)
def test_claims_without_sentence_and_sentences_without_claim_are_refused(ids, match):
    listed = [sentences.Sentence("a", "b", rows=("T-2",)), sentences.Sentence("a", "c", ("B",))]
    sentences.check(listed, ["B", "T-2"], "s.yaml")
    with pytest.raises(DpmcError, match=match):
        sentences.check(listed, ids, "s.yaml")
