"""Statistics of the records, one file each: ``Params`` and ``build(params) -> Statistic``."""
