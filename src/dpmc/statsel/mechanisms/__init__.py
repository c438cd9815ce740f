"""Noise of a release, one file each: ``Params`` and ``build(params) -> Mechanism``."""
