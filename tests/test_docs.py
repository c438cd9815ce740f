"""Documentation: examples run as printed, links and commands lead to files that are there."""

from __future__ import annotations

import ast
import fnmatch
import os
import re
import runpy
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy import stats

import dpmc
from dpmc import statsel
from dpmc.__main__ import main
from dpmc.privacy import GaussianBudget
from dpmc.statsel.fisher import information
from dpmc.types import DpmcError, Guarantee
from dpmc_papers.config.crosschecks import check_paper
from dpmc_papers.data import _uci
from dpmc_papers.pipeline.workload import Workload
from tests.support.papers import load, with_paper
from tests.support.selection import names_of_tests, select_nothing

ROOT = Path(__file__).parents[1]


def blocks(path: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(encoding="utf-8"), re.DOTALL)


def page_text(path: str) -> str:
    """The text of a page on one line."""
    return " ".join((ROOT / path).read_text(encoding="utf-8").split())


def pages() -> list[Path]:
    return [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *sorted((ROOT / "docs").glob("*.md")),
    ]


def anchors(page: Path) -> set[str]:
    """Names of the headings of a page in links."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", ["README.md", "docs/library.md"])
@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")  # of fewer rows than printed
def test_the_example_of_a_fit_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = "\n".join(blocks(page))
    names: dict[str, object] = {}
    exec(example.replace("100_000", "5_000"), names)
    assert names["fit"].guarantee.epsilon <= 1
    assert np.isfinite(names["fit"].draws).all()


def test_the_population_of_the_guide_is_one():
    """The law of its draws is tested at an error rate of 1e-6; the seed is fixed."""
    (text,) = [block for block in blocks("docs/extending.md") if '"log_normal"' in block]
    names: dict[str, object] = {}
    exec(text, names)
    population, theta = names["log_normal"](20.0), 2.0
    x, h = np.array([0.3, 2.0, 9.0]), 1e-5
    slope = population.log_density(x, theta + h) - population.log_density(x, theta - h)
    assert population.score(x, theta) == pytest.approx(slope / (2 * h), rel=1e-6, abs=1e-9)
    draws = population.draw(theta, np.random.default_rng(1), 2000)
    assert stats.kstest(draws, stats.lognorm(1.0, scale=theta).cdf).pvalue > 1e-6
    mechanism, statistic = statsel.mechanism("per_record_laplace"), statsel.statistic("pow_1")
    found = information.information(population, statistic, mechanism, 10.0, 100, theta)
    z = np.linspace(-9, 9, 2001)
    weights = stats.norm.pdf(z) * (z[1] - z[0])
    y, scale = np.linspace(-30, 50, 4001)[:, None], 2.0
    kernel = np.exp(-np.abs(y - np.minimum(theta * np.exp(z), 20.0)) / scale) / (2 * scale)
    density, slope = kernel @ weights, kernel @ (weights * z / theta)
    assert found == pytest.approx(100 * np.trapezoid(slope**2 / density, y[:, 0]), rel=1e-3)


def test_every_file_and_heading_that_the_documentation_links_to_is_there():
    missing = []
    for page in pages():
        for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            target, _, anchor = link.partition("#")
            if "://" in target:
                continue
            path = page.parent / target if target else page
            if not path.exists() or (anchor and anchor not in anchors(path)):
                missing.append(f"{page.name}: {link}")
    assert missing == []


def test_every_file_that_a_command_of_the_documentation_runs_is_there():
    pattern = r"uv run (?:python|pytest)((?: -\S+ \d+)?) ([\w./]+\.py|tests/\w+)"
    named = {
        path
        for page in pages()
        for _, path in re.findall(pattern, page.read_text(encoding="utf-8"))
    }
    assert "tests/mutation/run.py" in named
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_every_sentence_of_the_promise_has_a_test_that_is_there():
    text = (ROOT / "docs/promise.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    rows = re.findall(r"^\| (?!sentence|---)(.*) \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) > 20
    for sentence, named in rows:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", named)
        assert tests, sentence
        for path, name in tests:
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            assert name in {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}, name


def test_the_index_lists_every_page():
    text = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"\]\((\w+\.md)", text))
    assert listed == {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}


def errata_text() -> str:
    return (ROOT / "docs/errata.md").read_text(encoding="utf-8")


def commands(text: str) -> list[str]:
    """Words of tests: the code behind "Evidence:" of a paragraph, up to a semicolon."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    evidence = [found for part in paragraphs for found in re.findall(r"Evidence: ([^;]*)", part)]
    return [word for listed in evidence for word in re.findall(r"`([^`]+)`", listed)]


