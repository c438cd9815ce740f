"""Measure further exact samples against the reference: what a perfect run reaches."""

from _job import job

with job(snakemake):
    from dpmc.yaml_files import typed
    from dpmc_papers.config import problems
    from dpmc_papers.config.setups import ProblemSetup
    from dpmc_papers.pipeline import chain_metrics, store

    params = snakemake.params
    problem = typed(params.problem, ProblemSetup)
    dataset = store.read_dataset(snakemake.input.data)
    draws = problems.make_reference(
        problem, dataset, params.seed, params.num_draws, params.num_baselines
    )
    table = chain_metrics.baselines(draws, params.seed, snakemake.wildcards.problem)
    store.write_table(snakemake.output[0], table)
