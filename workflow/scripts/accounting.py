"""Count the iterations that budgets buy, by several accountants."""

from _job import job

with job(snakemake):
    from dpmc.yaml_files import typed
    from dpmc_papers.config.settings import Curves
    from dpmc_papers.pipeline import accounting_curves, store

    setup = typed(snakemake.params.setup, Curves)
    store.write_table(snakemake.output[0], accounting_curves.curve(setup))
