"""Write the pages of a document as Markdown, with all that they show and link to."""

import json
from pathlib import Path

from _job import job

with job(snakemake):
    from dpmc_papers.site import pages
    from dpmc_papers.site.sources import Source

    inputs = snakemake.input
    config = json.loads(Path(inputs.request).read_text(encoding="utf-8"))
    captions = {Path(path).name: Path(path).read_text(encoding="utf-8") for path in inputs.captions}
    checkout = Path(snakemake.scriptdir).resolve().parents[1]
    folder = Path(inputs.provenance).parent
    source = Source.of_document(config, folder, snakemake.wildcards.scale, checkout)
    pages.write(source, captions, Path(snakemake.output[0]))
