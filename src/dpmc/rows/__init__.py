"""Sums over private rows, compiled for a model, and samples of rows."""
