"""Sampling algorithms, one file each.

A method is a module with

- ``Params``: a frozen dataclass that refuses values outside its ranges;
- ``ROW_ORDER``: ``"features"`` for passes over all rows, ``"rows"`` for batches of a few;
- ``releases(params, num_rows) -> Releases | None``: what it releases of the private
  rows, or ``None`` for an algorithm without privacy;
- ``sampler(posterior, params) -> Sampler``: the algorithm itself;
- with batches, ``clip_shares(posterior, params, states, rng)``: the shares of all rows that are
  clipped at released states, which :mod:`dpmc.mcmc.clip_shares` releases in place of what batches
  show.
"""
