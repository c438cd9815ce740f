"""Effect of privacy noise on the moments of a Gaussian, by simulation and by bounds."""
