"""Write the settings that an output depends on; what answered others is void, and goes first."""

import json
from pathlib import Path

from _job import job

with job(snakemake):
    from dpmc_papers.pipeline import files

    path, name = Path(snakemake.output[0]), snakemake.wildcards.name
    others = list(path.parent.glob(f"{name}-????????.json"))
    # Without others this may be a second attempt, after outputs that answer the same settings.
    for old in [*(snakemake.params.answers.paths if others else ()), *others]:
        Path(old).unlink(missing_ok=True)
    files.write_text(path, json.dumps(snakemake.params.config, indent=1, sort_keys=False) + "\n")
