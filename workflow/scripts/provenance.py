"""Say what results were made by, and what each output was made from."""

import json

from _job import checkout, configuration, job, short_digest

with job(snakemake):
    from dpmc_papers.pipeline import files, provenance

    key = snakemake.wildcards.paper
    paper = configuration(snakemake, [key], snakemake.wildcards.scale).papers[key]
    digest = short_digest(paper.determining())
    record = provenance.record(checkout(snakemake), digest, snakemake.params.outputs)
    files.write_text(snakemake.output[0], json.dumps(record, indent=1) + "\n")
