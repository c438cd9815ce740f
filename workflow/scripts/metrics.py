"""Measure all runs of an experiment on one problem against the exact sample."""

from _job import in_paper, job, made

with job(snakemake):
    import msgspec
    import pandas as pd

    from dpmc_papers.config.setups import ChainSetup
    from dpmc_papers.pipeline import chain_metrics, store

    settings = snakemake.params.settings
    files = {in_paper(snakemake, path): path for path in snakemake.input.chains}
    reference = store.read_array(snakemake.input.reference)

    def runs(point):
        for name in point["files"]:
            given, fits = store.read_fits(files[name])
            setup = msgspec.convert(given["chain"], ChainSetup)
            for replicate, fit in fits:
                if replicate < point["replicates"]:
                    yield setup, point["point"], replicate, fit

    tables = []
    for point in settings["points"]:
        names = {"experiment": settings["experiment"], "label": point["label"]}
        tables.append(chain_metrics.evaluate(runs(point), reference, settings["seed"], **names))
    store.write_table(snakemake.output[0], pd.concat(tables, ignore_index=True), made(snakemake))
