"""Draw a figure in three formats."""

import dataclasses
from pathlib import Path

from _context import read_context
from _job import job

with job(snakemake):
    from dpmc import registry
    from dpmc_papers.outputs import _tables
    from dpmc_papers.pipeline import files
    from dpmc_papers.plots import drawn, save
    from dpmc_papers.verdicts import claim_file

    context = read_context(snakemake.input)
    for path in snakemake.input.get("published", ()):
        claims = claim_file.load(path)
        context = dataclasses.replace(context, published=claims)
    name = context.config["outputs"][snakemake.wildcards.name]["function"]
    figure = getattr(registry.load("output", snakemake.wildcards.paper), name)(context)
    for path in map(Path, snakemake.output):
        with files.replacing(path) as partial:
            if path.suffix == ".csv":
                _tables.write(drawn.table(figure), partial)
            else:
                save(figure, partial)
