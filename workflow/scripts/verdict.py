"""Compare what the document claims with what the runs gave, and keep these runs."""

from pathlib import Path

from _context import read_context
from _job import job

with job(snakemake):
    from dpmc_papers.outputs import _tables
    from dpmc_papers.pipeline import files, runs_file
    from dpmc_papers.verdicts import claim_file, judge, power

    context = read_context(snakemake.input)
    claims = claim_file.load(snakemake.input.published, context.config["outputs"])
    made = {
        snakemake.output.verdicts: judge.verdicts(
            claims, context.metrics, context.baselines, context
        ),
        snakemake.output.power: power.table(claims, context),
    }
    runs_file.write(snakemake.output.runs, context)
    for path, table in made.items():
        with files.replacing(Path(path)) as partial:
            _tables.write(table, partial)
