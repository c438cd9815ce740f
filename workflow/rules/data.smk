# Private rows, and exact draws from the posterior that they give.
# `params` name what a result depends on; so do the digests in the names of the files, which
# hold when the records in .snakemake are lost.


rule raw:
    """Where a public file is on this machine, downloaded if need be, or why it cannot be had."""
    output:
        RAW,
    log:
        f"{PAPER}/logs/raw/{{name}}-{{digest}}.log",
    benchmark:
        f"{PAPER}/benchmarks/raw/{{name}}-{{digest}}.jsonl"
    # Before all work: it waits for others.
    priority: 1_000_000_000
    # A server that does not answer is not asked again.
    retries: raw_files.ATTEMPTS - 1
    localrule: True
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        attempt=lambda wildcards, attempt: attempt,
    message:
        "raw file of {wildcards.name}"
    script:
        "../scripts/raw.py"


rule data:
    """The private rows of a problem, drawn or read from a public file."""
    input:
        raw=raw_of,
    output:
        DATA,
    log:
        f"{PAPER}/logs/data/{{problem}}-{{digest}}.log",
    benchmark:
        f"{PAPER}/benchmarks/data/{{problem}}-{{digest}}.jsonl"
    priority: priority_of(DATA)
    group:
        submission_of("data")
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        problem=plain_of(DATA, "setup"),
        seed=setting("seed"),
    message:
        "rows of {wildcards.problem}"
    script:
        "../scripts/data.py"


rule reference:
    """Exact draws from the posterior of a problem."""
    input:
        data=files_in(of(REFERENCE, "data")),
    output:
        REFERENCE,
    log:
        f"{PAPER}/logs/reference/{{problem}}-{{digest}}.log",
    benchmark:
        f"{PAPER}/benchmarks/reference/{{problem}}-{{digest}}.jsonl"
    priority: priority_of(REFERENCE)
    group:
        submission_of("reference")
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("reference"),
        runtime=minutes_of("reference"),
    params:
        problem=plain_of(REFERENCE, "setup"),
        seed=setting("seed"),
        num_draws=setting("reference", "num_draws"),
    message:
        "exact posterior sample of {wildcards.problem}"
    script:
        "../scripts/reference.py"


rule baseline:
    """Metrics of exact draws: what a perfect run reaches."""
    input:
        data=files_in(of(BASELINE, "data")),
    output:
        BASELINE,
    log:
        f"{PAPER}/logs/baselines/{{problem}}-{{digest}}.log",
    benchmark:
        f"{PAPER}/benchmarks/baselines/{{problem}}-{{digest}}.jsonl"
    priority: priority_of(BASELINE)
    group:
        submission_of("baseline")
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("baseline"),
        runtime=minutes_of("baseline"),
    params:
        problem=plain_of(BASELINE, "setup"),
        seed=setting("seed"),
        num_draws=setting("reference", "num_draws"),
        num_baselines=setting("reference", "num_baselines"),
    message:
        "metrics of exact samples of {wildcards.problem}"
    script:
        "../scripts/baseline.py"
