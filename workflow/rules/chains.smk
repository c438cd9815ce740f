# The chains themselves, and studies that keep only what is measured of theirs: a batch of
# replicates of one point of a grid per job.


rule chain:
    """Chains of one method at one point: a batch of replicates with their draws."""
    input:
        data=of(CHAIN, "data"),
        reference=of(CHAIN, "reference"),
    output:
        CHAIN,
    log:
        f"{PAPER}/logs/chains/{POINT}.log",
    benchmark:
        f"{PAPER}/benchmarks/chains/{POINT}.jsonl"
    priority: priority_of(CHAIN)
    group:
        submission_of("chain")
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("chain"),
        runtime=minutes_of("chain"),
    params:
        setup=plain_of(CHAIN, "setup"),
    message:
        "{wildcards.label} on {wildcards.problem}, {wildcards.point}, replicates {wildcards.first} to {wildcards.last} ({wildcards.experiment})"
    script:
        "../scripts/chain.py"


rule study:
    """A study at one point of its grid: a batch of replicates, of which measurements are kept."""
    input:
        data=of(STUDY, "data"),
    output:
        STUDY,
    log:
        f"{PAPER}/logs/studies/{POINT}.log",
    benchmark:
        f"{PAPER}/benchmarks/studies/{POINT}.jsonl"
    priority: priority_of(STUDY)
    group:
        submission_of("study")
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("study"),
        runtime=minutes_of("study"),
    params:
        setup=plain_of(STUDY, "setup"),
    message:
        "{wildcards.label} on {wildcards.problem}, {wildcards.point}, replicates {wildcards.first} to {wildcards.last} ({wildcards.experiment})"
    script:
        "../scripts/study.py"


rule by_seed:
    """One replicate under a name that can be typed."""
    input:
        chains=batch_of_seed,
    output:
        f"{PAPER}/by_seed/{{problem}}/{{label}}/{{point}}/seed={{replicate}}.parquet",
    log:
        f"{PAPER}/logs/by_seed/{{problem}}/{{label}}/{{point}}/seed={{replicate}}.log",
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=1000,
    message:
        "{wildcards.label} on {wildcards.problem}, {wildcards.point}, replicate {wildcards.replicate} alone"
    script:
        "../scripts/by_seed.py"
