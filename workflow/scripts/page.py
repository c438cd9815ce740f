"""Write the page of a document, with all that it shows and links to."""

from pathlib import Path

from _job import checkout, configuration, job

with job(snakemake):
    from dpmc_papers.site import build
    from dpmc_papers.site.sources import Source

    key, scale = snakemake.wildcards.paper, snakemake.wildcards.scale
    paper = configuration(snakemake, [key], scale).papers[key]
    texts = [Path(path) for path in snakemake.input.texts if path.endswith(".rst")]
    captions = {path.name: path.read_text(encoding="utf-8") for path in texts}
    folder, docs = Path(snakemake.input.provenance).parent, checkout(snakemake) / "docs"
    source = Source.of_document(paper.determining(), folder, scale, docs)
    build.document(source, captions, Path(snakemake.output[0]))
