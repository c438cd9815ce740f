"""Where noise is added to a Gaussian, one file each: ``Params`` and ``table``."""
