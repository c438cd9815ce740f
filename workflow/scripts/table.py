"""Write a table, and a numbered one in the layout of its document too."""

import dataclasses
from pathlib import Path

from _job import job, read_context

with job(snakemake):
    from dpmc import registry
    from dpmc_papers.outputs import _layout, _tables
    from dpmc_papers.pipeline import files
    from dpmc_papers.verdicts import claim_file

    context = read_context(snakemake, snakemake.wildcards.name)
    for path in snakemake.input.get("published", ()):
        context = dataclasses.replace(context, published=claim_file.load(path))
    name = context.config["outputs"][snakemake.wildcards.name]["function"]
    module = registry.load("output", snakemake.wildcards.paper)
    table = getattr(module, name)(context)
    long, *others = map(Path, snakemake.output)
    with files.replacing(long) as partial:
        _tables.write(table, partial)
    if others:
        declared = getattr(module, f"layout_{name}", None)
        layout = declared(context) if declared else _layout.of_table(table, name)
        for path, text in zip(others, _layout.files(layout), strict=True):
            files.write_text(path, text)
