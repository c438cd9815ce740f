# What the rules share: the configuration and the functions that look jobs up in it.
# The scale is part of every path, so a file of any scale can be asked for by its name.
import functools
import os
import re
import sys
from collections import UserList
from pathlib import Path
from types import SimpleNamespace

from dpmc_papers.pipeline import output_files, raw_files, stale
from dpmc_papers.config import foreign_methods
from dpmc_papers.config.settings import plain
from dpmc.numerics.source_digest import short_digest
from dpmc_papers.pipeline.dependencies import (
    code,
    content_digest,
    shows_printed,
    site_parts,
)
from dpmc_papers.pipeline.jobs import batch_of, part_of
from dpmc_papers.pipeline.workload import Workload
from dpmc_papers.site.report import Caption

# Set by a run for its jobs.
SCHEDULER = "DPMC_SCHEDULER"
# Whether this is one of them, or a node, that reads the workflow again.
IS_JOB = SCHEDULER in os.environ

# The options of Snakemake that force jobs: --force, --forceall and --forcerun, as short as they may be
# written, and -f, -F and -R, also behind others of one letter that take no value.
FORCING = re.compile(r"--force(a|al|all|r|ru|run)?(=.*)?|-[DSahklnptv]*[fFR].*")
# Whether the command forces jobs to run.
FORCED = not IS_JOB and any(map(FORCING.fullmatch, sys.argv[1:]))

SCALE = config.get("scale", DEFAULTS["scale"])


@functools.cache
def settings(scale):
    """Return the checked configuration of one scale, or stop with one line."""
    try:
        values = {**DEFAULTS, **config, "scale": scale}
        return foreign_methods.load_config(values, ROOT)
    except DpmcError as error:
        sys.exit(f"dpmc: {error}")


@functools.cache
def workload(scale, paper):
    """Return all jobs of one paper at one scale, or stop with one line."""
    chosen, known = settings(scale).papers, reader.papers(ROOT)
    if paper not in known:
        sys.exit(
            f"dpmc: {scale}/{paper}: must be a document of {', '.join(known)}, got {paper!r}"
        )
    if paper not in chosen:
        sys.exit(
            f"dpmc: `papers` must name {paper}, whose file is asked for, "
            f"got {', '.join(chosen)}: add `--config papers={paper}`"
        )
    try:
        return Workload(settings(scale), paper)
    except DpmcError as error:
        sys.exit(f"dpmc: {error}")


def of(path, field):
    """Return a function from wildcards to a field of what the configuration says about `path`."""

    def look_up(wildcards):
        wanted = path.format(**wildcards)
        entry = workload(wildcards.scale, wildcards.paper).files.get(wanted)
        if entry is None:
            sys.exit(f"dpmc: {wanted}: the configuration names no such file")
        return getattr(entry, field)

    return look_up


def undated(files):
    """Return files that rules make, as inputs: their dates count for nothing.

    What is out of date is known by digests. A file whose name has one is right whenever it is
    there; one of a fixed name is right while the settings that it answers are there, since
    settings remove what answered others.

    Where jobs are forced that would keep what follows them from being made, and from being looked
    at: Snakemake goes by the dates then, as it always does.
    """
    return files if FORCED else ancient(files)


def files_in(look_up):
    """Return the same function, for inputs of a job; see `undated`."""
    return lambda wildcards: undated(look_up(wildcards))


def plain_of(path, field):
    """Return the same as plain values, which Snakemake can compare with those of earlier runs."""
    look_up = of(path, field)
    return lambda wildcards: plain(look_up(wildcards))


def of_output(field, name=None):
    """Return a function from wildcards to a field of an output, by default the one they name."""

    def look_up(wildcards):
        outputs = workload(wildcards.scale, wildcards.paper).outputs
        wanted = name or wildcards.name
        if wanted not in outputs:
            known = ", ".join(outputs)
            sys.exit(
                f"dpmc: {wanted}: must be an output of {wildcards.paper} ({known})"
            )
        return getattr(outputs[wanted], field)

    return look_up


def request_of(name=None):
    """Return a function from wildcards to the name of the settings of an output.

    The digest in it makes an output anew that is asked for by its path while its old settings
    are gone.
    """

    def look_up(wildcards):
        return Path(of_output("request", name)(wildcards)).name

    return look_up


def answers_of(wildcards):
    """Return the files that answer the settings of an output.

    The page answers for what is made from all outputs. This is no plain value: settings are the
    same wherever results are.
    """
    work = workload(wildcards.scale, wildcards.paper)
    made = files_of(work, wildcards.name)
    if wildcards.name == "page":
        made += [f"{work.folder}/provenance.json", SITE.format(scale=wildcards.scale)]
    return SimpleNamespace(paths=made)


