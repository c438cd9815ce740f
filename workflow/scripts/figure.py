"""Draw a figure in three formats, and write the numbers that it shows."""

import dataclasses
from pathlib import Path

from _job import job, read_context

with job(snakemake):
    from dpmc import registry
    from dpmc_papers.outputs import _tables
    from dpmc_papers.pipeline import files
    from dpmc_papers.plots import drawn, save
    from dpmc_papers.verdicts import claim_file

    name = snakemake.wildcards.name
    context = read_context(snakemake, name)
    for path in snakemake.input.get("published", ()):
        context = dataclasses.replace(context, published=claim_file.load(path))
    module = registry.load("output", snakemake.wildcards.paper)
    figure = getattr(module, context.config["outputs"][name]["function"])(context)
    for path in map(Path, snakemake.output):
        with files.replacing(path) as partial:
            if path.suffix == ".csv":
                _tables.write(drawn.table(figure), partial)
            else:
                save(figure, partial)
