"""Count the iterations that budgets buy, by several accountants."""

from _job import job

with job(snakemake):
    from dpmc.experiments.pipeline import accounting_curves, store

    store.write_table(snakemake.output[0], accounting_curves.curve(snakemake.params.settings))
