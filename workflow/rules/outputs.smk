# Figures, tables, verdicts and guarantees of a paper, how they were made, and the pages of them.


rule figure:
    """A figure as PDF, SVG and PNG, and the numbers that it shows; or a table as CSV."""
    input:
        metrics=of_output("metrics"),
        baselines=of_output("baselines"),
        chains=of_output("chains"),
        references=of_output("references"),
        datasets=of_output("datasets"),
        curves=of_output("curves"),
        published=printed_of,
    output:
        pdf=f"{PAPER}/{{name}}.pdf",
        svg=f"{PAPER}/{{name}}.svg",
        png=in_report(f"{PAPER}/{{name}}.png", "Figures"),
        data=f"{PAPER}/{{name}}.data.csv",
    log:
        f"{PAPER}/logs/{{name}}.log",
    group:
        "outputs"
    conda:
        "../../envs/dpmc.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(5),
    params:
        settings=of_output("digest"),
        reads=of_output("reads"),
        code=of_output("code"),
    message:
        "{wildcards.name} of {wildcards.paper}"
    script:
        "../scripts/output.py"


use rule figure as table with:
    output:
        in_report(f"{PAPER}/{{name}}.csv", "Tables"),
    wildcard_constraints:
        # Those have rules of their own.
        name=rf"(?!(?:verdict|power|guarantees|{files.NUMBERED})\.)[a-z0-9_]+",
    message:
        "table {wildcards.name} of {wildcards.paper}"


use rule table as numbered_table with:
    output:
        in_report(f"{PAPER}/{{name}}.csv", "Tables"),
        expand(
            f"{PAPER}/{{{{name}}}}.{{ending}}",
            ending=files.LAYOUT_ENDINGS,
            allow_missing=True,
        ),
    wildcard_constraints:
        name=files.NUMBERED,


rule verdict:
    """The verdict on every claim and printed number of a paper, and what would be noticed."""
    input:
        metrics=of_output("metrics", "verdict"),
        baselines=of_output("baselines", "verdict"),
        curves=of_output("curves", "verdict"),
        published=in_checkout("config", "published", "{paper}.yaml"),
    output:
        verdicts=in_report(f"{PAPER}/verdict.csv", "Verdicts", "verdict"),
        power=f"{PAPER}/power.csv",
        runs=f"{PAPER}/runs.parquet",
    log:
        f"{PAPER}/logs/verdict.log",
    group:
        "outputs"
    conda:
        "../../envs/dpmc.yaml"
    resources:
        mem_mb=doubling(4000),
        runtime=doubling(20),
    params:
        settings=of_output("digest", "verdict"),
        reads=of_output("reads", "verdict"),
        code=of_output("code", "verdict"),
    message:
        "verdicts on {wildcards.paper}"
    script:
        "../scripts/verdict.py"


rule guarantees:
    """The privacy that each result really has."""
    input:
        metrics=of_output("metrics", "guarantees"),
        baselines=of_output("baselines", "guarantees"),
    output:
        in_report(f"{PAPER}/guarantees.csv", "Privacy", "guarantees"),
    log:
        f"{PAPER}/logs/guarantees.log",
    group:
        "outputs"
    conda:
        "../../envs/dpmc.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(5),
    params:
        settings=of_output("digest", "guarantees"),
        reads=of_output("reads", "guarantees"),
        code=of_output("code", "guarantees"),
    message:
        "guarantees in {wildcards.paper}"
    script:
        "../scripts/guarantees.py"


rule provenance:
    """Commit, versions and processor, and the digest of what each output was made from."""
    input:
        outputs_of,
    output:
        PROVENANCE,
    log:
        f"{PAPER}/logs/provenance.log",
    localrule: True
    conda:
        "../../envs/dpmc.yaml"
    params:
        outputs=digests_of,
    message:
        "provenance of {wildcards.paper}"
    script:
        "../scripts/provenance.py"


rule page:
    """The pages of a paper as Markdown, with copies of all that they show."""
    input:
        outputs=outputs_of,
        provenance=PROVENANCE,
        texts=texts_of,
    output:
        directory(PAGE),
    log:
        f"{PAPER}/logs/page.log",
    wildcard_constraints:
        # The page of another paper is left as it is.
        paper="|".join(settings(SCALE).papers),
    localrule: True
    conda:
        "../../envs/dpmc.yaml"
    params:
        code=code.digest("dpmc_papers.site.pages", "dpmc_papers.site.tables"),
    message:
        "pages about {wildcards.paper}"
    script:
        "../scripts/page.py"


rule site:
    """The documentation with the pages of all papers, by Sphinx."""
    input:
        pages=pages_of,
        texts=sorted(in_checkout("docs", p.name) for p in (ROOT / "docs").glob("*.md")),
    output:
        directory(SITE),
    log:
        f"{RESULTS}/{{scale}}/logs/site.log",
    localrule: True
    conda:
        "../../envs/dpmc.yaml"
    params:
        code=code.digest("dpmc_papers.site.build"),
    message:
        "site at scale {wildcards.scale}"
    script:
        "../scripts/build_site.py"


rule publish:
    """Copy a finished run at the published grids to results/published."""
    input:
        published_files,
    log:
        f"{RESULTS}/{SCALE}/publish.log",
    localrule: True
    conda:
        "../../envs/dpmc.yaml"
    message:
        "results/published holds these results"
    script:
        "../scripts/publish.py"
