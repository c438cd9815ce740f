"""Build the site, with every document that has pages at this scale."""

from pathlib import Path

from _job import checkout, configuration, job

with job(snakemake):
    from dpmc_papers.site.build import build
    from dpmc_papers.site.sources import Source

    scale, root = snakemake.wildcards.scale, checkout(snakemake)
    folders = {Path(page).parent.name: Path(page) for page in snakemake.input.pages}
    sources = [
        Source.of_document(paper.determining(), folders[key].parent, scale, root)
        for key, paper in configuration(snakemake, list(folders), scale).papers.items()
    ]
    build(root, sources, folders, Path(snakemake.output[0]), api=False)
