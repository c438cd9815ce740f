"""Draw the exact posterior sample of a problem."""

from _job import job

with job(snakemake):
    from dpmc.experiments.config import problems
    from dpmc.experiments.pipeline import store

    params = snakemake.params
    dataset = store.read_dataset(snakemake.input.data)
    draws = problems.make_reference(params.problem, dataset, params.seed, params.num_draws, 0)
    store.write_array(snakemake.output[0], draws)
