# Studies, of which measurements are kept and no draws, and what accountants allow.


rule study:
    """A study on one problem: a batch of replicates of all its points and methods."""
    input:
        data=of(STUDY, "data"),
    output:
        STUDY,
    log:
        f"{PAPER}/logs/studies/{{experiment}}/{{problem}}/{{seeds}}.log",
    benchmark:
        f"{PAPER}/benchmarks/studies/{{experiment}}/{{problem}}/{{seeds}}.jsonl"
    group:
        "studies"
    conda:
        "../../envs/dpmc.yaml"
    threads: cores_of_study
    resources:
        mem_mb=doubling(4000),
        runtime=doubling(120),
    params:
        settings=of(STUDY, "settings"),
        reads=of(STUDY, "reads"),
        code=of(STUDY, "code"),
    message:
        "{wildcards.experiment} on {wildcards.problem}, {wildcards.seeds}"
    script:
        "../scripts/study.py"


rule accounting:
    """Iterations that budgets buy, by several accountants."""
    output:
        CURVES,
    log:
        f"{PAPER}/logs/accounting/{{name}}.log",
    benchmark:
        f"{PAPER}/benchmarks/accounting/{{name}}.jsonl"
    group:
        "studies"
    conda:
        "../../envs/dpmc.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(30),
    params:
        settings=of(CURVES, "settings"),
        reads=of(CURVES, "reads"),
        code=of(CURVES, "code"),
    message:
        "iterations by accountant for {wildcards.name} of {wildcards.paper}"
    script:
        "../scripts/accounting.py"
