# Chains, a batch of replicates of one point of a grid per job, and metrics of them.


rule chain:
    """Chains of one method at one point: a batch of replicates with their draws."""
    input:
        data=of(CHAINS, "data"),
        reference=of(CHAINS, "reference"),
    output:
        CHAINS,
    log:
        f"{PAPER}/logs/chains/{{experiment}}/{{problem}}/{{label}}/{{point}}/{{seeds}}.log",
    benchmark:
        f"{PAPER}/benchmarks/chains/{{experiment}}/{{problem}}/{{label}}/{{point}}/{{seeds}}.jsonl"
    group:
        "chains"
    conda:
        "../../envs/dpmc.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(15),
    params:
        settings=of(CHAINS, "settings"),
        reads=of(CHAINS, "reads"),
        code=of(CHAINS, "code"),
    message:
        "{wildcards.label} on {wildcards.problem}, {wildcards.point}, {wildcards.seeds} ({wildcards.experiment})"
    script:
        "../scripts/chain.py"


rule metrics:
    """Metrics of all chains of an experiment on one problem."""
    input:
        chains=of(METRICS, "chains"),
        reference=of(METRICS, "reference"),
    output:
        METRICS,
    log:
        f"{PAPER}/logs/metrics/{{experiment}}/{{problem}}.log",
    benchmark:
        f"{PAPER}/benchmarks/metrics/{{experiment}}/{{problem}}.jsonl"
    group:
        "metrics"
    conda:
        "../../envs/dpmc.yaml"
    resources:
        mem_mb=doubling(4000),
        runtime=doubling(20),
    params:
        settings=of(METRICS, "settings"),
        reads=of(METRICS, "reads"),
        code=of(METRICS, "code"),
    message:
        "metrics of {wildcards.experiment} on {wildcards.problem}"
    script:
        "../scripts/metrics.py"
