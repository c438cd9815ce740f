"""Coverage of documents by their claims: sentences that can be tested have a row or a reason."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest
import yaml

from dpmc_papers.verdicts import claim_file

ROOT = Path(__file__).parents[3]
PAPERS = sorted(path.stem for path in ROOT.glob("config/published/*.yaml"))
NEEDED = ("where", "says")
TEST = re.compile(r"(tests/[\w/]+\.py)(?:::(\w+))?")


def ids_of(paper):
    values = claim_file.load(ROOT / f"config/published/{paper}.yaml")
    entries = [entry["id"] for entry in [*values["entries"], *values.get("series", ())]]
    return [*entries, *values.get("settings", ())]


@functools.cache
def functions(path):
    """Names of the functions of a file of tests, and None for all of it; None without the file."""
    file = ROOT / path
    if not file.is_file():
        return None
    names = {n.name for n in ast.parse(file.read_text()).body if isinstance(n, ast.FunctionDef)}
    return {None, *names}


def load(paper):
    """Sentences of a document: where it says what, and the claims that judge it or why none can."""
    path = ROOT / f"config/published/sentences/{paper}.yaml"
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None


def faults(sentences, ids):
    """What is wrong with a list of sentences, beside the ids of the claims of its document."""
    found = []
    for entry in sentences:
        if not (set(entry) == {*NEEDED, "rows"} or set(entry) == {*NEEDED, "instead"}):
            found.append(f"keys {sorted(entry)}")
        rows = entry.get("rows", ["-"])
        texts = [*(entry.get(key, "-") for key in (*NEEDED, "instead")), *rows]
        if not all(isinstance(text, str) and text.strip() for text in texts):
            found.append(f"texts {texts}")
        found += [f"no claim {name}" for name in entry.get("rows", ()) if name not in ids]
        for path, name in TEST.findall(entry.get("instead", "")):
            if (name or None) not in (functions(path) or ()):
                found.append(f"no test {path}::{name}")
    named = [name for entry in sentences for name in entry.get("rows", ())]
    found += [f"no sentence of {name}" for name in sorted(set(ids) - set(named))]
    said = [(entry.get("where"), entry.get("says")) for entry in sentences]
    return found + [f"twice {pair}" for pair in sorted(set(said)) if said.count(pair) > 1]


@pytest.mark.parametrize("paper", PAPERS)
def test_sentences_and_claims_name_each_other(paper):
    sentences = load(paper)
    if sentences is None:
        pytest.skip(f"no list of the sentences of {paper}")
    assert faults(sentences, ids_of(paper)) == []


def test_every_list_of_sentences_is_of_a_document():
    assert {path.stem for path in ROOT.glob("config/published/sentences/*")} <= set(PAPERS)


HERE = "tests/papers/verdicts/test_coverage.py"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"rows": ["A", "C"]}, "no claim C"),
        ({"rows": ["A"]}, "no sentence of B"),
        ({"rows": ["A", "B"], "instead": "c"}, "keys ['instead', 'rows', 'says', 'where']"),
        ({"says": " "}, "texts ['section 1', ' ', '-', 'A', 'B']"),
        ({"says": "another", "where": "section 2"}, "twice ('section 2', 'another')"),
    ],
)
def test_faults_of_sentences_are_found(change, fault):
    reason = f"{HERE}::test_faults_of_sentences_are_found"
    first = {"where": "section 1", "says": "a thing", "rows": ["A", "B"], **change}
    second = {"where": "section 2", "says": "another", "instead": reason}
    found = faults([first, second], ["A", "B"])
    assert fault in found if fault else found == []


def test_a_test_that_a_sentence_names_must_exist():
    for name in (f"{HERE}::test_x", "tests/a/test_b.py::test_c", "tests/test_d.py"):
        sentence = {"where": "a", "says": "b", "instead": f"no run; {name}"}
        assert len(faults([sentence], [])) == 1
