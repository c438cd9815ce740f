"""How DP-SEP gets its clip bound, one file each.

A file has `Params` and ``fit(rows, model, params, budget, rng)``.
"""
