"""Make the private rows of a problem."""

from _job import job

with job(snakemake):
    from dpmc import runner, store

    params = snakemake.params
    store.write_dataset(snakemake.output[0], runner.make_data(params.problem, params.seed))