def printed_of(wildcards):
    """Return the printed numbers of the document, for an output that shows them."""
    paper = settings(wildcards.scale).papers[wildcards.paper]
    shown = shows_printed(paper, wildcards.name)
    file = ROOT / "config" / "published" / f"{wildcards.paper}.yaml"
    return ancient([str(file)] if shown else [])


def batch_of_seed(wildcards):
    """Return the file of chains that holds the replicate that the wildcards name."""
    jobs = workload(wildcards.scale, wildcards.paper).jobs
    if not jobs:
        sys.exit(
            f"dpmc: {wildcards.paper} has studies and no chains: its replicates are "
            "by_seed/<study>/<problem>/<label>/<point>/seed=<replicate>.parquet"
        )
    wanted = (wildcards.problem, wildcards.label, wildcards.point)
    try:
        return batch_of(jobs, *wanted, int(wildcards.replicate)).path
    except DpmcError as error:
        sys.exit(f"dpmc: {error}")


def part_of_seed(wildcards):
    """Return the file of the rows, and the part of a study, that the wildcards name."""
    studies = workload(wildcards.scale, wildcards.paper).studies
    if not studies:
        sys.exit(
            f"dpmc: {wildcards.paper} has chains and no studies: its replicates are "
            "by_seed/<problem>/<label>/<point>/seed=<replicate>.parquet"
        )
    wanted = (wildcards.experiment, wildcards.problem, wildcards.label, wildcards.point)
    try:
        return part_of(studies, *wanted, int(wildcards.replicate))
    except DpmcError as error:
        sys.exit(f"dpmc: {error}")


def untimed_part(wildcards):
    """Return the part of a study that is measured alone, or stop with one line if it is timed."""
    study = settings(wildcards.scale).papers[wildcards.paper].studies
    data, part = part_of_seed(wildcards)
    if study[wildcards.experiment].timed:
        sys.exit(
            f"dpmc: {wildcards.experiment}: a replicate alone must be of a study that is not "
            "timed, got one that measures run times while no other job runs"
        )
    return data, part


def raw_of(wildcards):
    """Return the record of the raw file that the rows of a problem come from, if any.

    Its age counts for nothing: what the raw file holds is known by its digest.
    """
    path = of(DATA, "raw")(wildcards)
    return ancient(path) if path else []


def methods_of(wildcards):
    """Return the methods of a job of metrics, and the points of its files of chains.

    How replicates are divided among these files shows in it and is no reason to measure again, so
    that this is no plain value. The digest in the name of the result tells of all that is one.
    """
    return UserList(of(METRICS, "methods")(wildcards))


def setting(*keys):
    """Return a function from wildcards to a setting of the paper."""

    def look_up(wildcards):
        value = settings(wildcards.scale).papers[wildcards.paper]
        for key in keys:
            value = getattr(value, key)
        return value

    return look_up


def requests_of(wildcards):
    """Return the digest of each figure, table and list of a paper, by its name."""
    return stale.digests(workload(wildcards.scale, wildcards.paper))


def settings_digest(wildcards):
    """Return a digest of all settings of the paper that determine a result."""
    return short_digest(settings(wildcards.scale).papers[wildcards.paper].determining())


def outputs_of(wildcards):
    """Return the figures, tables, guarantees and verdicts of a paper."""
    work = workload(wildcards.scale, wildcards.paper)
    return [
        path for name in work.outputs if name != "page" for path in files_of(work, name)
    ]


def captions_of(wildcards):
    """Return the captions of the figures and tables of a paper."""
    outputs = settings(wildcards.scale).papers[wildcards.paper].outputs.values()
    folder = ROOT / "workflow" / "report"
    return ancient(sorted({str(folder / entry.caption) for entry in outputs}))


def text_of(wildcards):
    """Return the text on the results of a paper, if there is one."""
    path = ROOT / "docs" / f"{wildcards.paper}.md"
    return ancient([str(path)] if path.is_file() else [])


def caption_of(wildcards):
    """Return the caption of a figure or table, for the report of Snakemake.

    It is no plain value, so that no output is made anew for its caption.
    """
    work = workload(wildcards.scale, wildcards.paper)
    entry = work.paper.outputs[wildcards.name]
    return Caption(
        name=wildcards.name,
        text=str(ROOT / "workflow" / "report" / entry.caption),
        request=work.outputs["page"].request,
        guarantees=f"{work.folder}/guarantees.csv",
    )


def papers_on_site(scale):
    """Return the papers of this run, and those that have a page of an earlier one."""
    chosen = settings(scale).papers
    return [
        paper
        for paper in reader.papers(ROOT)
        if paper in chosen or Path(PAGE.format(scale=scale, paper=paper)).is_file()
    ]


def pages_of(wildcards):
    """Return the pages of these papers."""
    return [
        PAGE.format(scale=wildcards.scale, paper=paper)
        for paper in papers_on_site(wildcards.scale)
    ]


