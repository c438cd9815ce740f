"""Make the rows of a problem, or say that they cannot be had; with a model, exact draws too."""

from _job import job, made

with job(snakemake):
    import msgspec

    from dpmc.types import UnavailableError
    from dpmc_papers.config import problems
    from dpmc_papers.config.setups import ProblemSetup
    from dpmc_papers.pipeline import raw_files, store

    params, output = snakemake.params, snakemake.output
    setup = {"name": params.data["problem"], "data": params.data["data"]}
    setup |= {"model": params.reference["model"]} if params.get("reference") else {}
    problem, seed = msgspec.convert(setup, ProblemSetup), params.data["seed"]
    record = snakemake.input.get("raw")
    rows = {**params.data, "reads": {}}
    try:
        path = raw_files.given(record) if record else None
        store.write_dataset(output.data, problems.make_data(problem, seed, path), rows)
    except UnavailableError as error:
        store.write_absence(output.data, str(error), rows)
    if problem.model is not None:
        from dpmc_papers.pipeline import chain_metrics

        sizes = params.baselines
        dataset = store.read_dataset(output.data)
        draws = problems.make_reference(problem, dataset, seed, sizes["num_draws"], 0)
        store.write_array(output.reference, draws, made(snakemake, "reference"))
        draws = problems.make_reference(
            problem, dataset, seed, sizes["num_draws"], sizes["num_baselines"]
        )
        table = chain_metrics.baselines(draws, seed, problem.name)
        store.write_table(output.baselines, table, made(snakemake, "baselines"))
