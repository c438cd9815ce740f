"""Fisher information estimators, one file each: ``Params`` and ``evaluate``."""
