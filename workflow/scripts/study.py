"""Measure replicates of one point of a study."""

from _job import job

with job(snakemake) as progress:
    from dpmc import registry
    from dpmc.experiments.config.settings import typed
    from dpmc.experiments.config.setups import StudySetup
    from dpmc.experiments.pipeline import store
    from dpmc.types import UnavailableError

    setup, wildcards = typed(snakemake.params.setup, StudySetup), snakemake.wildcards
    study = registry.load("study", setup.study)
    replicates = range(int(wildcards.first), int(wildcards.last) + 1)
    try:
        dataset = store.read_dataset(snakemake.input.data, "rows")
        table = study.run(setup, dataset, replicates, progress)
    except UnavailableError as error:
        table = study.unavailable(setup, replicates, str(error))
    store.write_table(snakemake.output[0], table)
