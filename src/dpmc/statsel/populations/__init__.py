"""Distributions of one record, one file each: ``Params`` and ``build(params) -> Population``."""
