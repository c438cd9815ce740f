"""Measures of how well draws represent a distribution: MMD, autocorrelation, R-hat."""
