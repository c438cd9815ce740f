"""Tables of DP-SEP in the layout of the document [vinaroz2022dpsep]."""

from __future__ import annotations

import math

import pandas as pd

from dpmc_papers.outputs import _dpsep_tables, _printed
from dpmc_papers.outputs._layout import Block, Cell, Layout, block
from dpmc_papers.outputs._printed import Printed
from dpmc_papers.pipeline.results import Context

TITLE = "Vinaroz and Park 2022, Table {}: {}. Ours, and in parentheses the printed number"
COLUMNS = {"vi": "VI", "ep": "EP", "sep": "SEP", "clipped_sep": "SEP clipped", "dp_sep": "DP-SEP"}
# The label of each column in each block, empty where nothing was run.
AS_PUBLISHED = {
    "vi": "vi-graves",
    **{name: f"{name}-as_published" for name in ("ep", "sep", "clipped_sep", "dp_sep")},
}
BLOCKS = {
    "As published": AS_PUBLISHED,
    "Really clipped, with valid privacy": {
        "clipped_sep": "clipped_sep-clipped_true",
        "dp_sep": "dp_sep-dp_valid",
    },
    "With valid privacy, tuned": {"dp_sep": "dp_sep-dp_valid_tuned"},
}
# Decimals of standard deviations: four, but in the column VI of Table 3.
DECIMALS = {("loglik", "vi"): 3}
NOTES = (
    "Means and standard deviations over splits. VI is a new run: nothing in the public code makes"
    " that column.",
)


def table1(context: Context) -> Layout:
    """Table 1, the row of epsilon 5 at the epsilon that it was run at too."""
    rows, long = context.metrics, _dpsep_tables.table1(context)
    metrics = {"f_published": "F-norm", "kl_published": "KL-divergence (proxy)"}
    as_run = {
        "f_published": Printed(context.published, "T-1-F-run"),
        "kl_published": Printed(context.published, "T-1-KL-run"),
    }
    as_told = {
        "f_published": Printed(context.published, "T-1-F", "T-1-SEP"),
        "kl_published": Printed(context.published, "T-1-KL", "T-1-SEP-KL"),
    }

    def made(title: str, variant: str, printed: dict[str, Printed]) -> Block:
        def cell(key: tuple[str, float], metric: str) -> Cell:
            method, epsilon = key
            same = long["epsilon"].eq(epsilon) | (long["epsilon"].isna() & math.isnan(epsilon))
            found = long.loc[long["label"].eq(f"{method}-{variant}") & same, metric].to_list()
            which = {"algorithm": method} | ({} if math.isnan(epsilon) else {"epsilon": epsilon})
            number = printed[metric].find(**which)
            return _printed.cell(found[0] if found else math.nan, number, 4)

        epsilons = printed["f_published"].values("epsilon")
        labels = {("dp_sep", float(e)): [f"DP-SEP (ε = {e:g})"] for e in epsilons}
        if variant == "as_published":
            labels = {("sep", math.nan): ["SEP (ε = ∞)"], **labels}
        return block(title, labels, metrics, cell)

    blocks = []
    for words, variant, printed in (
        ("As published", "as_published", as_told),
        ("The row of ε = 5 as it was run", "as_run", as_run),
        ("With valid privacy", "dp_valid", as_told),
    ):
        chosen = rows[rows["label"].eq(f"dp_sep-{variant}")]
        if len(chosen) or variant == "as_published":
            blocks.append(made(_printed.titled(words, chosen), variant, printed))
    notes = ("Further digits are cut off, as in print.",)
    title = TITLE.format(1, "accuracy of the posterior of a mixture")
    return Layout(title, ("Method",), tuple(metrics.values()), tuple(blocks), notes=notes)


def table2(context: Context) -> Layout:
    """Table 2: test errors of networks."""
    return _networks(context, _dpsep_tables.table2(context), "rmse", 2, "RMSE on test data")


def table3(context: Context) -> Layout:
    """Table 3: test log-likelihoods of networks."""
    return _networks(context, _dpsep_tables.table3(context), "loglik", 3, "test log-likelihood")


def table4(context: Context) -> Layout:
    """Table 4: sizes of data sets."""
    long = _dpsep_tables.table4(context)
    columns = {"rows": "# samps", "features": "# features"}
    sizes = {name: _printed.numbers(long, ["problem"], name) for name in columns}
    printed = {name: Printed(context.published, f"T-4-{name}") for name in columns}

    def cell(problem: str, name: str) -> Cell:
        ours = sizes[name].get((problem,), math.nan)
        return _printed.cell(ours, printed[name].find(problem=problem))

    problems = printed["rows"].values("problem") or list(long["problem"])
    rows = {name: [name.capitalize()] for name in problems}
    title = TITLE.format(4, "regression data sets")
    blocks = (block("", rows, columns, cell),)
    return Layout(title, ("Dataset",), tuple(columns.values()), blocks)


def _networks(context: Context, long: pd.DataFrame, metric: str, place: int, words: str) -> Layout:
    ends = ("", "-clipped", "-dp", "-vi")
    printed = Printed(context.published, *(f"T-{place}{end}" for end in ends))
    means = _printed.numbers(long, ["problem", "label"], metric)
    deviations = _printed.numbers(long, ["problem", "label"], "sd")
    problems = printed.values("problem") or context.problems(long)
    rows = {name: [name.capitalize()] for name in problems}
    blocks = []
    for title, labels in BLOCKS.items():

        def cell(problem: str, method: str, labels: dict[str, str] = labels) -> Cell:
            if method not in labels:
                return Cell()
            at = (problem, labels[method])
            ours = (means.get(at, math.nan), deviations.get(at, math.nan))
            number = printed.find(problem=problem, algorithm=method)
            return _printed.spread(*ours, number, DECIMALS.get((metric, method), 4))

        if not context.metrics["label"].isin(labels.values()).any():
            continue
        private = context.metrics[context.metrics["label"].eq(labels["dp_sep"])]
        head = _printed.titled(title, private, "DP-SEP: ")
        blocks.append(block(head, rows, COLUMNS, cell))
    title = TITLE.format(place, words)
    return Layout(
        title, ("Dataset",), tuple(COLUMNS.values()), tuple(blocks), form="spread", notes=NOTES
    )
