"""Markov chain Monte Carlo under a privacy budget: `fit`, its chains and their parts."""
