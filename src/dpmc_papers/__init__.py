"""Reproduction of four documents: configuration, jobs, results, verdicts, figures and site."""

from dpmc.registry import KINDS

KINDS.update(
    {
        "data": "dpmc_papers.data",
        "output": "dpmc_papers.outputs",
        "study": "dpmc_papers.studies",
        "rules": "dpmc_papers.outputs._rules",
    }
)
