"""Two-stage selection methods, one file each: ``Params``, ``prepare`` and ``run``."""
