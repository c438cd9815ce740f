"""Write the page of a document, with all that it shows and links to."""

import json
from pathlib import Path

from _job import job

with job(snakemake):
    from dpmc_papers.site import build
    from dpmc_papers.site.sources import Source

    inputs = snakemake.input
    config = json.loads(Path(inputs.request).read_text(encoding="utf-8"))
    captions = {Path(path).name: Path(path).read_text(encoding="utf-8") for path in inputs.captions}
    docs = Path(snakemake.scriptdir).resolve().parents[1] / "docs"
    folder = Path(inputs.provenance).parent
    source = Source.of_document(config, folder, snakemake.wildcards.scale, docs)
    build.document(source, captions, Path(snakemake.output[0]))
