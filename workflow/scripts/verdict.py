"""Compare what the document claims with what the runs gave."""

from pathlib import Path

from _context import read_context
from _job import job

with job(snakemake):
    from dpmc.experiments.outputs import _tables
    from dpmc.experiments.pipeline import files
    from dpmc.experiments.verdicts import claim_file, judge

    context = read_context(snakemake.input)
    claims = claim_file.load(snakemake.input.published, context.config["outputs"])
    table = judge.verdicts(claims, context.metrics, context.baselines, context)
    with files.replacing(Path(snakemake.output[0])) as partial:
        _tables.write(table, partial)
