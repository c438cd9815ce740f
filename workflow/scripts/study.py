"""Measure the points of a study on one problem."""

from _job import job, made

with job(snakemake) as progress:
    import functools
    import time

    import pandas as pd

    from dpmc_papers.pipeline import run_studies, store

    rows = functools.cache(lambda: store.read_dataset(snakemake.input.data, "rows"))
    tables = []
    for part in run_studies.parts(snakemake.params.settings):
        start = time.process_time()
        tables.append(run_studies.measured(part, rows, progress))
        progress.line(f"{time.process_time() - start:.3f} s of processor time: {part.told}")
    store.write_table(snakemake.output[0], pd.concat(tables, ignore_index=True), made(snakemake))
