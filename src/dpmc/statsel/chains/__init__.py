"""Markov chains for the posterior given a released statistic."""
