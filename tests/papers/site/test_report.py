"""Captions in the report of Snakemake: filled in, and free of markup that was not meant."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pytest
from docutils.core import publish_parts

from dpmc_papers.site.report import Caption

ROOT = Path(__file__).parents[3]
TEXT = """First of {{ config.paper }}: `tick`, *star*, a|b, tail_ and {{ output.kind }}.

Last of
*all*.
"""


@pytest.fixture
def caption(tmp_path: Path) -> Caption:
    (tmp_path / "one.rst").write_text(TEXT, encoding="utf-8")
    settings = {"paper": "somebody2020", "outputs": {"figure1": {"kind": "figure"}}}
    (tmp_path / "page.json").write_text(json.dumps(settings), encoding="utf-8")
    published = ROOT / "results" / "published" / "raisa2021dphmc"
    shutil.copy(published / "guarantees.csv", tmp_path)
    names = ("one.rst", "page.json", "guarantees.csv")
    return Caption("figure1", *(str(tmp_path / name) for name in names))


def test_a_caption_reads_as_it_was_written(caption: Caption) -> None:
    html = publish_parts(caption.told(), writer="html", settings_overrides={"halt_level": 2})
    body = html["body"]
    assert "<p>First of somebody2020: `tick`, *star*, a|b, tail_ and figure.</p>" in body
    assert "<p>Last of *all*.</p>" in body


def test_a_document_that_is_not_finished_has_none(caption: Caption) -> None:
    Path(caption.guarantees).unlink()
    assert caption.told() == ""


def test_a_job_is_handed_the_name_alone(caption: Caption) -> None:
    assert str(caption) == "one.rst"
    assert pickle.loads(pickle.dumps(caption)) == caption
