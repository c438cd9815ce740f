"""Figures, tables and the report, from invented runs."""

from __future__ import annotations

import dataclasses
import html.parser
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from dpmc import published, registry
from dpmc.outputs import _report, _tables
from dpmc.outputs import raisa2021dphmc as outputs
from dpmc.types import DpmcError
from tests.unit import synthetic

ROOT = Path(__file__).parents[2]
PAPERS = ("raisa2021dphmc", "raisa2021thesis", "alparslan2023thesis", "vinaroz2022dpsep")
FIGURES = ("figure1", "figure1_variants", "figure2", "figure3")
TABLES = ("budget_table", "comparison_table", "clipping_table", "dimension_table")


@pytest.fixture(scope="module")
def context():
    config = yaml.safe_load((ROOT / "config/papers/raisa2021dphmc.yaml").read_text())
    return dataclasses.replace(synthetic.context(), config=config)


def overlaps(figure):
    """Return pairs of overlapping texts within each axes."""
    renderer = figure.canvas.get_renderer()
    found = []
    for axis in figure.axes:
        labels = [axis.title, axis.xaxis.label, axis.yaxis.label, *axis.texts]
        for side in (axis.xaxis, axis.yaxis):
            low, high = sorted(side.get_view_interval())
            shown = [tick for tick in side.get_major_ticks() if low <= tick.get_loc() <= high]
            labels += [tick.label1 for tick in shown if tick.label1.get_visible()]
        boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in labels if t.get_text()]
        for k, (text, box) in enumerate(boxes):
            found += [(text, other) for other, b in boxes[:k] if box.overlaps(b)]
    return found


def test_figure3_fills_the_page_when_all_or_no_runs_exceed_the_limits(context):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    for factor in (0.01, 100):
        metrics = context.metrics.assign(mmd=factor * context.metrics["mmd"])
        figure = outputs.figure3(dataclasses.replace(context, metrics=metrics))
        FigureCanvasAgg(figure).draw()
        for axis in figure.axes:
            box = axis.get_position()
            assert box.width > 0.35
            assert box.height > 0.25


@pytest.mark.parametrize("name", FIGURES)
def test_figures_draw_and_their_labels_do_not_overlap(name, context):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = getattr(outputs, name)(context)
    FigureCanvasAgg(figure).draw()
    assert figure.get_figwidth() == 6.75
    assert overlaps(figure) == []


def test_figure1_shows_every_epsilon_and_only_published_runs(context):
    figure = outputs.figure1(context)
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == [
        "Banana: MMD", "Banana: Mean error", "Gaussian: MMD", "Gaussian: Mean error",
    ]  # fmt: skip
    for axis in figure.axes:
        ticks = [label.get_text() for label in axis.get_xticklabels()]
        assert ticks == [str(value) for value in synthetic.EPSILONS]
        assert len(axis.patches) == 4 * len(synthetic.EPSILONS)


def test_figure2_takes_the_best_median_and_worst_runs(context):
    rows = context.experiment("comparison")
    samples = outputs._ranked_samples(context, rows)["dp_hmc"]
    here = rows[(rows["problem"] == "paper_banana_2d") & (rows["label"] == "dp_hmc")]
    mmds = np.sort(here.loc[here["epsilon"] == 15, "mmd"])
    assert [samples[k][2] for k in ("best", "median", "worst")] == [mmds[0], mmds[5], mmds[9]]
    kept = {r: fit.kept().reshape(-1, 2) for r, fit in context.fits["paper_banana_2d", "dp_hmc"]}
    worst = int(here.loc[here["mmd"] == mmds[9], "replicate"].iloc[0])
    assert sorted(map(tuple, samples["worst"][0])) == sorted(map(tuple, kept[worst]))


def test_figure2_shows_all_of_every_marginal(context):
    figure = outputs.figure2(context)
    for axis in figure.axes[:8]:
        top = max(line.get_ydata().max() for line in axis.lines)
        assert top < axis.get_ylim()[1]


def test_figure3_keeps_the_limits_of_the_paper(context):
    figure = outputs.figure3(context)
    assert [axis.get_ylim()[1] for axis in figure.axes] == [0.5, 0.5, 0.6, 0.6]


def test_figures_of_a_cut_down_run(context):
    few = synthetic.context(replicates=2, epsilons=(4,))
    metrics = few.metrics[few.metrics["variant"] == "as_published"]
    few = dataclasses.replace(few, metrics=metrics, config=context.config)
    for name in FIGURES:
        getattr(outputs, name)(few)


def test_outputs_say_what_they_lack(context):
    with pytest.raises(DpmcError, match="no runs of experiment 'clipping', allowed comparison"):
        outputs.figure3(dataclasses.replace(synthetic.context(parts=("comparison",))))
    with pytest.raises(DpmcError, match="no sample of 'paper_banana_2d', allowed none"):
        outputs.figure2(dataclasses.replace(context, references={}))
    with pytest.raises(DpmcError, match="no chains of variant 'as_published'"):
        outputs.figure2(dataclasses.replace(context, fits={}))


def test_budget_table_tells_the_real_guarantee(context):
    table = outputs.budget_table(context)
    row = table[(table["label"] == "dp_sgld-as_published") & (table["epsilon"] == 4)].iloc[0]
    assert row["guarantee_epsilon"] == 2
    assert row["total_iterations"] == 4 * row["num_iterations"]
    assert not table.duplicated(["problem", "label", "epsilon"]).any()
    assert list(table["problem"].unique())[:2] == ["paper_banana_2d", "paper_gauss_10d"]


