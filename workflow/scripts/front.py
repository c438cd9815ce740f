"""Write the front page, with every document that has a page at this scale, and the texts."""

from pathlib import Path

from _job import checkout, configuration, job

with job(snakemake):
    from dpmc_papers.site import build
    from dpmc_papers.site.sources import Source

    scale, folder = snakemake.wildcards.scale, Path(snakemake.output[0]).parents[1]
    keys = [Path(page).parent.name for page in snakemake.input.pages]
    docs = checkout(snakemake) / "docs"
    sources = [
        Source.of_document(paper.determining(), folder / key, scale, docs)
        for key, paper in configuration(snakemake, keys, scale).papers.items()
    ]
    build.write_front(snakemake.output, sources, [], docs, scale)
