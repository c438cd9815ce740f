# What the rules share: the checked configuration, where each file stands, and its job.
# The scale is part of every path, so a file of any scale can be asked for by its name.
import functools
import sys
from pathlib import Path

from dpmc.types import DpmcError
from dpmc.yaml_files import read_yaml
from dpmc_papers.config import code, foreign_methods, reader
from dpmc_papers.pipeline import files, raw_files
from dpmc_papers.pipeline.workload import Workload
from dpmc_papers.verdicts import claim_names

# The checkout: of this workflow, wherever it runs and whoever includes it as a module.
ROOT = Path(str(workflow.current_basedir)).parents[1]


def in_checkout(*parts):
    """The path of a file of the checkout, as short as it can be."""
    path = ROOT.joinpath(*parts)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def or_stop(function, *arguments):
    """What a function returns; what it refuses stops the run with one line."""
    try:
        return function(*arguments)
    except DpmcError as error:
        sys.exit(f"dpmc: {error}")


# What config.yaml of the checkout says holds where that of the folder of the run says nothing.
DEFAULTS = or_stop(read_yaml, ROOT / "config" / "config.yaml")
if Path("config/config.yaml").exists():
    or_stop(read_yaml, Path("config/config.yaml"))


configfile:
    "config/config.yaml"
    if Path("config/config.yaml").exists()
    else in_checkout("config", "config.yaml")


SCALE = config.get("scale", DEFAULTS["scale"])


@functools.cache
def settings(scale):
    """The checked configuration at a scale."""
    values = {**DEFAULTS, **config, "scale": scale}
    return or_stop(foreign_methods.load_config, values, ROOT)


@functools.cache
def workload(scale, paper):
    """All jobs of a paper at a scale."""
    if paper not in settings(scale).papers:
        chosen = ", ".join(settings(scale).papers)
        sys.exit(f"dpmc: `papers` must name {paper}, whose file is asked for, got {chosen}")
    return or_stop(Workload, settings(scale), paper)


def of(path, field):
    """A function from wildcards to what the job of a file is given: an input, or a field."""

    def look_up(wildcards):
        wanted = path.format(**wildcards)
        job = workload(wildcards.scale, wildcards.paper).files.get(wanted)
        if job is None:
            sys.exit(f"dpmc: {wanted}: the configuration names no such file")
        return getattr(job, field) if hasattr(job, field) else job.inputs.get(field, ())

    return look_up


def of_output(field, name=None):
    """The same for a figure, a table, the verdicts or the guarantees."""

    def look_up(wildcards):
        outputs = workload(wildcards.scale, wildcards.paper).outputs
        wanted = name or wildcards.name
        if wanted not in outputs:
            known = ", ".join(outputs)
            sys.exit(f"dpmc: {wanted}: must be an output of {wildcards.paper} ({known})")
        job = outputs[wanted]
        return getattr(job, field) if hasattr(job, field) else job.inputs.get(field, ())

    return look_up


def printed_of(wildcards):
    """The printed numbers of the paper, for an output that shows them."""
    entry = settings(wildcards.scale).papers[wildcards.paper].outputs.get(wildcards.name)
    shown = entry is not None and files.shows_printed(wildcards.name, entry)
    return [in_checkout("config", "published", f"{wildcards.paper}.yaml")] if shown else []


def outputs_of(wildcards):
    """The files of all outputs of a paper."""
    outputs = workload(wildcards.scale, wildcards.paper).outputs
    return [path for job in outputs.values() for path in job.paths]


def digests_of(wildcards):
    """The digest of what each output of a paper is made from."""
    outputs = workload(wildcards.scale, wildcards.paper).outputs
    return {name: job.digest for name, job in outputs.items()}


def texts_of(wildcards):
    """The captions of a paper, and the text on its results if there is one."""
    outputs = settings(wildcards.scale).papers[wildcards.paper].outputs.values()
    captions = {in_checkout("workflow", "report", entry.caption) for entry in outputs}
    text = ROOT / "docs" / f"{wildcards.paper}.md"
    return sorted(captions) + ([in_checkout("docs", text.name)] if text.is_file() else [])


def pages_of(wildcards):
    """The pages of the papers of this run, and of those that have one of an earlier run."""
    pages = {
        paper: PAGE.format(scale=wildcards.scale, paper=paper) for paper in reader.papers(ROOT)
    }
    chosen = settings(wildcards.scale).papers
    return [page for paper, page in pages.items() if paper in chosen or Path(page).is_dir()]


def all_targets(wildcards=None):
    """What a run makes by default."""
    made = [SITE.format(scale=SCALE)]
    for paper in settings(SCALE).papers:
        outputs = workload(SCALE, paper).outputs.values()
        made += [path for job in outputs for path in job.paths]
        made.append(PROVENANCE.format(scale=SCALE, paper=paper))
    return made


def published_files(wildcards):
    """What is kept of a run at the published grid."""
    if SCALE != "paper":
        sys.exit(f"dpmc: publish: `scale` must be paper, got {SCALE!r}")
    return [path for path in all_targets() if path != SITE.format(scale=SCALE)]


def cores_of_study(wildcards):
    """All cores for a study of run times, so that no other job runs beside it; the job uses one."""
    study = settings(wildcards.scale).papers[wildcards.paper].studies[wildcards.experiment]
    return workflow.cores if study.timed else 1


def in_report(path, subcategory, text="output"):
    """A file that `snakemake --report` shows, with a text of workflow/report."""
    return report(
        path,
        caption=f"../report/{text}.rst",
        category="{paper}",
        subcategory=subcategory,
        labels={"name": Path(path).stem, "scale": "{scale}"},
    )


def doubling(number):
    """Memory or minutes of a job, twice as much at every attempt."""
    return lambda wildcards, attempt: number * 2 ** (attempt - 1)


RESULTS = settings(SCALE).results_dir
PAPER = f"{RESULTS}/{{scale}}/{{paper}}"
RAW = f"{PAPER}/raw/{{name}}.json"
DATA = f"{PAPER}/data/{{problem}}.parquet"
REFERENCE = f"{PAPER}/reference/{{problem}}.parquet"
BASELINES = f"{PAPER}/baselines/{{problem}}.parquet"
CHAINS = f"{PAPER}/chains/{{experiment}}/{{problem}}/{{label}}/{{point}}/{{seeds}}.parquet"
METRICS = f"{PAPER}/metrics/{{experiment}}/{{problem}}.parquet"
STUDY = f"{PAPER}/studies/{{experiment}}/{{problem}}/{{seeds}}.parquet"
CURVES = f"{PAPER}/accounting/{{name}}.parquet"
PROVENANCE = f"{PAPER}/provenance.json"
PAGE = f"{PAPER}/page"
SITE = f"{RESULTS}/{{scale}}/site"
MODELLED = {
    problem
    for paper in settings(SCALE).papers.values()
    for problem, entry in paper.problems.items()
    if entry.model is not None
}
or_stop(claim_names.check, settings("paper"))


wildcard_constraints:
    scale="|".join(reader.scales(ROOT)),
    paper="(?!site/)[a-z0-9_]+",
    experiment="[a-z0-9_]+",
    problem="[a-z0-9_]+",
    label="[a-z0-9_-]+",
    point="[^/]+",
    seeds="seeds=[0-9]+-[0-9]+",
    name="[a-z0-9_]+",
