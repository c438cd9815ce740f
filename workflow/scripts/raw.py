"""Find or download a raw file, and say where it is or why it cannot be had."""

from _job import job

with job(snakemake):
    from dpmc_papers.pipeline import raw_files

    record = raw_files.make(snakemake.wildcards.name, snakemake.resources.attempt)
    raw_files.write(snakemake.output[0], {**record, "search": snakemake.params.search})
