"""Private distributed Bayesian linear regression: release, samplers and references."""
