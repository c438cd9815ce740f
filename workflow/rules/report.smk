# What the run took, and the site: pages of each document among those of the documentation.


rule provenance:
    """Machine, versions, commit and times of a run."""
    input:
        # Which is made first: it removes the provenance of what the old page showed.
        request=files_in(of_output("request", "page")),
        outputs=files_in(outputs_of),
    output:
        f"{PAPER}/provenance.json",
    log:
        f"{PAPER}/logs/provenance.log",
    localrule: True
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=500,
    params:
        digest=settings_digest,
        outputs=requests_of,
        benchmarks=benchmarks_of,
    message:
        "provenance of {wildcards.paper}"
    script:
        "../scripts/provenance.py"


rule page:
    """The pages of a document as Markdown, with copies of all that they show."""
    input:
        request=files_in(of_output("request", "page")),
        outputs=files_in(outputs_of),
        provenance=undated(f"{PAPER}/provenance.json"),
        captions=captions_of,
        text=text_of,
        parts=parts_of_site,
    output:
        PAGE,
    log:
        f"{PAPER}/logs/page.log",
    benchmark:
        f"{PAPER}/benchmarks/page.jsonl"
    # A page of a paper that this run is not about is left as it is.
    wildcard_constraints:
        paper="|".join(settings(SCALE).papers),
    group:
        submission_of("page")
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("page"),
        runtime=minutes_of("page"),
    message:
        "page about {wildcards.paper}"
    script:
        "../scripts/page.py"


rule site_request:
    """The digest of what all pages share."""
    output:
        f"{RESULTS}/{{scale}}/requests/{{name}}-{{digest}}.json",
    log:
        f"{RESULTS}/{{scale}}/logs/requests/{{name}}-{{digest}}.log",
    localrule: True
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=500,
    params:
        config=lambda wildcards: {"digest": wildcards.digest},
        answers=answers_of_site,
    message:
        "code of the site"
    script:
        "../scripts/request.py"


rule site:
    """The documentation with the pages of all documents, by Sphinx."""
    input:
        request=lambda wildcards: undated(site_request(wildcards.scale)),
        reasons=files_in(reasons_of_front),
        pages=files_in(pages_of),
        texts=ancient([str(path) for path in docs_of_site()]),
        parts=parts_of_site,
    output:
        SITE,
    log:
        f"{RESULTS}/{{scale}}/logs/site.log",
    localrule: True
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        papers=lambda wildcards: papers_on_site(wildcards.scale),
    message:
        "front page at scale {wildcards.scale}"
    script:
        "../scripts/build_site.py"