def test_tables_hold_the_quartiles(context):
    table = outputs.comparison_table(context)
    chosen = (table["problem"] == "paper_gauss_10d") & (table["label"] == "dp_hmc")
    row = table[chosen & (table["epsilon"] == 8)].iloc[0]
    runs = context.metrics.query(
        "experiment == 'comparison' and problem == 'paper_gauss_10d' and label == 'dp_hmc' "
        "and epsilon == 8"
    )["mmd"]
    assert row["mmd_median"] == np.median(runs)
    assert row["mmd_q3"] == np.quantile(runs, 0.75)
    assert row["runs"] == 10
    clipping = outputs.clipping_table(context)
    assert (clipping["guarantee_epsilon"] == math.inf).all()
    assert set(outputs.dimension_table(context)["dim"]) == {5, 10, 20}


def test_tables_are_written_alike(tmp_path, context):
    for name in TABLES:
        table = getattr(outputs, name)(context)
        _tables.write(table, tmp_path / "a.csv")
        _tables.write(table.copy(), tmp_path / "b.csv")
        assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
        back = pd.read_csv(tmp_path / "a.csv")
        assert list(back.columns) == list(table.columns)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_output_of_the_configuration_exists(paper):
    config = yaml.safe_load((ROOT / f"config/papers/{paper}.yaml").read_text())
    module = registry.load("output", paper)
    for name, entry in config["outputs"].items():
        assert callable(getattr(module, entry["function"])), name
        assert (ROOT / "workflow/report" / entry["caption"]).is_file()


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.images, self.levels = [], set(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids.add(values.get("id"))
        if tag == "a":
            self.links.append(values["href"])
        if tag == "img":
            self.images.append(values)
        if tag in ("h1", "h2", "h3"):
            self.levels.append(tag)
        if tag not in ("meta", "img", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def report(context, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    (folder / "figure1.png").write_bytes(b"not really an image")
    claims = published.load(ROOT / "config/published/raisa2021dphmc.yaml")
    verdicts = published.verdicts(
        {**claims, "resamples": 50}, context.metrics, context.baselines, context
    )
    captions = {
        name: (ROOT / "workflow/report" / entry["caption"]).read_text()
        for name, entry in context.config["outputs"].items()
    }
    return _report.render(
        context.config,
        context.metrics,
        verdicts,
        {"budget": outputs.budget_table(context), "comparison": outputs.comparison_table(context)},
        {"figure1": "figure1.png", "figure3": "figure3.png"},
        captions,
        {"command": "snakemake", "machine": {"cores": 2, "note": "<script>"}},
        folder=folder,
        scale="quick",
    )


def test_report_is_one_well_formed_page_without_network(report):
    page = Page(report)
    assert page.open == []
    assert page.images[0]["src"].startswith("data:image/png;base64,")
    assert page.images[1]["src"] == "figure3.png"
    assert all(image["alt"] for image in page.images)
    assert page.levels[0] == "h1"
    assert page.levels.count("h1") == 1
    for target in (link[1:] for link in page.links if link.startswith("#")):
        assert target in page.ids
    assert "http" not in "".join(image["src"] for image in page.images)
    assert "<script" not in report


def test_report_counts_the_cells_of_a_printed_series(context):
    outcomes = ["reproduced", "reproduced", "not_reproduced", "not_comparable"]
    cells = pd.DataFrame(
        [
            {"id": f"box/model/{k}", "where": "Figure 9", "variant": "as_published",
             "published": f"{k}", "ours": 1.0, "ours_se": 0.1, "rule": "r", "verdict": outcome,
             "reason": "why"}
            for k, outcome in enumerate(outcomes)
        ],
        columns=list(published.COLUMNS),
    )  # fmt: skip
    text = _report.render(context.config, context.metrics, cells, {}, {}, {})
    assert re.search(r"<tr><td>Figure 9</td>(\s*<td[^>]*>[^<]*</td>)+", text)
    (summary,) = re.findall(r"<tr><td>Figure 9</td>.*?</tr>", text, re.DOTALL)
    assert re.findall(r'<td class="number">(\d+)</td>', summary) == ["2", "1", "1"]
    assert text.count('<tr class="') == len(outcomes)


def test_report_tells_what_is_private_and_what_is_not(report):
    assert "No noise was added: there is no privacy guarantee." in report
    assert "these results have no privacy guarantee" in report
    assert "Outside of every guarantee: tuning; start points; clip fractions" in report
    assert "ε = 1 (asked for 2), 2 (asked for 4)" in report


def test_report_escapes_and_refuses_broken_captions(context, report):
    assert "&lt;script&gt;" in report
    empty = pd.DataFrame(columns=list(published.COLUMNS))
    arguments = (context.config, context.metrics, empty, {}, {})
    with pytest.raises(DpmcError, match="caption of figure1: 'nothing' is undefined"):
        _report.render(*arguments, {"figure1": "{{ nothing }}"})
    assert "Figures</h2>" not in _report.render(*arguments, {})


def test_compact_merges_quartiles_only():
    table = pd.DataFrame({"a_q1": [1.0], "a_median": [2.5], "a_q3": [3.0], "b_median": [np.nan]})
    shown = _report.compact(table)
    assert list(shown.columns) == ["a", "b_median"]
    assert shown["a"][0] == "2.5 [1, 3]"
