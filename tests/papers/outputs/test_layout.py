"""Tables in the layout of their documents; rows of long tables that can be told apart."""

from __future__ import annotations

import functools
import io
import math
import re

import pandas as pd
import pytest
from markdown_it import MarkdownIt

from dpmc import registry, yaml_files
from dpmc_papers.config import reader
from dpmc_papers.outputs import _layout, _printed
from dpmc_papers.outputs._layout import Cell, Layout, block
from dpmc_papers.pipeline import files
from tests.support import invented
from tests.support.invented import ROOT


def outputs_of(paper):
    """Return what a file says of its outputs: enough to name tests, which is done everywhere."""
    return yaml_files.read_yaml(ROOT / "config" / "papers" / f"{paper}.yaml")["outputs"]


TABLES = [
    (paper, name)
    for paper in reader.papers(ROOT)
    for name, entry in outputs_of(paper).items()
    if entry["kind"] == "table"
]
NUMBERED = [(paper, name) for paper, name in TABLES if files.is_numbered(name)]


@functools.cache
def long_table(paper, name):
    made = invented.context(paper, name)
    return getattr(registry.load("output", paper), made.config["outputs"][name]["function"])(made)


@functools.cache
def laid_out(paper, name):
    return getattr(registry.load("output", paper), f"layout_{name}")(invented.context(paper, name))


@pytest.mark.parametrize(("paper", "name"), TABLES)
def test_a_reader_can_tell_all_rows_apart(paper, name):
    table = long_table(paper, name)
    assert len(table)
    assert invented.twins(table).empty
    assert invented.twins(invented.as_shown(paper, name, table)).empty


def test_a_planted_twin_is_found():
    table = long_table("vinaroz2022dpsep", "table2")
    planted = pd.concat([table, table.iloc[:1].assign(rmse=7.0)], ignore_index=True)
    assert invented.twins(planted).index.tolist() == [0, len(table)]


@pytest.mark.parametrize(("paper", "name"), NUMBERED)
def test_every_numbered_table_has_the_rows_and_numbers_of_its_document(paper, name):
    layout = laid_out(paper, name)
    assert all(len(row) == len(layout.columns) for b in layout.blocks for row in b.cells)
    # All that is printed of this table stands in its first block, once.
    first = [cell for row in layout.blocks[0].cells for cell in row if cell.printed]
    claims = invented.context(paper, name).published
    about = [b for b in claims["series"] if b["output"] == name]
    ids = {
        b["id"]
        for b in about
        if not b.get("printed_variants") or b["printed_variants"] == ["graves"]
    }
    ids -= {"T-6.2-quadrature"}  # the same numbers again
    printed = _printed.Printed(claims, *ids)
    # Tempering is not a column of Table 5.1: it is told by another.
    expected = [where for where, _ in printed._cells if where.get("quantity") != "model.tempering"]
    assert len(first) == len(expected)
    assert all(math.isfinite(cell.printed[0]) for cell in first)


@pytest.mark.parametrize(("paper", "name"), NUMBERED)
def test_latex_is_well_formed(paper, name):
    text = _layout.latex(laid_out(paper, name))
    check_latex(text)


def check_latex(text):
    body = [line for line in text.splitlines() if not line.startswith("%")]
    (columns,) = re.findall(r"\\begin\{tabular\}\{@\{\}([lr]+)@\{\}\}", body[0])
    depth = 0
    for sign in re.sub(r"\\[{}]", "", "\n".join(body)):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        assert depth >= 0
    assert depth == 0
    assert body[-1] == r"\end{tabular}"
    for line in body[1:-1]:
        if line.startswith("\\") and line.endswith("rule"):
            continue
        assert line.endswith(r" \\")
        ampersands = len(re.findall(r"(?<!\\)&", line))
        assert ampersands == (0 if line.startswith(r"\multicolumn") else len(columns) - 1)
        bare = re.sub(r"\\[\\&%$#_{}]", "", line)
        assert not re.search(r"[%#_~](?!\d)|(?<!\{)\[", bare), line
        assert bare.count("$") % 2 == 0
        assert line.isascii(), line


def test_broken_latex_is_noticed():
    text = _layout.latex(laid_out("vinaroz2022dpsep", "table4"))
    for broken in (
        text.replace(" & ", " # & ", 1),
        text.replace(")}", ")", 1),
        text.replace("&", "", 1),
    ):
        with pytest.raises((AssertionError, ValueError)):
            check_latex(broken)


@pytest.mark.parametrize(("paper", "name"), NUMBERED)
def test_markdown_is_a_table_per_block_with_columns_of_equal_width(paper, name):
    layout = laid_out(paper, name)
    text = _layout.markdown(layout)
    html = MarkdownIt("commonmark").enable("table").render(text)
    rows = sum(len(b.rows) + 1 for b in layout.blocks)
    assert html.count("<table>") == len(layout.blocks)
    assert html.count("<tr>") == rows
    assert html.count("<th") + html.count("<td") - html.count("<thead") == rows * (
        len(layout.heads) + len(layout.columns)
    )
    for part in text.split("\n\n"):
        assert len({len(line) for line in part.splitlines() if line.startswith("|")}) <= 1


