"""Numerical building blocks: compiled code and its cache, small matrices, SIMD functions."""
