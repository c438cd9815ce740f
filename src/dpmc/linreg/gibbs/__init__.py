"""Gibbs samplers of private linear regression, and their conditional distributions."""
