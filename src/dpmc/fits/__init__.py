"""Results of methods: what they hold, how they are read, and what is wrong with them."""

from dpmc.fits.fit import Fit
from dpmc.fits.summary import Summary

__all__ = ["Fit", "Summary"]
