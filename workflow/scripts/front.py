"""Write the front page, with every document that has a page at this scale, and the errata."""

from pathlib import Path

from _job import job

with job(snakemake):
    from dpmc.experiments.config import reader
    from dpmc.experiments.pipeline import files
    from dpmc.experiments.site import build
    from dpmc.experiments.site.sources import Source

    scale, folder = snakemake.wildcards.scale, Path(snakemake.output[0]).parents[1]
    papers = list(snakemake.params.papers)
    config = {"scale": scale, "results_dir": str(folder.parent), "papers": papers}
    found = reader.load_config(config, Path(snakemake.scriptdir).resolve().parents[1]).papers
    errata = Path(snakemake.input.errata).read_text(encoding="utf-8")
    sources = [Source(paper.plain(), folder / key, scale) for key, paper in found.items()]
    for path, text in zip(
        snakemake.output, build.front(sources, [], errata, scale).values(), strict=True
    ):
        files.write_text(path, text)
