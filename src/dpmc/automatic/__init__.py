"""A posterior from rows, an epsilon and a delta: everything else is chosen along the way.

Every choice is a function of what was released before, and all releases are charged to one
ledger that is a filter (:mod:`dpmc.privacy.budgets`): nothing is outside of the guarantee.
"""
