"""Configuration files: reading, checking, expanding of grids."""
