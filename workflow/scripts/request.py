"""Write the settings that an output depends on; what answered others is void, and goes first."""

import json
from pathlib import Path

from _job import job

with job(snakemake):
    from dpmc.experiments.pipeline import files

    path, name = Path(snakemake.output[0]), snakemake.wildcards.name
    for answer in snakemake.params.answers.paths:
        Path(answer).unlink(missing_ok=True)
    for other in path.parent.glob(f"{name}-????????.json"):
        other.unlink()
    files.write_text(path, json.dumps(snakemake.params.config, indent=1, sort_keys=False) + "\n")
