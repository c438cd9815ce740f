"""Which statistic to release: ranking, release and posterior, cell by cell."""

# %% [markdown]
# # Which statistic to release?
#
# A hundred records come from N(0, theta), and theta is wanted under differential privacy. Without
# privacy the sum of squares tells everything. With it, the noise has to hide what one record
# moves, which is A^2 for a square and A for an absolute value when records are clipped to
# [-A, A]. The Fisher information of what is released says which of the two effects wins.
#
# Run it with `uv run python docs/examples/statistic_selection.py`.

# %%
import numpy as np

from dpmc import statsel
from dpmc_papers.plots import save

BOUND, ROWS, EPSILON, THETA = 10.0, 100, 5.0, 2.0
PRIOR = (0.0, 100.0)

population = statsel.population("normal_variance", bound=BOUND)
mechanism = statsel.mechanism("laplace")
candidates = [statsel.statistic(text) for text in ("abs_0.5", "abs_1", "abs_2")]

# %% [markdown]
# A ranking needs a guess of theta, and no data. It comes with the epsilons at which two
# candidates change places: with a budget of 5 the absolute value is best, with one of 20 the
# square, with one of 1 the root.


# %%
def rank(epsilon=EPSILON):
    """Return the ranking of the candidates."""
    return statsel.rank(population, candidates, mechanism, epsilon, ROWS, THETA)


# %% [markdown]
# The mean of the chosen statistic is released once. Its posterior is had by a chain, which costs
# no privacy, and checked by quadrature. The prior has to be proper: the likelihood does
# not vanish for large theta.


# %%
def records(seed=None):
    """Return records that nobody is to see."""
    return population.draw(THETA, np.random.default_rng(seed), ROWS)


def estimate(statistic, x, epsilon=EPSILON, num_iterations=50_000, seed=None):
    """Release one statistic of the records; return draws of theta and the posterior."""
    released = statsel.release(
        population, statistic, mechanism, x, epsilon, np.random.default_rng(seed)
    )
    draws = statsel.sample(released, prior=PRIOR, num_iterations=num_iterations, seed=seed)
    return draws, statsel.reference(released, prior=PRIOR)


# %% [markdown]
# A posterior is about as wide as an efficient estimate is uncertain, where theta really is: `sd`
# of a ranking, made anew at the posterior mean. The guess had to be right to a factor only.


# %%
def main(figure="statistic_selection.png", seed=1):
    """Rank, release each candidate of the same records, and compare posteriors."""
    ranking = rank()
    print(ranking)
    save(ranking.plot(), figure)
    x = records(seed)
    print("statistic   chain mean   sd     quadrature mean   sd     efficient   guarantee")
    for statistic in candidates:
        draws, posterior = estimate(statistic, x, seed=seed)
        there = statsel.rank(population, [statistic], mechanism, EPSILON, ROWS, posterior.mean)
        print(
            f"{statistic.name:10} {draws.mean:10.3f} {draws.sd:6.3f}"
            f" {posterior.mean:14.3f} {posterior.sd:8.3f} {there.table['sd'].iloc[0]:10.3f}"
            f"     {draws.guarantee}"
        )


if __name__ == "__main__":
    main()
