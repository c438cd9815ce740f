"""Posteriors over private rows, one file each: ``Params`` and ``build(params) -> Model``."""
