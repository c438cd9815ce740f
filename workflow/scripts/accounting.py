"""Count the iterations that budgets buy, by several accountants."""

from _job import job, made

with job(snakemake):
    import msgspec

    from dpmc_papers.config.settings import Curves
    from dpmc_papers.pipeline import accounting_curves, store

    setup = msgspec.convert(snakemake.params.settings["curves"], Curves)
    store.write_table(snakemake.output[0], accounting_curves.curve(setup), made(snakemake))
