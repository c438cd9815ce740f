"""Write the front page, with every document that has a page at this scale, and the texts."""

from pathlib import Path

from _job import job

with job(snakemake):
    from dpmc_papers.config import reader
    from dpmc_papers.site import build
    from dpmc_papers.site.sources import Source

    scale, folder = snakemake.wildcards.scale, Path(snakemake.output[0]).parents[1]
    papers = list(snakemake.params.papers)
    config = {"scale": scale, "results_dir": str(folder.parent), "papers": papers}
    checkout = Path(snakemake.scriptdir).resolve().parents[1]
    found = reader.load_config(config, checkout).papers
    sources = [
        Source.of_document(paper.determining(), folder / key, scale, checkout / "docs")
        for key, paper in found.items()
    ]
    build.write_front(snakemake.output, sources, [], checkout / "docs", scale)
