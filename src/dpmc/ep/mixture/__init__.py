"""Expectation propagation for a mixture of Gaussians."""
