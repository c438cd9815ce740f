"""Accountants, one per file; the file name is the name used in a budget.

Each has ``UPPER_BOUND`` (whether its epsilon and delta are proved to hold under
substitution of one row), ``REMARK`` (why), ``delta(counts, epsilon)`` and
``epsilon(counts, delta)``, and optionally ``max_iterations(releases, budget,
num_chains)`` where the count can be had directly.
"""
