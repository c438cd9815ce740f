"""Compare what the document claims with what the runs gave."""

from pathlib import Path

from _context import read_context
from _job import job

with job(snakemake):
    from dpmc import files, published
    from dpmc.outputs import _tables

    context = read_context(snakemake.input)
    claims = published.load(snakemake.input.published)
    table = published.verdicts(claims, context.metrics, context.baselines, context)
    with files.replacing(Path(snakemake.output[0])) as partial:
        _tables.write(table, partial)
