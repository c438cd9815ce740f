# The chains themselves, a batch of replicates of one point of a grid per job, and studies that keep
# only what is measured of theirs, many points per job.


rule chain:
    """Chains of one method at one point: a batch of replicates with their draws."""
    input:
        data=files_in(of(CHAIN, "data")),
        reference=files_in(of(CHAIN, "reference")),
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
    """A study on one problem: points and replicates, of which measurements are kept."""
    input:
        data=files_in(of(STUDY, "data")),
    output:
        STUDY,
    log:
        f"{PAPER}/logs/studies/{PAIR}.log",
    benchmark:
        f"{PAPER}/benchmarks/studies/{PAIR}.jsonl"
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
        parts=plain_of(STUDY, "parts"),
        told=of(STUDY, "told"),
    message:
        "{wildcards.experiment} on {wildcards.problem}: {params.told}"
    script:
        "../scripts/study.py"


rule run_time:
    """Run times of methods: no result but a measurement, so no other job of a run on one machine runs beside it."""
    input:
        data=files_in(of(RUN_TIME, "data")),
    output:
        RUN_TIME,
    log:
        f"{PAPER}/logs/run_times/{PAIR}.log",
    benchmark:
        f"{PAPER}/benchmarks/run_times/{PAIR}.jsonl"
    priority: priority_of(RUN_TIME)
    group:
        submission_of("run_time")
    conda:
        "../../envs/dpmc.yaml"
    # All that there are: the job itself uses one.
    threads: lambda wildcards: workflow.cores
    resources:
        mem_mb=memory_of("run_time"),
        runtime=minutes_of("run_time"),
    params:
        parts=plain_of(RUN_TIME, "parts"),
        told=of(RUN_TIME, "told"),
    message:
        "run times of {wildcards.experiment} on {wildcards.problem}: {params.told}"
    script:
        "../scripts/study.py"


rule by_seed:
    """One replicate under a name that can be typed."""
    input:
        chains=files_in(batch_of_seed),
    output:
        f"{PAPER}/by_seed/{{problem}}/{{label}}/{{point}}/seed={{replicate}}.parquet",
    log:
        f"{PAPER}/logs/by_seed/{{problem}}/{{label}}/{{point}}/seed={{replicate}}.log",
    localrule: True
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        batch=lambda wildcards: Path(batch_of_seed(wildcards)).parent.name,
    message:
        "{wildcards.label} on {wildcards.problem}, {wildcards.point}, replicate {wildcards.replicate} alone"
    script:
        "../scripts/by_seed.py"


rule study_by_seed:
    """What a study measures of one replicate, under a name that can be typed."""
    input:
        data=files_in(lambda wildcards: untimed_part(wildcards)[0]),
    output:
        f"{PAPER}/by_seed/{LABEL}/{{point}}/seed={{replicate}}.parquet",
    log:
        f"{PAPER}/logs/by_seed/{LABEL}/{{point}}/seed={{replicate}}.log",
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=memory_of_seed,
        runtime=minutes_of_seed,
    params:
        part=lambda wildcards: plain(untimed_part(wildcards)[1]),
    message:
        "{wildcards.label} on {wildcards.problem}, {wildcards.point}, replicate {wildcards.replicate} alone ({wildcards.experiment})"
    script:
        "../scripts/study_by_seed.py"


rule study_draws:
    """The draws of one replicate of a study, of which its table has measurements alone."""
    input:
        data=files_in(lambda wildcards: part_of_seed(wildcards)[0]),
    output:
        f"{PAPER}/draws/{LABEL}/{{point}}/seed={{replicate}}.parquet",
    log:
        f"{PAPER}/logs/draws/{LABEL}/{{point}}/seed={{replicate}}.log",
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=memory_of_seed,
        runtime=minutes_of_seed,
    params:
        part=lambda wildcards: plain(part_of_seed(wildcards)[1]),
    message:
        "draws of {wildcards.label} on {wildcards.problem}, {wildcards.point}, replicate {wildcards.replicate} ({wildcards.experiment})"
    script:
        "../scripts/study_draws.py"
