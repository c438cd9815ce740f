"""Draw from the posterior of theta given a release, and compute it by quadrature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from dpmc import checks, registry
from dpmc.diagnostics.autocorrelation import (
    AutocorrelationTime,
    autocorrelation_time,
    standard_error,
)
from dpmc.progress import silent
from dpmc.rng import stream
from dpmc.statsel import targets
from dpmc.statsel.chains import driver
from dpmc.statsel.posterior import order_table, quadrature
from dpmc.statsel.posterior.quadrature import QuadraturePosterior
from dpmc.statsel.releases import Release
from dpmc.statsel.targets import PosteriorTarget, ThetaPrior
from dpmc.types import Array, DpmcError, Guarantee

# Samplers stand under the name of the study that compares them.
KIND = "statsel_posterior"
DEFAULTS = {"mean": "mh", "order": "exact", "records": "sequential"}


@dataclass(frozen=True)
class Sample:
    """Draws from a posterior.

    Parameters
    ----------
    theta : ndarray of shape (k,)
        After burn-in.
    mean, sd : float
        Of the draws.
    standard_error : float
        Monte Carlo standard error of `mean`.
    autocorrelation_time : AutocorrelationTime
        Integrated autocorrelation time of theta.
    acceptance_rate : float
        Share of the proposals that are accepted.
    method : str
        Name of the method.
    guarantee : Guarantee
        That of the release: drawing costs nothing more.
    """

    theta: Array
    mean: float
    sd: float
    standard_error: float
    autocorrelation_time: AutocorrelationTime
    acceptance_rate: float
    method: str
    guarantee: Guarantee


def sample(
    released: Release,
    *,
    prior: ThetaPrior | tuple[float, float],
    method: str | None = None,
    variant: str = "corrected",
    seed: int | None = None,
    progress: bool = False,
    **params: Any,
) -> Sample:
    """Draw from the posterior of theta.

    Parameters
    ----------
    released : Release
        What :func:`dpmc.statsel.releases.release` returned: it says of what, by which mechanism
        and for which epsilon.
    prior : ThetaPrior or (float, float)
        Two numbers are the uniform distribution between them.
    method : str, optional
        One of :mod:`dpmc.statsel.chains.methods`: by default ``"mh"`` for a mean, ``"exact"`` for
        an order statistic and ``"sequential"`` for records.
    variant : str
        ``"corrected"``, or a deviation that the method is known for.
    seed : int, optional
        Seed of the chain.
    progress : bool
        Show a bar.
    **params
        Of the method, such as ``num_iterations`` and ``num_particles``.

    Returns
    -------
    Sample

    Warns
    -----
    ShortChainWarning
        If the chain is shorter than 100 autocorrelation times.

    Raises
    ------
    DpmcError
        If something is unknown, does not fit the release or makes the posterior improper.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmc import statsel
    >>> records = statsel.population("normal_variance", bound=10.0)
    >>> x = records.draw(2.0, np.random.default_rng(1), 100)
    >>> absolute, laplace = statsel.statistic("abs_1"), statsel.mechanism("laplace")
    >>> released = statsel.release(records, absolute, laplace, x, 5.0, np.random.default_rng(2))
    >>> result = sample(released, prior=(0.0, 100.0), num_iterations=5000, seed=1)
    >>> 0.5 < result.mean < 8
    True
    """
    target = _target(released, prior)
    name = method or DEFAULTS[target.shape]
    chosen = registry.load(KIND, name)
    if chosen.chain is None:
        raise DpmcError(f"`method` must be a chain, got {name!r}; see dpmc.statsel.reference")
    settings = registry.parameters(chosen, params)
    reference_posterior = quadrature.check_proper(target)

    def moments() -> tuple[float, float]:
        posterior = reference_posterior or quadrature.quadrature(target)
        return posterior.mean, posterior.sd

    with tqdm(total=settings.num_iterations, unit="it", disable=not progress) as bar:

        def report(done: int, total: int, info: str) -> None:
            bar.set_postfix_str(info, refresh=False)
            bar.update(done - bar.n)

        draws = driver.run(
            chosen, target, settings, variant, stream(seed, "chain", name),
            moments, report if progress else silent,
        )  # fmt: skip
    time = autocorrelation_time(draws.theta)
    return Sample(
        draws.theta,
        float(draws.theta.mean()),
        float(draws.theta.std()),
        standard_error(draws.theta, warn=False),
        time,
        draws.acceptance_rate,
        name,
        released.guarantee,
    )


def reference(
    released: Release,
    *,
    prior: ThetaPrior | tuple[float, float],
    num_data_sets: int = order_table.DATA_SETS,
) -> QuadraturePosterior:
    """Posterior of theta by quadrature.

    Parameters
    ----------
    released : Release
        See `sample`.
    prior : ThetaPrior or (float, float)
        Two numbers are the uniform distribution between them.
    num_data_sets : int
        Number of simulated data sets for the distribution of an order statistic with smooth
        sensitivity, at least 32. The ``errors`` of the posterior fall with its square root.

    Raises
    ------
    DpmcError
        If an argument does not fit the release, or makes the posterior improper.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmc import statsel
    >>> records = statsel.population("normal_variance", bound=10.0)
    >>> x = records.draw(2.0, np.random.default_rng(1), 100)
    >>> absolute, laplace = statsel.statistic("abs_1"), statsel.mechanism("laplace")
    >>> released = statsel.release(records, absolute, laplace, x, 5.0, np.random.default_rng(2))
    >>> 0.5 < reference(released, prior=(0.0, 100.0)).mean < 8
    True
    """
    checks.at_least("num_data_sets", num_data_sets, 2 * order_table.BLOCKS)
    target = _target(released, prior)
    return quadrature.quadrature(target, quadrature.likelihood(target, num_data_sets))


def _target(released: Release, prior: ThetaPrior | tuple[float, float]) -> PosteriorTarget:
    """Target that a release defines by its terms."""
    checks.instance("released", released, Release, "a Release of dpmc.statsel.release")
    terms = released.terms
    return targets.target(
        terms.population,
        terms.statistic,
        terms.mechanism,
        released.y,
        released.n,
        terms.epsilon,
        prior,
        terms.delta,
    )
