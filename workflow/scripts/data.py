"""Make the private rows of a problem, or say that they cannot be had here."""

from _job import job

with job(snakemake):
    from dpmc.types import UnavailableError
    from dpmc.yaml_files import typed
    from dpmc_papers.config import problems
    from dpmc_papers.config.setups import ProblemSetup
    from dpmc_papers.pipeline import raw_files, store

    problem = typed(snakemake.params.problem, ProblemSetup)
    record = snakemake.input.get("raw")
    try:
        path = raw_files.given(record) if record else None
        rows = problems.make_data(problem, snakemake.params.seed, path)
        store.write_dataset(snakemake.output[0], rows)
    except UnavailableError as error:
        store.write_absence(snakemake.output[0], str(error))
