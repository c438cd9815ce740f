"""Run the replicates of one point of a grid."""

from _job import job

with job(snakemake) as progress:
    from dpmc import runner, store

    settings, wildcards = snakemake.params.chain, snakemake.wildcards
    replicates = range(int(wildcards.first), int(wildcards.last) + 1)
    dataset = store.read_dataset(snakemake.input.data, runner.row_order(settings))
    reference = store.read_array(snakemake.input.reference)
    fits = runner.run_chains(settings, dataset, reference, replicates, progress)
    store.write_fits(snakemake.output[0], fits, {"chain": settings})
