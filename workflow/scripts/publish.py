"""Copy outputs, verdicts and provenance of each paper to results/published, and draw its claims."""

import shutil
from pathlib import Path

from _job import job

with job(snakemake):
    from dpmc import yaml_files
    from dpmc_papers.config import reader
    from dpmc_papers.site import claims_figure
    from dpmc_papers.site.sources import cited
    from dpmc_papers.verdicts import verdict

    # In the checkout, where the site of the published results reads them.
    checkout = Path(snakemake.scriptdir).resolve().parents[1]
    kept = checkout / "results" / "published"
    for path in map(Path, snakemake.input):
        folder = kept / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / path.name)
    defaults = yaml_files.read_yaml(checkout / "config" / "config.yaml")
    every = {**defaults, "scale": "paper", "papers": [*reader.papers(checkout)]}
    papers = reader.load_config(every, checkout)
    judged = {key: kept / key / "verdict.csv" for key in papers.papers}
    claims_figure.write(
        {
            cited(papers.papers[key].plain()): verdict.read(path)
            for key, path in judged.items()
            if path.is_file()
        },
        kept,
    )
