# What the run took, and the page that a reader opens first.


rule provenance:
    input:
        outputs=outputs_of,
    output:
        f"{PAPER}/provenance.json",
    log:
        f"{PAPER}/logs/provenance.log",
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=500,
    params:
        digest=settings_digest,
        benchmarks=benchmarks_of,
    message:
        "provenance of {wildcards.paper}"
    script:
        "../scripts/provenance.py"


rule report:
    input:
        request=of_output("request", "report"),
        metrics=of_output("metrics", "report"),
        outputs=outputs_of,
        provenance=f"{PAPER}/provenance.json",
        captions=captions_of,
        template="src/dpmc/outputs/_report.html.j2",
    output:
        f"{PAPER}/report.html",
    log:
        f"{PAPER}/logs/report.log",
    benchmark:
        f"{PAPER}/benchmarks/report.jsonl"
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=1000,
    message:
        "report on {wildcards.paper}"
    script:
        "../scripts/report.py"
