"""Draw a figure in three formats."""

from pathlib import Path

from _context import read_context
from _job import job

with job(snakemake):
    from dpmc import registry
    from dpmc.experiments.outputs import _tables
    from dpmc.experiments.pipeline import files
    from dpmc.experiments.plots import drawn, save

    context = read_context(snakemake.input)
    name = context.config["outputs"][snakemake.wildcards.name]["function"]
    figure = getattr(registry.load("output", snakemake.wildcards.paper), name)(context)
    for path in map(Path, snakemake.output):
        with files.replacing(path) as partial:
            if path.suffix == ".csv":
                _tables.write(drawn.table(figure), partial)
            else:
                save(figure, partial)
