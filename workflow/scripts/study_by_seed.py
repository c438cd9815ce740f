"""Measure one replicate of a study at one point."""

from _job import job

with job(snakemake) as progress:
    from dpmc.yaml_files import typed
    from dpmc_papers.pipeline import run_parts, store
    from dpmc_papers.pipeline.jobs import StudyPart

    part = typed(snakemake.params.part, StudyPart)
    rows = store.read_dataset(snakemake.input.data, "rows")
    table = run_parts.measured(part, [part.first], lambda: rows, progress)
    store.write_table(snakemake.output[0], table)
