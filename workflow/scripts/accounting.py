"""Count the iterations that budgets buy, by several accountants."""

from _job import job

with job(snakemake):
    from dpmc import curves, store

    store.write_table(snakemake.output[0], curves.curve(snakemake.params.settings))
