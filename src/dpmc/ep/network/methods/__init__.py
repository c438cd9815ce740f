"""Methods on networks, one file each: ``Params`` and ``fit(x, y, task, params, budget, rng)``."""
