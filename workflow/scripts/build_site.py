"""Build the site, with every document that has pages at this scale."""

from pathlib import Path

from _job import job

with job(snakemake):
    from dpmc_papers.config import reader
    from dpmc_papers.site.build import build
    from dpmc_papers.site.sources import Source

    scale, front = snakemake.wildcards.scale, Path(snakemake.output[0])
    folders = {Path(page).parents[1].name: Path(page).parent for page in snakemake.input.pages}
    config = {"scale": scale, "results_dir": str(front.parents[2]), "papers": list(folders)}
    checkout = Path(snakemake.scriptdir).resolve().parents[1]
    sources = [
        Source.of_document(paper.determining(), folders[key].parent, scale, checkout)
        for key, paper in reader.load_config(config, checkout).papers.items()
    ]
    build(checkout, sources, folders, front.parent)
    front.with_name("index.html").replace(front)
