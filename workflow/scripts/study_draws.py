"""Keep the draws of one replicate of a study at one point."""

from _job import job

with job(snakemake) as progress:
    from dpmc.yaml_files import typed
    from dpmc_papers.pipeline import run_parts, store
    from dpmc_papers.pipeline.jobs import StudyPart

    part = typed(snakemake.params.part, StudyPart)
    dataset = store.read_dataset(snakemake.input.data, "rows")
    store.write_array(snakemake.output[0], run_parts.draws_of(part, dataset, progress))
