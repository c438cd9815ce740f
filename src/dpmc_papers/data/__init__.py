"""Data sets, one file each: ``Params`` and ``generate(params, rng) -> Dataset``."""
