"""Write down the privacy that each result really has."""

from pathlib import Path

from _job import job, read_context

with job(snakemake):
    from dpmc_papers.outputs import _guarantees, _tables
    from dpmc_papers.pipeline import files

    context = read_context(snakemake)
    table = _guarantees.summary(context.metrics, context.config)
    with files.replacing(Path(snakemake.output[0])) as partial:
        _tables.write(table, partial)
