"""The most informative statistic of records: chosen, released, and theta sampled given it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpmc import checks, progress_bar, registry
from dpmc.families import _arrays
from dpmc.fits import Fit
from dpmc.fits.remarks import remarks
from dpmc.fitting import AUTOMATIC, NUM_DRAWS, checked, refuse_unknown
from dpmc.privacy.ledger import Ledger, Noise
from dpmc.privacy.spending import told
from dpmc.rng import stream
from dpmc.statsel.ranking import rank
from dpmc.statsel.records import InvalidRows
from dpmc.statsel.releases import release
from dpmc.statsel.sampling import DEFAULTS, KIND, sample
from dpmc.statsel.targets import ThetaPrior, target
from dpmc.statsel.types import Mechanism, Population, Statistic
from dpmc.types import DpmcError, Plan, check_delta, check_epsilon

NAME = "select_statistic"
METHODS = "exact", "mh", "mhaar", "pmmh", "sequential"


def select_statistic(
    x: Any,
    population: Population,
    candidates: Sequence[Statistic],
    mechanism: Mechanism,
    *,
    epsilon: float,
    delta: float | None = None,
    theta: float,
    prior: ThetaPrior | tuple[float, float],
    method: str = AUTOMATIC,
    num_chains: int = 4,
    num_draws: int = NUM_DRAWS,
    seed: int | None = None,
    noise: Noise | None = None,
    progress: bool = True,
    invalid_rows: InvalidRows = "refuse",
    **params: Any,
) -> Fit:
    """Posterior of theta given the most informative of several statistics of records.

    The statistic with the largest Fisher information on theta in its release, at a public guess of
    theta, is released once; the release alone is sampled from.

    Parameters
    ----------
    x : array_like of shape (n,)
        Records, private; clipped to the support of the population.
    population : Population
        Distribution of a record: ``dpmc.statsel.population(name, bound=...)``.
    candidates : sequence of Statistic
        ``dpmc.statsel.statistic("abs_1")`` and the like.
    mechanism : Mechanism
        Noise of the release: ``dpmc.statsel.mechanism("laplace")`` and the like.
    epsilon : float
        Budget under substitution of one record.
    delta : float, optional
        For a mechanism that needs it.
    theta : float
        A public guess, for the choice alone.
    prior : ThetaPrior or (float, float)
        Two numbers are the uniform distribution between them.
    method : str
        ``"auto"``, which the statistic decides, or a method of `dpmc.statsel.sample`.
    num_chains, num_draws : int
        Chains, and draws of each after as many for warm-up. They cost no privacy.
    seed, noise
        As of `dpmc.fit`.
    invalid_rows : {"refuse", "zero"}
        As of `dpmc.statsel.release`.
    progress : bool
        Whether to show a progress bar.
    **params
        Of the method, but for its number of iterations.

    Returns
    -------
    Fit
        Its plan has the statistic and the ranking.

    Raises
    ------
    DpmcError
        If an argument is refused.

    Warns
    -----
    PosteriorWarning
        Once for each remark.

    Examples
    --------
    >>> from dpmc import statsel
    >>> records = statsel.population("normal_variance", bound=10.0)
    >>> x = records.draw(2.0, np.random.default_rng(1), 100)
    >>> candidates = [statsel.statistic(text) for text in ("abs_1", "abs_2")]
    >>> fit = select_statistic(x, records, candidates, statsel.mechanism("laplace"), epsilon=5,
    ...                        theta=2.0, prior=(0.0, 100.0), num_draws=3000, seed=1)
    >>> fit.plan.details["statistic"], fit.names
    ('|x|', ('theta',))
    """
    check_epsilon(epsilon)
    if delta is not None:
        check_delta(delta, NAME)
    checks.one_of("method", method, (AUTOMATIC, *METHODS))
    own = None if method == AUTOMATIC else method
    if "num_iterations" in params:
        raise DpmcError("`num_iterations` must be left out, since `num_draws` decides it")
    (num_chains, num_draws), seed, noise = checked(num_chains, num_draws, seed, noise)
    checks.flag("progress", progress)
    checks.room("num_draws", (2 * num_draws, num_chains))
    x = checks.real_array("x", x, invalid_rows)
    num_records = x.size
    ranking = rank(population, candidates, mechanism, epsilon, num_records, theta, delta)
    chosen = next(one for one in candidates if one.name == ranking.best)
    _check_chain(population, chosen, mechanism, num_records, epsilon, delta, prior, own, params)
    # Other noise has no event of a ledger: its guarantee is that of the release.
    gaussian = isinstance(mechanism, Mechanism) and mechanism.noise == "gaussian"
    ledger = Ledger(noise=noise) if gaussian else None
    released = release(
        population,
        chosen,
        mechanism,
        x,
        epsilon,
        None if seed is None else stream(seed, "noise", NAME),
        delta,
        ledger,
        noise=noise,
        invalid_rows=invalid_rows,
    )
    exact = noise if mechanism.noise != "bits" else "discrete"  # a bit has no low bits
    guarantee = _arrays.with_randomness(released.guarantee, seed, exact)
    records = () if ledger is None else ledger.records()
    chains = []
    with told(guarantee, lambda: records or None), progress_bar.shown(progress, "chain") as report:
        for number in range(num_chains):
            one = sample(
                released,
                prior=prior,
                method=own,
                seed=None if seed is None else seed + number,
                num_iterations=2 * num_draws,
                **params,
            )
            chains.append(one)
            report(number + 1, num_chains, "")
    fit = Fit(
        draws=np.stack([chain.theta[-num_draws:] for chain in chains])[:, :, None],
        info={},
        totals={},
        status="complete",
        ledger=records,
        guarantee=guarantee,
        plan=Plan(
            method=chains[0].method,
            family=NAME,
            epsilon=epsilon,
            delta=delta,
            num_chains=num_chains,
            num_iterations=2 * num_draws,
            acceptance=float(np.mean([chain.acceptance_rate for chain in chains])),
            details={
                "statistic": chosen.name,
                "mechanism": mechanism.name,
                "released": np.asarray(released.y).tolist(),
                "scale": released.scale,
                "ranking": ranking.table.to_dict("list"),
            },
        ),
        names=("theta",),
    )
    return _arrays.finished(fit, list(remarks(fit, free=True)), num_records)


def _check_chain(
    population: Population,
    statistic: Statistic,
    mechanism: Mechanism,
    num_records: int,
    epsilon: float,
    delta: float | None,
    prior: ThetaPrior | tuple[float, float],
    method: str | None,
    params: Mapping[str, Any],
) -> None:
    """Refuse what the chains would refuse after the release, which is made once."""
    made_up = np.zeros(num_records) if mechanism.per_record else 0.0
    parts = population, statistic, mechanism, made_up, num_records, epsilon, prior, delta
    module = registry.load(KIND, method or DEFAULTS[target(*parts).shape])
    refuse_unknown(select_statistic, params, _arrays.fields_of(module))
    registry.parameters(module, {**params, "num_iterations": 1})
