"""Clip bounds of DP-SEP, fixed or found, one file each.

A file has `Params` and ``fit(rows, model, params, budget, rng)``.
"""
