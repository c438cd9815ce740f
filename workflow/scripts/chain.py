"""Run the replicates of one point of a grid."""

from _job import job

with job(snakemake) as progress:
    from dpmc.experiments.pipeline import run_chains, store

    settings, wildcards = snakemake.params.chain, snakemake.wildcards
    replicates = range(int(wildcards.first), int(wildcards.last) + 1)
    dataset = store.read_dataset(snakemake.input.data, run_chains.row_order(settings))
    reference = store.read_array(snakemake.input.reference)
    fits = run_chains.run_chains(settings, dataset, reference, replicates, progress)
    store.write_fits(snakemake.output[0], fits, {"chain": settings})
