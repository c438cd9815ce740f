"""Say how a run was made: command, settings, versions, machine and time."""

import json
import os
import time
from pathlib import Path

from _job import job

with job(snakemake):
    from dpmc_papers.pipeline import files, provenance

    started = float(os.environ["DPMC_STARTED"])
    folder = Path(snakemake.output[0]).parent
    benchmarks = [Path(path) for path in snakemake.params.benchmarks.paths]
    record = {
        "date": provenance.now(),
        "command": os.environ["DPMC_COMMAND"],
        "commit": os.environ.get("DPMC_COMMIT") or None,
        "settings": snakemake.params.digest,
        **provenance.machine(),
        "last_run_wall_seconds": round(time.time() - started, 1),
        "jobs": provenance.times(folder, benchmarks),
        "commits": provenance.commits(folder, benchmarks),
        "outputs": snakemake.params.outputs,
    }
    files.write_text(snakemake.output[0], json.dumps(record, indent=1) + "\n")
