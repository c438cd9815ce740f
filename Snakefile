# The workflow, for a run in the checkout: `snakemake --cores all`.
include: "workflow/Snakefile"


# What an included file does by default, a run of this one would not.
use rule all as default with:
    default_target: True


localrules:
    default,
