"""Make the private rows of a problem, or say that they cannot be had here."""

from _job import job

with job(snakemake):
    from dpmc.experiments.config import problems
    from dpmc.experiments.config.settings import typed
    from dpmc.experiments.config.setups import ProblemSetup
    from dpmc.experiments.pipeline import store
    from dpmc.types import UnavailableError

    problem = typed(snakemake.params.problem, ProblemSetup)
    try:
        rows = problems.make_data(problem, snakemake.params.seed)
        store.write_dataset(snakemake.output[0], rows)
    except UnavailableError as error:
        store.write_absence(snakemake.output[0], str(error))
