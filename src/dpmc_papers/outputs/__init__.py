"""Figures and tables, one module per document."""
