# Metrics of the chains, what accountants allow; figures, tables and verdicts made from them.
# These last have fixed names. Each reads a request, whose name holds the digest of all that
# determines it. One that is not there yet first removes what answered another, and makes its
# output anew: no dates of files and no records in .snakemake are needed, and a run that is killed in
# between leaves no output that answers other settings.


rule metrics:
    """Metrics of all chains of some methods on one problem."""
    input:
        chains=files_in(of(METRICS, "chains")),
        reference=files_in(of(METRICS, "reference")),
    output:
        METRICS,
    log:
        f"{PAPER}/logs/metrics/{PAIR}.log",
    benchmark:
        f"{PAPER}/benchmarks/metrics/{PAIR}.jsonl"
    priority: priority_of(METRICS)
    group:
        submission_of("metrics")
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("metrics"),
        runtime=minutes_of("metrics"),
    params:
        methods=methods_of,
        seed=setting("seed"),
        told=of(METRICS, "told"),
    message:
        "metrics of {params.told} on {wildcards.problem} ({wildcards.experiment})"
    script:
        "../scripts/metrics.py"


rule accounting:
    """Iterations that budgets buy, by several accountants."""
    output:
        CURVES,
    log:
        f"{PAPER}/logs/accounting/{{name}}-{{digest}}.log",
    benchmark:
        f"{PAPER}/benchmarks/accounting/{{name}}-{{digest}}.jsonl"
    priority: priority_of(CURVES)
    group:
        submission_of("accounting")
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("accounting"),
        runtime=minutes_of("accounting"),
    params:
        setup=plain_of(CURVES, "setup"),
    message:
        "iterations by accountant for {wildcards.name} of {wildcards.paper}"
    script:
        "../scripts/accounting.py"


rule request:
    """The settings that an output answers; the name of the file holds their digest."""
    output:
        REQUEST,
    log:
        f"{PAPER}/logs/requests/{{name}}-{{digest}}.log",
    benchmark:
        f"{PAPER}/benchmarks/requests/{{name}}-{{digest}}.jsonl"
    priority: priority_of(REQUEST)
    localrule: True
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=500,
    params:
        config=of(REQUEST, "config"),
        answers=answers_of,
    message:
        "settings of {wildcards.name}"
    script:
        "../scripts/request.py"


rule figure:
    """A figure as PDF, SVG and PNG, and the numbers that it shows."""
    input:
        request=files_in(of_output("request")),
        metrics=files_in(of_output("metrics")),
        baselines=files_in(of_output("baselines")),
        chains=files_in(of_output("chains")),
        references=files_in(of_output("references")),
        datasets=files_in(of_output("datasets")),
        curves=files_in(of_output("curves")),
        published=printed_of,
    output:
        pdf=f"{PAPER}/{{name}}.pdf",
        svg=f"{PAPER}/{{name}}.svg",
        png=report(
            f"{PAPER}/{{name}}.png",
            caption="../report/output.rst",
            category="{paper}",
            subcategory="Figures",
            labels={"name": "{name}", "scale": "{scale}"},
        ),
        data=f"{PAPER}/{{name}}.data.csv",
    log:
        f"{PAPER}/logs/{{name}}.log",
    benchmark:
        f"{PAPER}/benchmarks/{{name}}.jsonl"
    wildcard_constraints:
        # The site has pictures of its own.
        paper="(?!site/)[^/]+",
    priority: priority_of_output()
    group:
        submission_of("figure")
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("figure"),
        runtime=minutes_of("figure"),
    params:
        caption=caption_of,
        request=request_of(),
    message:
        "{wildcards.name} of {wildcards.paper}"
    script:
        "../scripts/figure.py"


rule table:
    """A table as CSV."""
    input:
        request=files_in(of_output("request")),
        metrics=files_in(of_output("metrics")),
        baselines=files_in(of_output("baselines")),
        chains=files_in(of_output("chains")),
        references=files_in(of_output("references")),
        datasets=files_in(of_output("datasets")),
        curves=files_in(of_output("curves")),
        published=printed_of,
    output:
        report(
            f"{PAPER}/{{name}}.csv",
            caption="../report/output.rst",
            category="{paper}",
            subcategory="Tables",
            labels={"name": "{name}", "scale": "{scale}"},
        ),
    log:
        f"{PAPER}/logs/{{name}}.log",
    benchmark:
        f"{PAPER}/benchmarks/{{name}}.jsonl"
    wildcard_constraints:
        # Those have rules of their own.
        name=rf"(?!(?:verdict|power|guarantees|{output_files.NUMBERED})\.)[a-z0-9_]+",
    priority: priority_of_output()
    group:
        submission_of("table")
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("table"),
        runtime=minutes_of("table"),
    params:
        caption=caption_of,
        request=request_of(),
    message:
        "table {wildcards.name} of {wildcards.paper}"
    script:
        "../scripts/table.py"


use rule table as numbered_table with:
    output:
        report(
            f"{PAPER}/{{name}}.csv",
            caption="../report/output.rst",
            category="{paper}",
            subcategory="Tables",
            labels={"name": "{name}", "scale": "{scale}"},
        ),
        expand(
            f"{PAPER}/{{{{name}}}}.{{ending}}",
            ending=output_files.LAYOUT_ENDINGS,
            allow_missing=True,
        ),
    wildcard_constraints:
        name=output_files.NUMBERED,


rule verdict:
    """The verdict on every claim and printed number of a document, and what would be noticed."""
    input:
        request=files_in(of_output("request", "verdict")),
        published=ancient(str(ROOT / "config" / "published" / "{paper}.yaml")),
        metrics=files_in(of_output("metrics", "verdict")),
        baselines=files_in(of_output("baselines", "verdict")),
        curves=files_in(of_output("curves", "verdict")),
    output:
        power=f"{PAPER}/power.csv",
        runs=f"{PAPER}/runs.parquet",
        verdicts=report(
            f"{PAPER}/verdict.csv",
            caption="../report/verdict.rst",
            category="{paper}",
            subcategory="Verdicts",
            labels={"name": "verdict", "scale": "{scale}"},
        ),
    log:
        f"{PAPER}/logs/verdict.log",
    benchmark:
        f"{PAPER}/benchmarks/verdict.jsonl"
    priority: priority_of_output("verdict")
    group:
        submission_of("verdict")
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("verdict"),
        runtime=minutes_of("verdict"),
    params:
        request=request_of("verdict"),
    message:
        "verdicts on {wildcards.paper}"
    script:
        "../scripts/verdict.py"


rule guarantees:
    """The privacy that each result really has."""
    input:
        request=files_in(of_output("request", "guarantees")),
        metrics=files_in(of_output("metrics", "guarantees")),
    output:
        report(
            f"{PAPER}/guarantees.csv",
            caption="../report/guarantees.rst",
            category="{paper}",
            subcategory="Privacy",
            labels={"name": "guarantees", "scale": "{scale}"},
        ),
    log:
        f"{PAPER}/logs/guarantees.log",
    benchmark:
        f"{PAPER}/benchmarks/guarantees.jsonl"
    priority: priority_of_output("guarantees")
    group:
        submission_of("guarantees")
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("guarantees"),
        runtime=minutes_of("guarantees"),
    params:
        request=request_of("guarantees"),
    message:
        "guarantees in {wildcards.paper}"
    script:
        "../scripts/guarantees.py"
