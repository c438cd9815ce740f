"""Write the front page, with every document that has a page at this scale, and the errata."""

from pathlib import Path

from _job import job

with job(snakemake):
    from dpmc import files, spec
    from dpmc.site import build
    from dpmc.site.sources import Source

    scale, folder = snakemake.wildcards.scale, Path(snakemake.params.results)
    config = {"scale": scale, "results_dir": str(folder), "papers": list(snakemake.params.papers)}
    papers = spec.load_config(config).papers
    errata = Path(snakemake.input.errata).read_text(encoding="utf-8")
    sources = [Source(papers[key], folder / scale / key, scale) for key in papers]
    for path, text in zip(
        snakemake.output, build.front(sources, [], errata, scale).values(), strict=True
    ):
        files.write_text(path, text)