def reasons_of_front(wildcards):
    """Return what makes the front page anew: what it is made from and is not there."""
    found = []
    for paper in settings(SCALE).papers:
        work = workload(wildcards.scale, paper)
        found += [path for name in work.outputs for path in files_of(work, name)]
        found += [work.outputs["page"].request, f"{work.folder}/provenance.json"]
    return found


def parts_of_site(wildcards=None):
    """Return what all pages share."""
    return ancient([str(path) for path in site_parts()])


def docs_of_site():
    """Return the texts of the documentation, which the site shows too."""
    return sorted((ROOT / "docs").glob("*.md"))


def site_request(scale):
    """Return the file whose name tells of which documents the site is, and which code makes it."""
    texts = content_digest(*docs_of_site(), *site_parts())
    digest = short_digest([code(ROOT, "build_site"), texts, papers_on_site(scale)])
    return f"{RESULTS}/{scale}/requests/site-{digest}.json"


def answers_of_site(wildcards):
    """Return the files that answer the settings of the site."""
    return SimpleNamespace(paths=[SITE.format(scale=wildcards.scale)])


def benchmarks_of(wildcards):
    """Return the benchmark files of all jobs of a paper; no plain value, since it is no reason."""
    work = workload(wildcards.scale, wildcards.paper)
    made = [*work.files, *(f"{work.folder}/{name}" for name in work.outputs)]
    inside = (
        Path(path).relative_to(work.folder).with_suffix(".jsonl") for path in made
    )
    return SimpleNamespace(
        paths=[f"{work.folder}/benchmarks/{path}" for path in inside]
    )


def all_targets(wildcards=None):
    """Return what a run makes by default: outputs, and the requests that they answer.

    A job on a node, which makes something else, never asks.
    """
    made = []
    for paper in settings(SCALE).papers:
        work = workload(SCALE, paper)
        for name, output in work.outputs.items():
            made += [output.request, *files_of(work, name)]
        made.append(f"{work.folder}/provenance.json")
    made.append(site_request(SCALE))
    return [*made, SITE.format(scale=SCALE)]


def published_files(wildcards):
    """Return what is kept of a run at the published grid: no requests and no pages."""
    if SCALE != "paper":
        sys.exit(f"dpmc: publish: `scale` must be paper, got {SCALE!r}")
    left = {"requests", "site", "page"}
    return [
        path
        for path in all_targets()
        if left.isdisjoint(Path(path).relative_to(RESULTS).parts)
    ]


def files_of(work, name):
    """Return the files of one output."""
    kind = work.outputs[name].reads.kind
    if kind == "page":
        return [PAGE.format(scale=work.config.scale, paper=work.paper.paper)]
    if kind == "verdict":
        return [
            f"{work.folder}/{file}"
            for file in ("verdict.csv", "power.csv", "runs.parquet")
        ]
    endings = output_files.endings(name, kind)
    return [f"{work.folder}/{name}.{ending}" for ending in endings]


RESULTS = settings(SCALE).results_dir
PAPER = f"{RESULTS}/{{scale}}/{{paper}}"
RAW = f"{PAPER}/raw/{{name}}-{{digest}}.json"
DATA = f"{PAPER}/data/{{problem}}-{{digest}}.parquet"
REFERENCE = f"{PAPER}/reference/{{problem}}-{{digest}}.parquet"
BASELINE = f"{PAPER}/baselines/{{problem}}-{{digest}}.parquet"
LABEL = "{experiment}/{problem}/{label}"
POINT = f"{LABEL}/{{point}}-{{digest}}/{{first}}-{{last}}"
CHAIN = f"{PAPER}/chains/{POINT}.parquet"
PAIR = "{experiment}/{problem}-{digest}"
STUDY = f"{PAPER}/studies/{PAIR}.parquet"
RUN_TIME = f"{PAPER}/run_times/{PAIR}.parquet"
METRICS = f"{PAPER}/metrics/{PAIR}.parquet"
CURVES = f"{PAPER}/accounting/{{name}}-{{digest}}.parquet"
REQUEST = f"{PAPER}/requests/{{name}}-{{digest}}.json"
PAGE = f"{PAPER}/page/index.md"
SITE = f"{RESULTS}/{{scale}}/site/index.html"
PUBLISHED = "results/published"


wildcard_constraints:
    scale="|".join(reader.scales(ROOT)),
    paper="[a-z0-9_]+",
    experiment="[a-z0-9_]+",
    problem="[a-z0-9_]+",
    label="[a-z0-9_-]+",
    point="[^/]+",
    digest="[0-9a-f]{8}",
    first="[0-9]+",
    last="[0-9]+",
    replicate="[0-9]+",
    name="[a-z0-9_]+",
