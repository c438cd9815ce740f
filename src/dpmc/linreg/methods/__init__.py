"""Estimators of private distributed regression, one file each."""
