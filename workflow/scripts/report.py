"""Write the page that shows every figure, table and verdict of a document."""

import json
from pathlib import Path

from _job import job

with job(snakemake):
    import pandas as pd

    from dpmc import files, store
    from dpmc.outputs import _report

    inputs, folder = snakemake.input, Path(snakemake.output[0]).parent
    config = json.loads(Path(inputs.request).read_text(encoding="utf-8"))
    kinds = {name: entry["kind"] for name, entry in config["outputs"].items()}
    captions = {Path(path).stem: Path(path).read_text(encoding="utf-8") for path in inputs.captions}
    page = _report.render(
        config,
        store.read_tables(inputs.metrics),
        pd.read_csv(folder / "verdict.csv"),
        {name: pd.read_csv(folder / f"{name}.csv") for name in kinds if kinds[name] == "table"},
        {name: f"{name}.svg" for name in kinds if kinds[name] == "figure"},
        {name: captions[Path(entry["caption"]).stem] for name, entry in config["outputs"].items()},
        json.loads(Path(inputs.provenance).read_text(encoding="utf-8")),
        folder=folder,
        scale=snakemake.wildcards.scale,
    )
    files.write_text(snakemake.output[0], page)
