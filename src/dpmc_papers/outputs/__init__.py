"""Figures and tables, one module per document.

A public function of such a module takes a :class:`dpmc_papers.pipeline.results.Context`, which
holds what the configuration lets it read, and returns a Matplotlib figure or a pandas table.
"""
