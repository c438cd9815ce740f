"""Gradients of functions of one row, traced from plain Python and compiled."""
