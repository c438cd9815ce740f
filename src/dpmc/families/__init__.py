"""One way in for each family: arrays, public bounds and a budget in, a `dpmc.Fit` out."""
