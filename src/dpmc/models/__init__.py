"""Posteriors over private rows, one file each.

A model is a module with ``Params``, ``build(params) -> Model``, and an example that tests read:
``EXAMPLE = Params(...)``, and ``EXAMPLE_ROWS``, a few made-up rows that it has a likelihood for.
`dot`, `scale` and `subtract` are for row functions of one's own.
"""

from dpmc.rows.tuples import dot, scale, subtract

__all__ = ["dot", "scale", "subtract"]
