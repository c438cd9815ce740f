"""Say where the results are and what they lack, and name files that the configuration has not."""

import json
import sys
from pathlib import Path

from _job import Log, configuration
from dpmc.types import DpmcError
from dpmc_papers.data._uci import FOLDER_VARIABLE
from dpmc_papers.pipeline import stale
from dpmc_papers.pipeline.workload import Workload

SHOWN = 10
papers, scale = snakemake.params.papers, snakemake.params.scale
try:
    config = configuration(snakemake, papers, scale)
    works = [Workload(config, paper) for paper in papers]
    found = stale.found(works)
except DpmcError as error:
    sys.exit(f"dpmc: {error}")
site = Path(config.results_dir, scale, "site", "index.html").resolve()
lines = [f"Open {site} in a browser."]
records = sorted({path for work in works for path in Path(work.folder, "raw").glob("*.json")})
lacking = {path.stem: path for path in records if "unavailable" in json.loads(path.read_text())}
if lacking:
    lines.append(
        f"Without data that could not be had here: {', '.join(lacking)}. Put their files into "
        f"a folder that {FOLDER_VARIABLE} names (docs/reproduction.md) and run again, or try "
        "downloads again: `uv run snakemake --cores all --forcerun "
        f"{' '.join(map(str, lacking.values()))}`"
    )
if scale != "paper":
    lines.append(
        "The published grids: `make docs` makes a site of the results that are kept, "
        "`uv run snakemake --cores all --config scale=paper` runs them."
    )
if found:
    told = [f"  {path}: {why}" for path, why in list(found.items())[:SHOWN]]
    more = [f"  and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    end = f"Remove them: `uv run python -m dpmc_papers clean --scale {scale}`"
    head = f"{len(found)} files are not what the configuration asks for:"
    lines += [head, *told, *more, end]
text = "\n".join(lines)
print(text, file=sys.stderr)
Log(snakemake.log[0]).line(text)
sys.exit(any(why == stale.OTHERWISE for why in found.values()))
