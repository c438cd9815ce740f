"""Draw the exact posterior sample of a problem."""

from _job import job

with job(snakemake):
    from dpmc.yaml_files import typed
    from dpmc_papers.config import problems
    from dpmc_papers.config.setups import ProblemSetup
    from dpmc_papers.pipeline import store

    params = snakemake.params
    problem = typed(params.problem, ProblemSetup)
    dataset = store.read_dataset(snakemake.input.data)
    draws = problems.make_reference(problem, dataset, params.seed, params.num_draws, 0)
    store.write_array(snakemake.output[0], draws)
