"""Reproduction of four documents: configuration, jobs, results, verdicts, figures and site."""
