"""Measure replicates of one point of a study."""

from _job import job

with job(snakemake) as progress:
    from dpmc import registry
    from dpmc.experiments.pipeline import store
    from dpmc.types import UnavailableError

    settings, wildcards = snakemake.params.settings, snakemake.wildcards
    study = registry.load("study", settings["study"])
    replicates = range(int(wildcards.first), int(wildcards.last) + 1)
    try:
        dataset = store.read_dataset(snakemake.input.data, "rows")
        table = study.run(settings, dataset, replicates, progress)
    except UnavailableError as error:
        table = study.unavailable(settings, replicates, str(error))
    store.write_table(snakemake.output[0], table)
