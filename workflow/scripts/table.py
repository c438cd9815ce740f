"""Write a table."""

from pathlib import Path

from _context import read_context
from _job import job

with job(snakemake):
    from dpmc import registry
    from dpmc.experiments.outputs import _tables
    from dpmc.experiments.pipeline import files

    context = read_context(snakemake.input)
    name = context.config["outputs"][snakemake.wildcards.name]["function"]
    table = getattr(registry.load("output", snakemake.wildcards.paper), name)(context)
    with files.replacing(Path(snakemake.output[0])) as partial:
        _tables.write(table, partial)
