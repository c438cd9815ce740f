"""Count the iterations that budgets buy, by several accountants."""

from _job import job

with job(snakemake):
    from dpmc.experiments.config.settings import Curves, typed
    from dpmc.experiments.pipeline import accounting_curves, store

    setup = typed(snakemake.params.setup, Curves)
    store.write_table(snakemake.output[0], accounting_curves.curve(setup))
