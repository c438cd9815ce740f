"""File of claims: the outputs that claims name, and the kinds of rules that they may have."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from dpmc.types import DpmcError
from dpmc_papers.config import reader
from dpmc_papers.verdicts import claim_file, claim_names, printed_series, rules
from dpmc_papers.verdicts.evidence import Evidence
from dpmc_papers.verdicts.lookup import kinds

ROOT = Path(__file__).parents[3]
PAPERS = sorted(path.stem for path in ROOT.glob("config/published/*.yaml"))

# Claims whose output is not the figure or table that their place names: the place names none, or
# the figure exists in several versions and another one shows the runs of the claim.
CHOSEN: dict[str, dict[str, str]] = {
    "alparslan2023thesis": {
        "C-4.2.4": "figure6_2 figure6_4",
        "C-4.4c": "figure4_4",
        "C-5.2-privacy": "table_profiles",
        "C-5.2.3-accurate": "table7_1",
        "C-5.2.3-accurate-simulated": "figure7_1 figure7_1_draws",
        "C-5.2.3-fast": "figure7_2",
        "C-5.2.3-fastest": "figure7_2",
        "C-6.2d": "figure6_2",
        "C-6.5c": "figure4_3",
        "C-6.5d": "figure4_3",
        "C-7.1a": "figure7_1 figure7_1_draws",
        "C-7.1a-estimation": "figure7_1 figure7_1_draws",
        "C-7.1b-d2": "figure7_1 figure7_1_draws",
        "C-7.1b-d2-estimation": "figure7_1 figure7_1_draws",
        "C-7.1b-d5": "figure7_1 figure7_1_draws",
        "C-7.1b-d5-estimation": "figure7_1 figure7_1_draws",
        "C-7.1c": "figure7_1 figure7_1_draws",
        "C-7.1c-estimation": "figure7_1 figure7_1_draws",
        "C-7.3": "figure7_3 figure7_3_draws",
        "C-8-outperform": "table7_1",
        "C-8-outperform-simulated": "figure7_1 figure7_1_draws",
        "C-8-competitive": "figure7_1 figure7_1_draws",
    },
    "raisa2021dphmc": {
        "P-fig1-gauss-sgld-best-white": "comparison",
        "P-fig1-gauss-sgld-best-draws": "comparison",
        "P-fig1-gauss-middle-draws": "comparison",
        "P-fig1-gauss-penalty-worst-draws": "comparison",
        "P-abstract-hmc-geq-penalty": "figure1",
        "P-abstract-consistent": "figure1",
        "P-4.2-rhat": "clipping",
        "P-4.2-not-converged": "clipping",
        "P-4.2-not-converged-banana": "clipping",
        "P-4.2-not-converged-gauss": "clipping",
        "P-4.2-no-noise": "clipping",
        "P-4.2-large-gradient-bound": "clipping",
        "P-4.2-clip-fraction": "comparison",
        "P-4.1-sg-gradclip": "comparison",
        "P-4.1-private": "budget",
        "P-4.1-fourier-tight": "budget",
        "P-5-eps": "figure1",
        "P-5-non-private": "figure1 figure3",
        "P-5-mh-tails": "figure2",
        "P-5-dim": "dimension",
        "P-5-dim-low": "dimension",
        "P-no-bound-between": "figure3",
    },
    "raisa2021thesis": {
        "T-6.2-2d": "figure6_2 figure6_2_published",
        "T-6.2-2d-lowest": "figure6_2 figure6_2_published",
        "T-6.2-10d": "figure6_2 figure6_2_published",
        "T-6.2-10d-not-converged": "figure6_2 figure6_2_published",
        "T-6.2-10d-lower": "figure6_2 figure6_2_published",
        "T-6.2-10pct": "figure6_2 figure6_2_published",
        "T-6.2-single-line": "figure6_2 figure6_2_published",
        "T-6.3-private": "budget",
        "T-fig6.2-bound": "figure6_2_published",
        "T-fig6.2-fraction": "figure6_2_published",
        "T-acceptance-text": "comparison",
        "T-acceptance-final": "comparison",
    },
    "vinaroz2022dpsep": {
        "C-clipping-improves": "table2",
        "C-dp-beats-sep": "table2",
        "C-dp-close-to-clipped": "table2",
        "C-sep-as-good-as-ep": "table2",
        "C-mixture-privacy-costs": "table1_draws",
        "C-clipping-most": "table2",
        "C-dp-comparable": "table2",
        "C-dp-kin8nm": "table2",
        "C-dp-often-better": "table2",
        "C-sep-uncertainty": "table1",
        "C-sep-uncertainty-converged": "table1",
        "C-mixture-uncertainty": "figure1 table1",
        "C-mixture-uncertainty-valid": "figure1 table1",
        "C-mixture-closer-f": "table1",
        "C-mixture-closer-kl": "table1",
        "C-mixture-closer-draws": "table1_draws",
        "C-privacy": "table1 table2",
    },
    "league": {  # of our own: a place is the name of a figure or table
        "P-langevin": "price prices",
        "P-penalty": "price prices",
        "P-hmc": "price prices",
        "P-hmc-10": "price prices",
        "P-acceptance": "price prices",
        "W-statistic": "winners standings",
        "W-tests-last": "winners standings",
        "W-regression": "winners standings",
        "W-banana-unadjusted": "winners standings",
        "W-banana-penalty": "winners standings",
        "W-circle": "winners standings",
        "W-tempered": "winners standings",
        "W-modes": "winners standings",
        "W-few-rows": "winners standings",
        "W-network": "winners standings",
        "W-more-rows": "rows",
        "W-tests-rows": "rows",
        "B-found": "clip",
        "B-large": "clip",
        "C-best": "sep_clip",
        "C-share": "sep_clip",
        "C-wrong": "sep_clip",
        "S-batches": "winners standings",
        "R-beat-chain": "released standings",
        "R-curved": "released standings",
        "N-coverage": "standings",
        "N-variational": "standings",
        "G-budget": "standings",
        "G-attack": "attacks standings",
        "G-attack-sees": "attacks standings",
        "G-commands": "winners standings",
        "U-person": "persons contests",
        "U-alike": "persons contests",
        "U-group": "persons contests",
        "U-add": "persons contests",
        "U-coverage": "contests",
        "E-rare": "survivors contests",
        "E-wide": "survivors contests",
        "E-wide-diffprivlib": "survivors contests",
        "E-wide-gradient": "survivors contests",
        "E-same": "survivors contests",
        "E-rare-diffprivlib": "survivors contests",
        "E-rare-gradient": "survivors contests",
        "F-floor": "shapes",
        "F-hierarchy": "shapes",
        "F-budget": "shapes",
        "F-penalty": "shapes",
        "F-modes": "shapes",
        "H-theory": "noise",
        "H-none": "noise",
        "H-full": "noise",
        "H-batches": "noise",
        "Z-few": "pure contests",
        "Z-many": "pure contests",
        "Z-adaptive": "pure contests",
        "Z-sample-1": "pure contests",
        "Z-sample-4": "pure contests",
        "Z-rows": "pure contests",
        "Y-direct": "synthetic contests",
        "Y-aware-few": "synthetic contests",
        "Y-aware-many": "synthetic contests",
        "Y-aware-large": "synthetic contests",
        "Y-tree": "synthetic contests",
        "Y-real": "contests",
        "Y-sets": "contests",
        "Y-releases": "contests",
        "Y-coverage": "contests",
        "A-exact": "accountants",
        "A-batches": "accountants",
        "A-barker": "accountants",
        "S-privacy": "batches",
        "S-loss": "batches",
    },
}


def named_by_place(where, outputs):
    """Return the output that the English of a place names, as a reader would guess it."""
    match = re.search(r"\b(Figure|Table)s? (\d+(?:\.\d+)?)", where)
    if match is None:
        return "none"
    name = f"{match[1].lower()}{match[2].replace('.', '_')}"
    rest = set(re.findall(r"\w+", where.replace(match[0], "")))
    for other in outputs:
        if other.startswith(f"{name}_") and set(other.removeprefix(f"{name}_").split("_")) <= rest:
            return other
    return name if name in outputs else "none"


@pytest.fixture(scope="module", params=PAPERS)
def document(request):
    """Return a key, its claims and series, and the outputs of its configuration."""
    config = yaml.safe_load((ROOT / f"config/papers/{request.param}.yaml").read_text())
    path = ROOT / f"config/published/{request.param}.yaml"
    values = claim_file.load(path, config["outputs"])
    return request.param, [*values["entries"], *values.get("series", ())], config["outputs"]


def test_outputs_are_those_of_the_places_but_for_the_chosen_ones(document):
    key, entries, outputs = document
    differing = {
        entry["id"]: " ".join(claim_file.outputs_of(entry)) or "none"
        for entry in entries
        if [named_by_place(entry["where"], outputs)]
        != [*(claim_file.outputs_of(entry) or ("none",))]
    }
    assert differing == CHOSEN[key]


@pytest.mark.parametrize("scale", reader.scales(ROOT))
def test_claims_name_outputs_of_every_scale(scale):
    config = {"scale": scale, "results_dir": "results", "papers": PAPERS}
    for key, paper in reader.load_config(config, ROOT).papers.items():
        claim_file.load(ROOT / f"config/published/{key}.yaml", paper.outputs)


@pytest.mark.parametrize("paper", PAPERS)
def test_the_published_grid_has_the_sizes_that_claims_need(paper):
    """Else a run at the scale of the document would be called cut down."""
    config = {"scale": "paper", "results_dir": "results", "papers": [paper]}
    entries = reader.load_config(config, ROOT).papers[paper].determining()
    runs = Evidence(pd.DataFrame(), entries, np.random.default_rng(0), 1)
    needs = claim_file.load(ROOT / f"config/published/{paper}.yaml")["needs"]
    wrong = {
        path: wanted
        for sizes in needs.values()
        for path, wanted in sizes.items()
        if rules.configured(path, runs.config) != wanted
    }
    assert wrong == {}


def test_a_document_has_the_general_rules_and_its_own():
    general = {"ratio", "level", "order", "quartiles", "interval", "spread", "curve"}
    assert set(kinds("p")) == general
    assert set(kinds("raisa2021dphmc")) == general | {"beyond", "count", "regret", "reuse"}
    assert set(kinds("raisa2021thesis")) == general | {"difference", "gain"}
    assert set(kinds("alparslan2023thesis")) == general | {"follows"}
    assert set(kinds("league")) == general | {"allowed", "batches"}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_rule_of_a_document_is_used_and_described(paper):
    values = claim_file.load(ROOT / f"config/published/{paper}.yaml")
    cells = (printed_series.expand(block)[0] for block in printed_series.judged(values))
    entries = [*values["entries"], *cells]
    used = {entry["rule"]["kind"] for entry in entries}
    known = kinds(paper)
    assert set(known) - set(kinds("p")) <= used
    texts = [known[entry["rule"]["kind"]].describe(entry["rule"]) for entry in entries]
    assert all(text and "None" not in text for text in texts)


def changed(place, key, value):
    """Return an edit of a file of claims: of an entry's rule, of the entry, or of the file."""

    def edit(values):
        entry = next(e for e in values["entries"] if e["id"] == "P-4.2-20pct")
        {"rule": entry["rule"], "entry": entry, "file": values}[place][key] = value

    return edit


