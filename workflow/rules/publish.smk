# Copy what a finished run made to the folder that is kept under version control.


rule publish:
    """Copy a finished run at the published grids to results/published."""
    input:
        files_in(published_files),
    log:
        f"{RESULTS}/{SCALE}/publish.log",
    localrule: True
    conda:
        "../../envs/dpmc.yaml"
    threads: 1
    resources:
        mem_mb=500,
    message:
        "results/published holds these results"
    script:
        "../scripts/publish.py"
