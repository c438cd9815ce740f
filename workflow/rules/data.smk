# Private rows, exact draws from the posterior that they give, and what a perfect run would reach.


rule raw:
    """Where a public file is on this machine, downloaded if need be, or why it cannot be had."""
    output:
        RAW,
    log:
        f"{PAPER}/logs/raw/{{name}}.log",
    # A server that does not answer is not asked again.
    retries: raw_files.ATTEMPTS - 1
    localrule: True
    conda:
        "../../envs/dpmc.yaml"
    resources:
        attempt=lambda wildcards, attempt: attempt,
    params:
        # Another one when a file turns up that was not there.
        search=lambda wildcards: or_stop(raw_files.search, RAW.format(**wildcards), wildcards.name),
    message:
        "raw file of {wildcards.name}"
    script:
        "../scripts/raw.py"


rule problem:
    """The rows of a problem; with a model, exact posterior draws and metrics of further ones."""
    input:
        raw=of(DATA, "raw"),
    output:
        data=DATA,
        reference=REFERENCE,
        baselines=BASELINES,
    log:
        f"{PAPER}/logs/data/{{problem}}.log",
    benchmark:
        f"{PAPER}/benchmarks/data/{{problem}}.jsonl"
    wildcard_constraints:
        problem="|".join(sorted(MODELLED)) or "none",
    group:
        "problems"
    conda:
        "../../envs/dpmc.yaml"
    resources:
        mem_mb=doubling(4000),
        runtime=doubling(5),
    params:
        data=of(DATA, "settings"),
        reference=of(REFERENCE, "settings"),
        baselines=of(BASELINES, "settings"),
        reads=of(REFERENCE, "reads"),
        code=of(BASELINES, "code"),
    message:
        "rows and exact posterior draws of {wildcards.problem}"
    script:
        "../scripts/problem.py"


use rule problem as rows with:
    output:
        data=DATA,
    wildcard_constraints:
        problem="[a-z0-9_]+",
    params:
        data=of(DATA, "settings"),
        # Those of the other rule stay where none are given.
        reference=None,
        baselines=None,
        reads={},
        code=of(DATA, "code"),
    message:
        "rows of {wildcards.problem}"


ruleorder: problem > rows