def address(title: str) -> str:
    """The address of a heading, as GitHub and Sphinx make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def repeated_anchors(text: str) -> list[str]:
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    counts = Counter(address(title) for title in titles)
    return sorted(anchor for anchor, number in counts.items() if number > 1)


def missing_rows(text: str, rows: set[str]) -> list[str]:
    """Rows of verdict.csv that a page names as code, shell patterns included, and nobody has."""
    lines = re.findall(r"(?:`[^`]+`(?:,| to| and)? )+(?:in|of) `verdict\.csv`", text)
    named = [name for line in lines for name in re.findall(r"`([A-Z]-[^`]+|\*[^`]+)`", line)]
    assert named
    return [name for name in named if not fnmatch.filter(rows, name)]


def test_every_test_that_the_errata_name_is_there():
    words = commands(errata_text())
    assert len(words) > 100
    assert select_nothing(words, names_of_tests(ROOT / "tests")) == []


def test_a_command_that_selects_no_test_is_found():
    """A helper, a word of a docstring and a name that was changed select nothing."""
    text = "Evidence: `printed_sign`, `acceptance_rate`; `table1.csv`"
    words = commands(f"{text}\n\nEvidence: `no_such_fault`,\n`test_langevin`")
    assert words == ["printed_sign", "acceptance_rate", "no_such_fault", "test_langevin"]
    names = names_of_tests(ROOT / "tests/documents") | {"test_langevin.py"}
    assert select_nothing(words, names) == ["acceptance_rate", "no_such_fault"]


def test_every_point_of_the_errata_says_what_is_right_and_what_shows_it():
    points = re.split(r"^#{2,4} .*$", errata_text(), flags=re.MULTILINE)
    titles = re.findall(r"^(#{2,4}) (.*)$", errata_text(), re.MULTILINE)
    for (level, title), point in zip(titles, points[1:], strict=True):
        if level == "####" and not title.startswith("Slips"):
            assert point.count("**Right:**") == 1, title
        if level == "####":
            words = " ".join(point.split())
            assert ("Evidence: " in words) + ("Shown by" in words) == 1, title


def test_every_heading_of_the_errata_has_an_anchor_of_its_own():
    text = errata_text()
    assert repeated_anchors(text) == []
    point = re.search(r"^#### (.*)$", text, re.MULTILINE)
    assert repeated_anchors(f"{text}\n#### {point[1].upper()}!\n") == [address(point[1])]


def test_every_verdict_that_the_errata_name_is_a_claim():
    files = (ROOT / "config/published").glob("*.yaml")
    rows = {row for path in files for row in re.findall(r"\bid: ([^\s,}]+)", path.read_text())}
    text = " ".join(errata_text().split())
    assert missing_rows(text, rows) == []
    assert missing_rows("`A-1` to `*-two` in `verdict.csv`", {"A-2"}) == ["A-1", "*-two"]


def test_the_errata_start_with_links_to_the_gravest():
    chapter = errata_text().partition("## The gravest\n")[2].partition("\n## ")[0]
    linked = re.findall(r"\]\(#([\w-]+)\)", chapter)
    titles = re.findall(r"^#### (.*)$", errata_text(), re.MULTILINE)
    assert len(linked) == chapter.count("\n- ") > 5
    assert set(linked) <= {address(title) for title in titles}


@pytest.fixture
def logistic():
    if not os.environ.get(_uci.FOLDER_VARIABLE):
        pytest.skip(f"{_uci.FOLDER_VARIABLE} names no folder with the red wine file")
    return runpy.run_path(str(ROOT / "docs/examples/logistic_regression.py"))


def test_penalty_is_exact_on_red_wine(logistic):
    """No ratio is clipped, and the means agree with a long exact chain to 5 standard errors."""
    import arviz as az

    rows, model = logistic["build"]()
    assert np.linalg.norm(rows.x, axis=1).max() <= rows.bounds["row_norm"]
    truth = logistic["exact"](rows, model, 60_000)
    fit = logistic["sample"](rows, model, 1000, seed=1, diagnostics="exact")
    assert fit.totals["ratio_clipped"].sum() == 0
    draws = fit.kept()[0]
    ess = az.ess(fit.to_arviz())["theta"].to_numpy()
    error = (draws.mean(0) - truth.kept()[0].mean(0)) / (draws.std(0) / np.sqrt(ess))
    assert (np.abs(error) < 5).all()


def test_a_statistic_is_selected_and_its_posterior_agrees_with_quadrature(tmp_path, capsys):
    """Means of the posteriors agree to 5 standard errors: a chance of 1e-6 for each statistic."""
    example = runpy.run_path(str(ROOT / "docs/examples/statistic_selection.py"))
    best = {epsilon: example["rank"](epsilon).best for epsilon in (1.0, 5.0, 20.0)}
    assert best == {1.0: "|x|^0.5", 5.0: "|x|", 20.0: example["candidates"][2].name}
    x = example["records"](1)
    for statistic in example["candidates"]:
        draws, posterior = example["estimate"](statistic, x, num_iterations=20_000, seed=1)
        assert abs(draws.mean - posterior.mean) < 5 * draws.standard_error
        assert draws.guarantee.epsilon == 5.0
    figure = tmp_path / "ranking.png"
    example["main"](figure)
    assert figure.stat().st_size > 10_000
    assert "overtakes" in capsys.readouterr().out


def test_the_tutorial_runs_from_rows_to_a_figure(tmp_path, monkeypatch, capsys):
    """The seed is fixed. Errors of exact intervals would exceed four deviations in one of 2,000."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, object] = {}
    for block in blocks("docs/tutorial.md"):
        exec(block, names)
    assert (np.abs(names["distance"]) < 4 * names["draws"].std(axis=0) / names["exact"].bse).all()
    low, _, high = names["low"], names["middle"], names["high"]
    assert high[3] < low[0]
    assert (tmp_path / "tutorial.png").stat().st_size > 10_000
    assert "(1, 1e-06)-DP, substitution of one row" in capsys.readouterr().out


