"""Where rows come from, one file each: ``Params`` and ``generate(params, rng) -> Dataset``."""
