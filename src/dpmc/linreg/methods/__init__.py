"""Estimators of regression coefficients, one file each.

A file has ``Params``, ``STATISTICS`` (``"sz"`` or ``"szu"`` for what
:func:`dpmc.linreg.release.release` gives without and with y'y, ``"own"`` for a release of its own,
``"exact"`` for sums without privacy) and ``fit(noisy, prior, params, rng)``, which returns a
:class:`dpmc.linreg.types.Regression`.
"""
