"""Run replicates of one point of a grid."""

from _job import job, made

with job(snakemake) as progress:
    import msgspec

    from dpmc_papers.config.setups import ChainSetup
    from dpmc_papers.pipeline import run_chains, store

    settings = snakemake.params.settings
    setup, (first, last) = msgspec.convert(settings["chain"], ChainSetup), settings["seeds"]
    dataset = store.read_dataset(snakemake.input.data, run_chains.row_order(setup))
    reference = store.read_array(snakemake.input.reference)
    fits = run_chains.run_chains(setup, dataset, reference, range(first, last + 1), progress)
    store.write_fits(snakemake.output[0], fits, made(snakemake))
