"""Draw the exact posterior sample of a problem."""

from _job import job

with job(snakemake):
    from dpmc.experiments.config import problems
    from dpmc.experiments.config.settings import typed
    from dpmc.experiments.config.setups import ProblemSetup
    from dpmc.experiments.pipeline import store

    params = snakemake.params
    problem = typed(params.problem, ProblemSetup)
    dataset = store.read_dataset(snakemake.input.data)
    draws = problems.make_reference(problem, dataset, params.seed, params.num_draws, 0)
    store.write_array(snakemake.output[0], draws)