WRONG = [
    (changed("rule", "metric", "mdm"), "`metric` must be a column of the runs"),
    (changed("rule", "by", ["problm"]), "`by` must be a column of the runs"),
    (changed("rule", "by", "problem"), "`by` of the rule must be a list, got 'problem'"),
    (changed("rule", "where", {"experiment": "cliping"}), "did you mean clipping"),
    (changed("rule", "where", {"epsilon": 99}), "`epsilon` must be one of the grid"),
    (changed("rule", "where", {"rhat": {"belw": 1}}), "a range must have numbers for"),
    (changed("rule", "where", {"rhat": {"below": "x"}}), "got 'below': 'x'"),
    (changed("rule", "statistic", "medain"), "`statistic` of the rule must be one of"),
    (changed("rule", "versus", "maximum"), "`versus` of the rule must be one of max, min"),
    (changed("rule", "overr", "x"), "a key of the rule must be one of"),
    (changed("entry", "high", "1.5"), "`high` must be a number, got '1.5'"),
    (changed("entry", "high", float("nan")), "`high` must be a number, got nan"),
    (changed("entry", "variants", ["corected"]), "did you mean corrected"),
    (changed("file", "resamples", 0), "`resamples` must be a whole number of at least 2"),
    (changed("file", "error_rate", "0.05"), "`error_rate` must be a number in"),
    (changed("file", "printed_variants", ["as_publishd"]), "did you mean as_published"),
    (changed("file", "printed_variants", None), "`printed_variants` must be a list, got None"),
    (changed("file", "settings", None), "`settings` must be a mapping, got None"),
    (changed("file", "series", None), "`series` must be a list, got None"),
    (changed("file", "needs", None), "`needs` must be a mapping, got None"),
    (changed("file", "needs", {"comparison": None}), "`needs.comparison` must be a mapping"),
    (changed("file", "entries", None), "`entries` must be a list, got None"),
    (changed("rule", "where", None), "`where` of the rule must be a mapping, got None"),
    (
        changed("file", "needs", {"comparison": {"experiments.comparison.replicates": 7}}),
        "`experiments.comparison.replicates` must be 10 of the published grid, got 7",
    ),
]


@pytest.mark.parametrize(("edit", "said"), WRONG, ids=[said for _, said in WRONG])
def test_a_wrong_edit_is_refused_before_anything_runs(edit, said, tmp_path):
    """In one line, against the grids of the document; without the edit the file passes."""
    paper = "raisa2021dphmc"
    config = reader.load_config({"scale": "paper", "results_dir": "r", "papers": [paper]}, ROOT)
    folder = tmp_path / "config/published"
    folder.mkdir(parents=True)
    values = yaml.safe_load((ROOT / f"config/published/{paper}.yaml").read_text(encoding="utf-8"))
    here = dataclasses.replace(config, root=tmp_path)
    (folder / f"{paper}.yaml").write_text(yaml.safe_dump(values))
    claim_names.check(here)
    edit(values)
    (folder / f"{paper}.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(DpmcError, match=re.escape(said)) as error:
        claim_names.check(here)
    assert "\n" not in str(error.value)
