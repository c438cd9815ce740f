"""Methods of regression, one file each: `Params` and ``fit(tables, params, budget, seeds)``.

`fit` returns a :class:`dpmc_league.contest.Estimate` for each table, all under the budget of a
:class:`dpmc.types.Budget`.
"""
