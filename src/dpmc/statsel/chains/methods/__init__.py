"""Chains for the posterior given a release, one module each, and its quadrature.

A module has ``Params``, ``SHAPES`` (which targets it is for, see
:attr:`dpmc.statsel.targets.PosteriorTarget.shape`), ``VARIANTS`` (the deviations that a variant is
known for) and ``chain(target, params, faults, walk, start, rng)``, which gives a function that
fills an array with the next draws and returns the moves made.
"""
