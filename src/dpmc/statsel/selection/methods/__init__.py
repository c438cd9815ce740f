"""Ways to release records in two parts and to estimate theta, one file each."""
