# Regenerates the figures, tables and verdicts of the papers named in config/config.yaml.
from snakemake.utils import min_version

min_version("9.19")


include: "workflow/rules/needs.smk"


configfile: config_file()


include: "workflow/rules/common.smk"
include: "workflow/rules/runs.smk"
include: "workflow/rules/resources.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/chains.smk"
include: "workflow/rules/results.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/publish.smk"


onstart:
    hold_results()
    tell_jobs()
    announce_costs()
    preload()
    lift_limit()


onsuccess:
    preloaded.end()


onerror:
    preloaded.end()
    print(
        "What is complete is kept: the same command goes on from here.",
        file=sys.stderr,
    )


localrules:
    all,
    raw,
    request,
    provenance,
    by_seed,
    publish,
    site_request,
    site,
    published_site,


rule all:
    """All figures, tables, verdicts and pages of the chosen documents."""
    default_target: True
    input:
        all_targets,
    message:
        "all results are there"
