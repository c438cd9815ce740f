"""Ways to compute a Fisher information, one file each: ``Params`` and ``evaluate``."""
