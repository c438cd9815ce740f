"""Write the site of the results that are kept under version control."""

from pathlib import Path

from _job import job

with job(snakemake):
    from dpmc_papers.config import reader
    from dpmc_papers.site import build
    from dpmc_papers.site.sources import Source

    root = Path(snakemake.output[0]).parent
    config = {"scale": "paper", "results_dir": str(root), "papers": list(snakemake.params.papers)}
    checkout = Path(snakemake.scriptdir).resolve().parents[1]
    found = reader.load_config(config, checkout).papers
    papers = {key: paper.determining() for key, paper in found.items()}
    kept = checkout / "results" / "published"
    captions = {
        path.name: path.read_text(encoding="utf-8") for path in map(Path, snakemake.input.captions)
    }
    docs = checkout / "docs"
    sources = [
        Source.of_earlier(p, kept / key, "paper", docs)
        for key, p in papers.items()
        if (kept / key).is_dir()
    ]
    absent = [p for key, p in papers.items() if not (kept / key).is_dir()]
    others = [source.config for source in sources]
    for source in sources:
        build.document(source, captions, root / source.key / "index.html", others)
    build.write_front(snakemake.output, sources, absent, docs, "paper")
