"""Expectation propagation for Bayesian neural networks."""
