"""Draw a figure in three formats, or write a table, a numbered one in print's layout too."""

import dataclasses
from pathlib import Path

from _job import job, read_context

with job(snakemake):
    from dpmc import registry
    from dpmc_papers.outputs import _layout, _tables
    from dpmc_papers.pipeline import files
    from dpmc_papers.plots import drawn, save
    from dpmc_papers.verdicts import claim_file

    context = read_context(snakemake, snakemake.wildcards.name)
    for path in snakemake.input.get("published", ()):
        context = dataclasses.replace(context, published=claim_file.load(path))
    output = context.config["outputs"][snakemake.wildcards.name]
    module, name = registry.load("output", snakemake.wildcards.paper), output["function"]
    made = getattr(module, name)(context)
    first, *others = map(Path, snakemake.output)
    if output["kind"] == "figure":
        for path in (first, *others):
            with files.replacing(path) as partial:
                if path.suffix == ".csv":
                    _tables.write(drawn.table(made), partial)
                else:
                    save(made, partial)
    else:
        with files.replacing(first) as partial:
            _tables.write(made, partial)
    if output["kind"] == "table" and others:
        declared = getattr(module, f"layout_{name}", None)
        layout = declared(context) if declared else _layout.of_table(made, name)
        for path, text in zip(others, _layout.files(layout), strict=True):
            files.write_text(path, text)
