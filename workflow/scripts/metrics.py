"""Measure all runs of one method on one problem against the exact sample."""

from _job import job

with job(snakemake):
    from dpmc.experiments.config.settings import typed
    from dpmc.experiments.config.setups import ChainSetup
    from dpmc.experiments.pipeline import chain_metrics, store

    def runs():
        for path, point in zip(snakemake.input.chains, snakemake.params.points, strict=True):
            head, fits = store.read_fits(path)
            setup = typed(head["chain"], ChainSetup)
            for replicate, fit in fits:
                yield setup, point, replicate, fit

    names = {key: snakemake.wildcards[key] for key in ("experiment", "label")}
    reference = store.read_array(snakemake.input.reference)
    table = chain_metrics.evaluate(runs(), reference, snakemake.params.seed, **names)
    store.write_table(snakemake.output[0], table)
