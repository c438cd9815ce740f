"""Run the replicates of one point of a grid."""

from _job import job

with job(snakemake) as progress:
    from dpmc.yaml_files import typed
    from dpmc_papers.config.settings import plain
    from dpmc_papers.config.setups import ChainSetup
    from dpmc_papers.pipeline import run_chains, store

    setup, wildcards = typed(snakemake.params.setup, ChainSetup), snakemake.wildcards
    replicates = range(int(wildcards.first), int(wildcards.last) + 1)
    dataset = store.read_dataset(snakemake.input.data, run_chains.row_order(setup))
    reference = store.read_array(snakemake.input.reference)
    fits = run_chains.run_chains(setup, dataset, reference, replicates, progress)
    store.write_fits(snakemake.output[0], fits, {"chain": plain(setup)})
