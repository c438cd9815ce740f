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
    start_run()


onsuccess:
    end_run()


onerror:
    end_run(failed=True)


rule all:
    """All figures, tables, verdicts and pages of the chosen documents."""
    default_target: True
    input:
        all_targets,
    localrule: True
    message:
        "all results are there"
