"""Compare what the paper claims with what the runs gave, and keep these runs."""

from pathlib import Path

from _job import job, read_context

with job(snakemake):
    from dpmc_papers.outputs import _tables
    from dpmc_papers.pipeline import files, results
    from dpmc_papers.verdicts import claim_file, judge, power

    context, output = read_context(snakemake), snakemake.output
    claims = claim_file.load(snakemake.input.published, context.config["outputs"])
    results.write_runs(output.runs, context)
    made = {
        output.verdicts: judge.verdicts(claims, context.metrics, context.baselines, context),
        output.power: power.table(claims, context),
    }
    for path, table in made.items():
        with files.replacing(Path(path)) as partial:
            _tables.write(table, partial)
