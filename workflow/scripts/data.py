"""Make the private rows of a problem, or say that they cannot be had here."""

from _job import job

with job(snakemake):
    from dpmc.experiments.config import problems
    from dpmc.experiments.pipeline import store
    from dpmc.types import UnavailableError

    params = snakemake.params
    try:
        store.write_dataset(snakemake.output[0], problems.make_data(params.problem, params.seed))
    except UnavailableError as error:
        store.write_absence(snakemake.output[0], str(error))
