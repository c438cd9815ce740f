"""Methods on a mixture, one file each: ``Params`` and ``fit(rows, model, params, budget, rng)``."""
