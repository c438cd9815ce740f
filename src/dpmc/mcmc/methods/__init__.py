"""Sampling algorithms, one file each.

A method is a module with

- ``Params``: a frozen dataclass that refuses values outside its ranges. Clip bounds and noise
  multipliers say of what: ``ratio_clip_bound`` is per unit of distance of a move,
  ``gradient_clip_bound`` a norm. A field that keyed streams of published runs by another name has
  it as its ``key`` in ``metadata``;
- ``EXAMPLE``: parameters that suit 60 rows of two columns and a thousand, which tests run it with;
- ``ROW_ORDER``: ``"features"`` for passes over all rows, ``"rows"`` for batches of a few;
- ``releases(params, num_rows) -> Releases | None``: what it releases of the private
  rows, or ``None`` for an algorithm without privacy;
- ``sampler(posterior, params) -> Sampler``: the algorithm itself;
- with batches, ``clip_shares(posterior, params, states, rng)``: the shares of all rows that are
  clipped at released states, which :mod:`dpmc.mcmc.clip_shares` releases in place of what batches
  show;
- optionally ``tuned(scale) -> dict``: parameters chosen for a posterior of which a search has found
  centre and shape (:mod:`dpmc.tuning`), and ``cheapest(num_rows)``, those of them at which an
  iteration costs least whatever the posterior is.
"""
