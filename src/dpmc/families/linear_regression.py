"""Linear regression from one release of sufficient statistics under public bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpmc import checks, progress_bar, registry
from dpmc.families import _arrays
from dpmc.fits import Fit
from dpmc.fits.predictive import LINEAR
from dpmc.fits.remarks import remarks
from dpmc.fitting import NUM_DRAWS, checked, refuse_unknown
from dpmc.linreg import nodes
from dpmc.linreg.methods import data_augmentation, mcmc_bs, mcmc_fixed_s, mcmc_normal_x
from dpmc.linreg.release import release
from dpmc.linreg.release_terms import Terms
from dpmc.linreg.types import NoisyStatistics, Prior, Regression
from dpmc.privacy.ledger import Ledger, Noise
from dpmc.privacy.spending import told
from dpmc.rng import Streams, stream
from dpmc.shards.federation import Federation
from dpmc.shards.rows import ShardedRows
from dpmc.types import Dataset, DpmcError, InvalidRows, Plan, check_delta, check_epsilon

NAME = "linear_regression"
METHODS: dict[str, Any] = {
    "mcmc_normal_x": mcmc_normal_x,
    "mcmc_bs": mcmc_bs,
    "mcmc_fixed_s": mcmc_fixed_s,
    "data_augmentation": data_augmentation,
}
# Standard deviations of the response over that of a feature that a coefficient may well have.
WIDE = 10.0


def linear_regression(
    x: Any,
    y: Any = None,
    *,
    epsilon: float,
    delta: float,
    x_bound: float,
    y_bound: float,
    num_nodes: int = 1,
    prior_sd: float | None = None,
    method: str = "mcmc_bs",
    num_chains: int = 4,
    num_draws: int = NUM_DRAWS,
    seed: int | None = None,
    noise: Noise | None = None,
    progress: bool = True,
    invalid_rows: InvalidRows = "refuse",
    names: Sequence[str] = (),
    **params: Any,
) -> Fit:
    """Posterior of a linear regression given its noisy sufficient statistics.

    X'X, X'y and y'y are released once, with Gaussian noise for rows clipped to public bounds, and
    the posterior given what was released is sampled: it knows of the noise. There is no intercept:
    subtract public constants. `dpmc.regression` needs no bounds and has an intercept; this way
    reads rows once, and nodes can release statistics of their own.

    Parameters
    ----------
    x : array_like of shape (n, d), data frame, rows of `open_rows` or `federation`
        Features, private. Rows in files and those of several nodes have the response in their last
        column.
    y : array_like of shape (n,)
        Responses, private; only beside features in memory.
    epsilon, delta : float
        The budget under substitution of one row; every node spends all of it.
    x_bound, y_bound : float
        Public bounds on the Euclidean norm of the features of a row, and on the absolute value
        of a response. Rows beyond them are clipped.
    num_nodes : int
        J: consecutive parts of the rows, each of which releases its own statistics. A federation
        has its own nodes: with ``"local"`` sharing each of them releases its statistics, with
        ``"secure"`` sharing their sum is released once.
    method : {"mcmc_bs", "mcmc_normal_x", "mcmc_fixed_s", "data_augmentation"}
        Sampler, of :mod:`dpmc.linreg.methods`. The first releases y'y too. Without it few features
        say next to nothing of the noise of responses, which is then left to its prior. The third
        takes X'X for exact: its intervals are too narrow where noise is large. The last has every
        row as an unknown and knows what clipping did; rows are Gaussian to it, and its time grows
        with them.
    prior_sd : float, optional
        Of each coefficient; by default ``10 y_bound / x_bound``. The noise variance has an inverse
        gamma prior of shape 2 around ``(y_bound / 3)**2``.
    num_chains, num_draws : int
        Chains, and draws of each after as many in which its steps are tuned. They cost no privacy.
    seed, noise, invalid_rows
        As of `dpmc.fit`.
    names : sequence of str
        Names of the coefficients; by default those of the columns of a data frame.
    progress : bool
        Whether to show a progress bar.
    **params
        Of the method, as in its ``Params``.

    Returns
    -------
    Fit
        The last component is the logarithm of the standard deviation of the noise of responses.

    Raises
    ------
    DpmcError
        If an argument is refused, before any row is used.

    Warns
    -----
    PosteriorWarning
        Once for each remark.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, (20_000, 2))
    >>> y = x @ [1.0, -2.0] + rng.normal(scale=0.5, size=20_000)
    >>> bounds = {"x_bound": 1.5, "y_bound": 4.0}
    >>> fit = linear_regression(x, y, epsilon=2, delta=1e-6, **bounds, num_draws=500, seed=1)
    >>> bool(abs(fit.kept().mean(axis=(0, 1))[:2] - [1.0, -2.0]).max() < 0.3)
    True
    """
    check_epsilon(epsilon)
    check_delta(delta, NAME)
    checks.positive("x_bound", x_bound)
    checks.positive("y_bound", y_bound)
    checks.one_of("method", method, tuple(METHODS))
    (num_chains, num_draws), seed, noise = checked(num_chains, num_draws, seed, noise)
    checks.flag("progress", progress)
    module = METHODS[method]
    lengths = {"num_iterations": 2 * num_draws, "burn_in": num_draws}
    clipped = {"x_bound": x_bound, "y_bound": y_bound} if module is data_augmentation else {}
    refuse_unknown(
        linear_regression, params, _arrays.fields_of(module), wanted=f"a parameter of {method}"
    )
    settings = registry.parameters(module, lengths | clipped | params)
    rows, columns = _rows(x, y, invalid_rows, names)
    _check_nodes(rows, num_nodes)
    dim = len(columns)
    if prior_sd is None:
        prior_sd = WIDE * y_bound / x_bound
    checks.positive("prior_sd", prior_sd)
    components = (*_arrays.named(names, columns, ("log_sigma",)), "log_sigma")
    prior = default_prior(dim, prior_sd, x_bound, y_bound)
    checks.room("num_draws", (2 * num_draws, num_chains, len(components)))
    noisy, ledger = _released(
        rows,
        num_nodes,
        (x_bound, y_bound),
        Terms(epsilon, delta, noise=noise),
        seed,
        with_u=module.STATISTICS == "szu",
    )
    guarantee = _arrays.with_randomness(noisy.guarantee, seed, noise)
    chains = []
    with told(guarantee, ledger.records), progress_bar.shown(progress, "chain") as report:
        for number in range(num_chains):
            streams = Streams.of(seed, NAME, number)
            chains.append(module.fit(noisy, prior, settings, streams.chain))
            report(number + 1, num_chains, "")
    fit = Fit(
        draws=_draws(chains),
        info={},
        totals={},
        status=next((one.status for one in chains if one.status != "complete"), "complete"),
        ledger=ledger.records(),
        guarantee=guarantee,
        plan=Plan(
            method=method,
            family=NAME,
            epsilon=epsilon,
            delta=delta,
            num_chains=num_chains,
            num_iterations=settings.num_iterations,
            likelihood=_arrays.with_columns({"name": LINEAR, "intercept": False}, x),
            details={
                "num_nodes": len(rows.nodes) if isinstance(rows, Federation) else num_nodes,
                "x_bound": x_bound,
                "y_bound": y_bound,
                "s_sd": noisy.s_sd,
                "z_sd": noisy.z_sd,
            },
        ),
        names=components,
    )
    return _arrays.finished(
        fit, [*_drowned(noisy), *remarks(fit, free=True)], int(noisy.num_rows.sum())
    )


def _rows(
    x: Any, y: Any, invalid_rows: InvalidRows, names: Sequence[str]
) -> tuple[Dataset | ShardedRows | Federation, tuple[str, ...]]:
    """Rows whose last column is the response, and the names of the features."""
    if not isinstance(x, ShardedRows | Federation):
        return _arrays.rows_of(x, y, invalid_rows, names)
    if y is not None:
        kind = "a federation" if isinstance(x, Federation) else "rows in files"
        raise DpmcError(
            f"`y` must be left out beside {kind}, whose last column is the response, got "
            f"{type(y).__name__}"
        )
    if x.num_columns < 2:
        raise DpmcError(f"`x` must have features and a response, got {x.num_columns} column")
    if isinstance(x, ShardedRows):
        return x, x.names[:-1]
    first = x.nodes[0]
    if isinstance(first, ShardedRows):
        return x, first.names[:-1]
    return x, _arrays.column_names(None, x.num_columns - 1)


def _check_nodes(rows: Dataset | ShardedRows | Federation, num_nodes: int) -> None:
    if not isinstance(rows, Federation):
        return
    if num_nodes != 1:
        raise DpmcError(
            f"`num_nodes` must be left out for a federation of {len(rows.nodes)} nodes, got "
            f"{num_nodes}"
        )


def _released(
    rows: Dataset | ShardedRows | Federation,
    num_nodes: int,
    bounds: tuple[float, float],
    terms: Terms,
    seed: int | None,
    with_u: bool,
) -> tuple[NoisyStatistics, Ledger]:
    """Noisy sums, and the ledger of a node or of the sum of all."""
    secure = isinstance(rows, Federation) and rows.sharing == "secure"
    if isinstance(rows, Federation):
        sums = nodes.statistics_of_nodes(rows, bounds)
    else:
        sums = nodes.statistics_of(rows, bounds, num_nodes)
    ledgers = [Ledger(noise=terms.noise) for _ in range(1 if secure else len(sums.num_rows))]
    if secure:
        assert isinstance(rows, Federation)
        shares = rows.node_noise(seed, NAME)
        noisy = nodes.release_sum(sums, *bounds, terms, shares, with_u=with_u, ledger=ledgers[0])
        outside = (*noisy.guarantee.outside, *shares.outside)
        return replace(noisy, guarantee=replace(noisy.guarantee, outside=outside)), ledgers[0]
    noisy = release(
        sums,
        *bounds,
        terms.epsilon,
        terms.delta,
        None if seed is None else stream(seed, "noise", NAME),
        with_u=with_u,
        ledgers=ledgers,
        noise=terms.noise,
    )
    return noisy, ledgers[0]


def default_prior(dim: int, prior_sd: float, x_bound: float, y_bound: float) -> Prior:
    """Wide prior on the scale of public bounds.

    Features are normal around 0 with a covariance that is inverse Wishart with the least degrees of
    freedom that give it a mean: that of features of norm `x_bound` in all directions.
    """
    return Prior(
        mean=np.zeros(dim),
        covariance=prior_sd**2 * np.eye(dim),
        shape=2.0,
        rate=(y_bound / 3) ** 2,
        scale=x_bound**2 / dim * np.eye(dim),
        dof=dim + 2.0,
    )


def _draws(chains: Sequence[Regression]) -> np.ndarray:
    """Coefficients and log sigma, shape (chains, draws, d + 1), as long as all chains."""
    parts = []
    for chain in chains:
        assert chain.draws is not None
        assert chain.variances is not None
        parts.append(np.column_stack([chain.draws, 0.5 * np.log(chain.variances)]))
    length = min(map(len, parts))
    return np.stack([part[:length] for part in parts])


def _drowned(noisy: NoisyStatistics) -> Iterator[str]:
    """Say in how many directions noise hides the features: by what was released."""
    values = np.linalg.eigvalsh(noisy.s.sum(axis=0))
    # The largest eigenvalue of the noise alone is about 2 sqrt(d / 2) of its standard deviations.
    level = noisy.s_sd * math.sqrt(2.0 * noisy.dim * noisy.num_nodes)
    hidden = int(np.count_nonzero(values < level))
    if hidden:
        yield (
            f"In {hidden} of {noisy.dim} directions the features are no larger than the privacy "
            "noise: coefficients there are left to the prior. Tighter bounds, features scaled "
            "alike, more rows or a larger epsilon would help."
        )
