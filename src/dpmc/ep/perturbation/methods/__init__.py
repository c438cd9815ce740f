"""Parameters of a Gaussian that noise is added to, one file each: ``Params`` and ``table``."""