@pytest.mark.parametrize(("paper", "name"), NUMBERED)
def test_csv_has_each_number_in_a_column_of_its_own(paper, name):
    layout = laid_out(paper, name)
    table = pd.read_csv(io.StringIO(_layout.csv(layout)))
    assert len(table) == sum(len(b.rows) for b in layout.blocks)
    others = table.drop(columns=[c for c in ("block", *layout.heads) if c in table])
    assert all(pd.api.types.is_numeric_dtype(others[c]) for c in others)
    assert any("printed" in str(c) for c in others)


def small(form="number", least=False):
    cells = {
        ("a", 0): Cell((0.01449, 0.5), (0.014, 0.4), (3, 1)),
        ("a", 1): Cell((-0.02, math.nan), (-0.5, 0.25), (3, 1)),
        ("b", 0): Cell((math.nan, math.nan), (7.0, math.nan), (3, 1)),
        ("b", 1): Cell(),
    }
    rows = {"a": ["A & B_1|2"], "b": ["50 %"]}
    body = block("ε = 1 holds", rows, (0, 1), lambda r, c: cells[r, c])
    return Layout("Title #1", ("row",), ("x", "y²"), (body,), form, least, ("A [note].",))


def test_a_cell_has_ours_and_the_printed_number():
    text = _layout.markdown(small("spread"))
    assert "0.014 ± 0.5 (0.014 ± 0.4)" in text
    assert "-0.020 (-0.500 ± 0.2)" in text  # half to even, as print rounds a tie
    assert "– (7.000)" in text
    assert "| A & B\\_1\\|2 |" in text
    latex = _layout.latex(small("spread"))
    assert r"A \& B\_1\textbar{}2 & 0.014 $\pm$ 0.5 {\scriptsize (0.014 $\pm$ 0.4)}" in latex
    assert r"$-$0.020 {\scriptsize ($-$0.500 $\pm$ 0.2)}" in latex
    assert r"50 \% & -- {\scriptsize (7.000)} &  \\" in latex
    check_latex(latex)


def test_the_least_of_several_numbers_is_bold_unless_all_are_the_same():
    text = _layout.markdown(small("spread", least=True))
    assert "**-0.020** (-0.500 ± 0.2)" in text
    assert text.count("**-") == 1
    same = Layout("", ("r",), ("x", "y"), (
        block("", {0: ["r"]}, (0, 1), lambda r, c: Cell((0.02290 + 1e-6 * c,), (), (4,))),
    ), least=True)  # fmt: skip
    assert "**0" not in _layout.markdown(same)


def test_digits_are_those_of_print():
    assert _layout.number(0.000779, 4) == "0.0008"
    assert _layout.number(0.000779, 4, cut=True) == "0.0007"
    assert _layout.number(4.3524, 4, cut=True) == "4.3524"
    assert _layout.number(-2.83, 3) == "-2.830"
    assert _layout.number(515345.0) == "515345"
    assert _layout.number(1e-5) == "1e-05"
    assert _layout.number(math.nan) == ""
    assert _layout.number(math.inf, 3) == "∞"


def runs(**columns):
    base = {"epsilon": 1.0, "status": "complete", "guarantee_epsilon": 1.0}
    return pd.DataFrame({**base, **columns}, index=range(2))


def test_titles_of_blocks_tell_which_epsilon_holds():
    assert _printed.held(runs()) == "ε = 1 holds"
    assert _printed.held(runs(epsilon=math.nan)) == ""
    assert _printed.held(runs(guarantee_epsilon=math.inf)) == "ε = 1 was asked for, none holds"
    some = runs(guarantee_epsilon=[3.5, 2.0])
    assert _printed.held(some) == "ε = 1 was asked for, 2 to 3.5 holds"
    assert _printed.held(some.assign(epsilon_replace=4.0)) == "ε = 1 was asked for, 4 holds"
    two = runs(epsilon=[1.0, 5.0], guarantee_epsilon=[12.7, math.inf])
    assert _printed.held(two) == "ε = 1, 5 were asked for, 12.7, ∞ hold"


def test_what_is_as_published_comes_first_and_blocks_are_not_blurred():
    layout = laid_out("vinaroz2022dpsep", "table2")
    assert [b.title.partition(" (")[0] for b in layout.blocks] == [
        "As published", "Really clipped, with valid privacy", "With valid privacy, tuned",
    ]  # fmt: skip
    long = long_table("vinaroz2022dpsep", "table2").set_index(["problem", "label"])
    for body, label in zip(
        layout.blocks, ("as_published", "dp_valid", "dp_valid_tuned"), strict=True
    ):
        for (problem,), cells in zip(body.rows, body.cells, strict=True):
            expected = long.loc[(problem.lower(), f"dp_sep-{label}")]
            assert cells[-1].ours == (expected["rmse"], expected["sd"])
    assert layout.columns == ("VI", "EP", "SEP", "SEP clipped", "DP-SEP")


def test_only_numbered_tables_have_a_layout():
    assert files.endings("table7_1", "table") == ("csv", "layout.csv", "md", "tex")
    for name in ("table1_draws", "table_profiles", "budget"):
        assert files.endings(name, "table") == ("csv",)
    assert files.endings("figure1", "figure")[0] == "pdf"
    for paper, name in NUMBERED:
        assert hasattr(registry.load("output", paper), f"layout_{name}"), (paper, name)
