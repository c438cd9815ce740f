"""Copy outputs, verdicts and provenance of each paper to results/published."""

import shutil
from pathlib import Path

from _job import job

with job(snakemake):
    for path in map(Path, snakemake.input):
        folder = Path("results/published") / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / path.name)
