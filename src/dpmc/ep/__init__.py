"""Expectation propagation under differential privacy: mixtures, networks and noisy moments."""