def test_the_picture_of_methods_has_all_cells_of_its_table(tmp_path):
    example = runpy.run_path(str(ROOT / "docs/examples/methods.py"))
    cells = example["measured"]((ROOT / "docs/methods.md").read_text(encoding="utf-8"))
    assert len(cells) == 46
    assert cells.groupby("method").size().to_dict() == dict.fromkeys(cells.method, 6) | {
        "dp_barker": 4
    }
    example["main"](tmp_path / "methods.png")
    shown = ROOT / "docs/images/methods.png"
    assert 10_000 < (tmp_path / "methods.png").stat().st_size < 120_000
    assert shown.stat().st_size < 120_000


def test_every_yes_of_the_comparison_names_a_test():
    text = (ROOT / "docs/compared.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in re.findall(r"^\| \d+ \|.*$", text, re.MULTILINE)]
    assert [int(row[0]) for row in rows] == list(range(1, 41))
    names = names_of_tests(ROOT / "tests")
    kept = [row for row in rows if row[2].strip().lstrip("[").startswith("yes")]
    assert [row for row in kept if row[3].strip().strip("`") not in names] == []
    assert len(kept) >= 28
    assert all("test_" not in row[3] for row in rows if row not in kept)


def test_the_page_of_remarks_has_all_of_them():
    """Sentences of remarks begin with a phrase that is the first cell of a row."""
    page = (ROOT / "docs/remarks.md").read_text(encoding="utf-8")
    known = re.findall(r"^\| ([A-Z][^|]*) \|", page, re.MULTILINE)
    files = ["fits/remarks.py", "automatic/glm/remarks.py", "automatic/causes.py"]
    files += ["automatic/statement.py", "automatic/run.py"]
    said = [one for name in files for one in sentences((ROOT / "src/dpmc" / name).read_text())]
    assert len(said) > 20
    no_remarks = "They are those of", "Privacy displaces means"  # inside of one, and in summaries
    assert [one for one in said if not one.startswith((*known, *no_remarks))] == []
    assert [one for one in known if not any(text.startswith(one) for text in said)] == []


def sentences(source: str) -> list[str]:
    """First words of what is yielded or returned by functions that make remarks."""
    found = []
    for node in ast.walk(ast.parse(source)):
        value = getattr(node, "value", None)
        if isinstance(node, ast.Yield | ast.Return) and isinstance(value, ast.JoinedStr):
            first = value.values[0]
        else:
            first = value if isinstance(node, ast.Yield | ast.Return) else None
        text = first.value if isinstance(first, ast.Constant) else None
        if isinstance(text, str) and len(text) > 8 and text[0].isupper():
            found.append(text)
    return found


def test_the_study_of_the_guide_is_accepted():
    """In a document that has its problem."""
    text = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(studies:.*?)```", text, re.DOTALL)
    studies = yaml.safe_load(block)["studies"]

    def change(paper):
        paper["studies"] = studies
        paper["problems"] = {"power_plant": paper["problems"]["power_plant"]}
        table = {**paper["outputs"]["table7_1"], "metrics": ["real_data"]}
        paper["outputs"] = {"table7_1": table}

    config = with_paper(load(paper="alparslan2023thesis"), change)
    ((key, paper),) = config.papers.items()
    check_paper(paper, key, "the guide")
    assert Workload(config, key).studies("real_data")
    studies["real_data"]["params"]["num_iteration"] = 1
    wrong = with_paper(config, change).papers[key]
    with pytest.raises(DpmcError, match="num_iteration"):
        check_paper(wrong, key, "the guide")


def test_the_guide_names_all_that_is_called_of_a_study():
    section = page_text("docs/extending.md").partition("## A study ")[2].partition(" ## ")[0]
    source = (ROOT / "src/dpmc_papers/pipeline/run_studies.py").read_text(encoding="utf-8")
    called = set(re.findall(r"\bstudy\.(\w+)\(", source))
    assert "unavailable" in called
    for name in called | {"check", "reads"}:
        assert f"`{name}(" in section


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_the_example_of_neighbours_says_what_it_prints(capsys):
    names: dict[str, object] = {}
    example = blocks("docs/privacy.md")[0]
    exec(example, names)
    printed = capsys.readouterr().out.splitlines()
    told = re.findall(r"^print\(.*?\)  # (.*)$", example, re.MULTILINE)
    assert [line for line in printed if line in told] == told
    assert f"{names['other'].epsilon:.4g}" == "2.123"


def test_the_examples_of_adaptive_budgets_and_joint_guarantees_run():
    _, budget, joint = blocks("docs/privacy.md")
    names = {"value": 1.0, "sensitivity": 0.1, "rng": np.random.default_rng(0), "dpmc": dpmc}
    exec(budget, names)
    assert names["ledger"].remaining > 0
    assert names["ledger"].least_multiplier() > 0
    names |= {"first_fit": names["ledger"], "second_fit": (("gaussian(9.0)", 1),)}
    names["released_mean"] = Guarantee(0.5, 0.0, accountant="pld")
    exec("import dpmc.privacy\n" + joint, names)
    assert 1.0 < names["joint"].epsilon < 3.0


def test_the_example_of_the_league_runs():
    (example,) = blocks("docs/league.md")
    names: dict[str, object] = {}
    exec(example, names)
    assert names["worth"].scored
    assert names["worth"].mmd < 0.2


def test_the_examples_of_shards_and_nodes_run():
    names: dict[str, object] = {}
    for block in blocks("docs/shards.md"):
        exec(block, names)
    assert names["fit"].guarantee.epsilon == 1
    assert "secure aggregation is assumed" in names["fit"].guarantee.outside[0]


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_the_example_of_a_session_runs(tmp_path, monkeypatch):
    """Noise on the mean has a standard deviation of 0.05: an error rate far below 1e-6."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(blocks("docs/sessions.md")[0], names)
    session = names["session"]
    assert [part.what for part in session.parts] == ["ill ~ age", "mean age"]
    assert abs(names["mean_age"] - 50) < 2
    part = GaussianBudget.of(0.5, 1e-6).mu
    assert int((session.mu / part) ** 2) == 13
    exec(blocks("docs/sessions.md")[1], names)
    assert [part.what for part in names["session"].parts] == ["ill ~ age", "accuracy"]
    # Noise on the accuracy has a standard deviation of 0.003.
    assert abs(names["accuracy"] - names["right"]) < 0.03
    assert names["right"] > 0.6


def test_the_example_of_a_guarantee_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(blocks("docs/guarantees.md")[0], names)
    assert capsys.readouterr().out.startswith("true: (1, 1e-06)-DP, substitution of one row: ")
    assert main(["verify", "record.json"]) == 0
    page = page_text("docs/guarantees.md")
    table = re.findall(r"\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) % \|", page)
    for epsilon, mu, power in table:
        found = Guarantee(float(epsilon), 1e-6, accountant="gaussian").mu
        assert f"{found:.3g}" == mu
        assert f"{100 * stats.norm.cdf(stats.norm.ppf(0.05) + found):.2g}" == power
    assert len(table) == 5
    assert {f"`{one}`" for one in names["fit"].record()["guarantee"]["deployment"]} <= set(
        re.findall(r"`[^`]*`", page)
    )


def test_the_examples_of_releases_run():
    names: dict[str, object] = {}
    for block in blocks("docs/releases.md"):
        exec(block.replace("seed=1)", "seed=1, num_draws=100, progress=False)"), names)
    assert names["fit"].plan.method == "normal"
    found = names["table"]
    assert (found["mean"] - [0.3, 0.6, 0.75, 5020]).abs().lt(4 * found["sd"]).all()


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_the_example_of_persons_runs(capsys):
    """The noise is random: eight posterior deviations leave an error rate far below 1e-6."""
    names: dict[str, object] = {}
    exec(blocks("docs/persons.md")[0], names)
    fit, rows = names["fit"], names["rows"]
    draws = fit.draws[..., 1]
    assert abs(draws.mean() - 2) < 8 * draws.std()
    assert names["mean"].guarantee.relation == "substitution of one person"
    draws = names["mean"].draws
    assert abs(draws.mean() - rows.mean()) < 8 * draws.std()
    assert "substitution of one patient" in capsys.readouterr().out


def test_every_python_block_of_the_documentation_is_run():
    """Pages and the number of their blocks, all of them run by the tests of this file."""
    run = {"README.md": 1, "library.md": 5, "audit.md": 2, "privacy.md": 3, "extending.md": 1}
    run |= {"league.md": 1, "formulas.md": 4, "shards.md": 2, "sessions.md": 2}
    run |= {"guarantees.md": 1, "releases.md": 2, "persons.md": 1}
    run |= {"tutorial.md": len(blocks("docs/tutorial.md"))}
    counts = {page.name: page.read_text(encoding="utf-8").count("```python\n") for page in pages()}
    assert {name: count for name, count in counts.items() if count} == run


@pytest.mark.filterwarnings("ignore::dpmc.PosteriorWarning")
def test_the_page_on_formulas_runs_from_a_file_to_a_table(tmp_path, monkeypatch, capsys):
    """The noise is random: eight posterior deviations leave an error rate far below 1e-6."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks("docs/formulas.md"):
        exec(block, names)
    found = names["table"].loc["sex[m]"]
    assert abs(found["mean"] - 0.5) < 8 * found["sd"]
    assert "Missing or impossible entries are read by public values: income as" in (
        capsys.readouterr().out
    )


def test_the_examples_of_the_audit_page_run(capsys):
    many_runs, one_run = blocks("docs/audit.md")
    names: dict[str, object] = {}
    exec(many_runs, names)
    assert names["result"].epsilon_lower > 0.85
    exec(one_run, names)
    assert capsys.readouterr().out.rstrip().endswith("claim 1 violated)")
