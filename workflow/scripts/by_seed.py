"""Copy one replicate out of the batch of chains that has it."""

from _job import job

with job(snakemake):
    from dpmc_papers.pipeline import store

    replicate = int(snakemake.wildcards.replicate)
    settings, fits = store.read_fits(snakemake.input.chains)
    one = [(number, fit) for number, fit in fits if number == replicate]
    store.write_fits(snakemake.output[0], one, settings)
