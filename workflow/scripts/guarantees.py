"""Write down the privacy that each result really has."""

from pathlib import Path

from _context import read_context
from _job import job

with job(snakemake):
    from dpmc import files
    from dpmc.outputs import _guarantees, _tables

    table = _guarantees.summary(read_context(snakemake.input).metrics)
    with files.replacing(Path(snakemake.output[0])) as partial:
        _tables.write(table, partial)
