"""Posterior of theta given a released statistic: likelihoods and quadrature."""
