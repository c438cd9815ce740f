"""A search for regressions whose clip bounds do not follow the point: see :mod:`.run`."""
