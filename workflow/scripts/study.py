"""Measure the points of a study on one problem."""

from pathlib import Path

from _job import job

with job(snakemake) as progress:
    import functools

    from dpmc.yaml_files import typed
    from dpmc_papers.pipeline import run_parts, store
    from dpmc_papers.pipeline.jobs import StudyPart

    parts = typed(snakemake.params.parts, list[StudyPart])
    rows = functools.cache(lambda: store.read_dataset(snakemake.input.data, "rows"))
    folder, problem = Path(snakemake.output[0]).parent, snakemake.wildcards.problem
    known = run_parts.earlier(folder, problem, [part.digest for part in parts])

    def measure(part, replicates, tell):
        return run_parts.measured(part, replicates, rows, tell)

    made = run_parts.run_parts(parts, known, measure, progress.log.line, progress)
    store.write_parts(snakemake.output[0], made)
