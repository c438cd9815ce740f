"""Measure all runs of some methods on one problem against the exact sample."""

from pathlib import Path

from _job import job

with job(snakemake):
    import functools

    from dpmc.yaml_files import typed
    from dpmc_papers.config.setups import ChainSetup
    from dpmc_papers.pipeline import chain_metrics, run_parts, store

    experiment, problem = snakemake.wildcards.experiment, snakemake.wildcards.problem
    methods = snakemake.params.methods
    reference = functools.cache(lambda: store.read_array(snakemake.input.reference))
    digests = [method["digest"] for method in methods]
    known = run_parts.earlier(Path(snakemake.output[0]).parent, problem, digests)

    def runs(paths, points):
        for path, point in zip(paths, points, strict=True):
            head, fits = store.read_fits(path)
            setup = typed(head["chain"], ChainSetup)
            for replicate, fit in fits:
                yield setup, point, replicate, fit

    def parts():
        first = 0
        for method in methods:
            last = first + len(method["points"])
            if method["digest"] in known:
                yield method["digest"], known[method["digest"]][0]
            else:
                chains = runs(snakemake.input.chains[first:last], method["points"])
                names = {"experiment": experiment, "label": method["label"]}
                seed = snakemake.params.seed
                table = chain_metrics.evaluate(chains, reference(), seed, **names)
                yield method["digest"], store.to_rows(table)
            first = last

    store.write_parts(snakemake.output[0], parts())
