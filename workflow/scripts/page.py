"""Write the pages of a document as Markdown, with all that they show and link to."""

from pathlib import Path

from _job import checkout, configuration, job

with job(snakemake):
    from dpmc_papers.site import pages
    from dpmc_papers.site.sources import Source

    key, scale = snakemake.wildcards.paper, snakemake.wildcards.scale
    paper = configuration(snakemake, [key], scale).papers[key]
    texts = [Path(path) for path in snakemake.input.texts if path.endswith(".rst")]
    captions = {path.name: path.read_text(encoding="utf-8") for path in texts}
    folder = Path(snakemake.input.provenance).parent
    source = Source.of_document(paper.determining(), folder, scale, checkout(snakemake))
    pages.write(source, captions, Path(snakemake.output[0], "index.md"))
