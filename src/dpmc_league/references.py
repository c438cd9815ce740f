"""Draws from posteriors without privacy, exact or checked, kept on disk.

Where no closed form is known, four chains of independence Metropolis-Hastings propose from a
Student-t about each mode, with the curvature there. Chains that propose independently of where they
are mix at a rate that does not depend on the shape of the posterior, only on how much of it the
proposals miss. What posteriordb asks of reference draws is checked: 10,000 draws, R-hat below 1.01,
lag-1 autocorrelation below 0.05 in each component.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.special import logsumexp

from dpmc.automatic.prior import Prior
from dpmc.diagnostics.autocorrelation import autocorrelation
from dpmc.diagnostics.convergence import split_rhat
from dpmc.numerics import user_cache
from dpmc.numerics.source_digest import module_digest
from dpmc.rng import stream
from dpmc.rows.sums import RowSums
from dpmc.types import Array, Dataset, DpmcError, Model

NUM_DRAWS, NUM_CHAINS = 10_000, 4
MOST_RHAT, MOST_LAG_1 = 1.01, 0.05
# Degrees of freedom of proposals, the first thinning and the largest.
FREEDOM = 20.0
THIN, MOST_THIN = 2, 64
NEWTON_STEPS, PILOT = 100, 4000
# No gradient of a finite row is clipped by this bound.
NO_CLIP = 1e150
CLOSED = "exact draws"
SAMPLED = "independence sampler"


@dataclass(frozen=True)
class Quality:
    """How reference draws were made, and what was checked of them.

    Parameters
    ----------
    method : str
    rhat : float
        Largest R-hat; 1 for exact draws.
    lag_1 : float
        Largest lag-1 autocorrelation, in absolute value; 0 for exact draws.
    acceptance : float
        Share of proposals accepted; 1 for exact draws.
    thinning : int
    """

    method: str
    rhat: float = 1.0
    lag_1: float = 0.0
    acceptance: float = 1.0
    thinning: int = 1


@dataclass(frozen=True)
class Source:
    """What reference draws are made from; see :class:`dpmc_league.task.Task`."""

    model: Model
    dataset: Dataset
    start: Array
    modes: Array | None
    sample: Callable[[Array, int, np.random.Generator], Array] | None


def cached(name: str, digest: str, source: Source) -> tuple[Array, Quality]:
    """Reference draws from the user's cache, making them where they are not there.

    The file is found by the content of the task and by the code that makes draws. Draws that do
    not have the digest beside them are made anew.
    """
    key = hashlib.sha256(f"{digest} {module_digest(__name__)}".encode()).hexdigest()[:16]
    path = user_cache.folder() / "league" / f"{name}-{key}.npz"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        with np.load(path, allow_pickle=False) as kept:
            draws, told = kept["draws"], json.loads(str(kept["quality"]))
        if told.pop("sha256") == _sha256(draws):
            return draws, Quality(**told)
    draws, quality = make(source, stream(1, "league", "reference", name))
    _write(path, draws, quality)
    return draws, quality


def make(source: Source, rng: np.random.Generator) -> tuple[Array, Quality]:
    """Return 10,000 reference draws, and what was checked of them."""
    if source.sample is not None:
        return source.sample(source.dataset.x, NUM_DRAWS, rng), Quality(CLOSED)
    density = LogDensity(source.model, source.dataset, source.start)
    starts = source.start[None] if source.modes is None else source.modes
    proposals = Proposals.about([density.mode(start) for start in starts], density)
    if len(starts) == 1:
        proposals = proposals.recentred(density, rng)
    candidates, thinning = Candidates(density, proposals, rng), THIN
    while thinning <= MOST_THIN:
        chains, acceptance = independence_chains(candidates, thinning)
        draws = chains.transpose(1, 0, 2).reshape(-1, source.model.dim)
        quality = Quality(SAMPLED, split_rhat(chains), _lag_1(chains), acceptance, thinning)
        if quality.rhat < MOST_RHAT and quality.lag_1 < MOST_LAG_1:
            return draws[rng.permutation(len(draws))], quality
        thinning *= 2
    raise DpmcError(
        f"reference draws of {source.dataset.name!r} must have R-hat below {MOST_RHAT} and lag-1 "
        f"autocorrelation below {MOST_LAG_1}, got {quality.rhat:.4f} and {quality.lag_1:.3f}"
    )


class LogDensity:
    """The log-density of a posterior without privacy, up to a constant.

    Parameters
    ----------
    model : Model
    dataset : Dataset
    origin : ndarray of shape (d,)
        Where it is zero.
    """

    def __init__(self, model: Model, dataset: Dataset, origin: Array) -> None:
        self.model, self.origin = model, np.asarray(origin, dtype=np.float64)
        self._sums = RowSums(model, dataset)
        self._prior = Prior.of(model)
        self._base = self._prior.log_density(self.origin)

    def __call__(self, theta: Array) -> float:
        """Log-density at a point; minus infinity where it is no number."""
        ratio, _ = self._sums.ratio(self.origin, theta, float("inf"))
        value = self.model.tempering * ratio + self._prior.log_density(theta) - self._base
        return value if np.isfinite(value) else -np.inf

    def gradient(self, theta: Array) -> Array:
        """Its gradient, shape (d,)."""
        total, _ = self._sums.gradient(theta, NO_CLIP)
        slope: Array = self.model.tempering * total + self._prior.gradient(theta)
        return slope

    def precision(self, theta: Array) -> Array:
        """Negative Hessian, shape (d, d), by differences of the gradient."""
        dim = self.model.dim
        columns = np.empty((dim, dim))
        for k in range(dim):
            step = np.zeros(dim)
            step[k] = 1e-5 * max(1.0, abs(float(theta[k])))
            columns[:, k] = self.gradient(theta - step) - self.gradient(theta + step)
            columns[:, k] /= 2 * step[k]
        return 0.5 * (columns + columns.T)

    def mode(self, start: Array) -> Array:
        """Mode, by Newton steps that are held back until they climb."""
        theta, height = np.asarray(start, dtype=np.float64), self(start)
        for _ in range(NEWTON_STEPS):
            values, vectors = np.linalg.eigh(self.precision(theta))
            scaled = vectors.T @ self.gradient(theta)
            step = vectors @ (scaled / np.maximum(np.abs(values), 1e-12 * np.abs(values).max()))
            share, found = 1.0, self(theta + step)
            while not found >= height and share > 1e-6:
                share *= 0.5
                found = self(theta + share * step)
            if not found > height:
                break
            theta, height = theta + share * step, found
        return theta


@dataclass(frozen=True)
class Proposals:
    """An equal mixture of Student-t distributions about modes.

    Parameters
    ----------
    modes : ndarray of shape (m, d)
    roots : ndarray of shape (m, d, d)
        Lower triangular, of their scale matrices.
    """

    modes: Array
    roots: Array

    @classmethod
    def about(cls, modes: list[Array], density: LogDensity) -> Proposals:
        """Proposals about modes, with the curvature of a log-density there."""
        roots = [
            np.linalg.inv(np.linalg.cholesky(density.precision(mode)[::-1, ::-1]))[::-1, ::-1].T
            for mode in modes
        ]
        return cls(np.stack(modes), np.stack(roots))

    def recentred(self, density: Callable[[Array], float], rng: np.random.Generator) -> Proposals:
        """Proposals with the mean and covariance of the target, by importance weights.

        A skewed target is missed less about its mean than about its mode. The draws of this pilot
        are in no chain: proposals are fixed before one begins.
        """
        thetas = self.draw(PILOT, rng)
        weights = np.array([density(theta) for theta in thetas]) - self.log_density(thetas)
        weights = np.exp(weights - logsumexp(weights))
        mean = weights @ thetas
        off = thetas - mean
        covariance = (weights[:, None] * off).T @ off
        root: Array = np.linalg.cholesky(covariance).astype(np.float64)
        return Proposals(mean[None], root[None])

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """Draws, shape (size, d)."""
        dim = self.modes.shape[1]
        which = rng.integers(len(self.modes), size=size)
        normal = rng.standard_normal((size, dim))
        normal /= np.sqrt(rng.chisquare(FREEDOM, size) / FREEDOM)[:, None]
        draws: Array = self.modes[which] + np.einsum("nij,nj->ni", self.roots[which], normal)
        return draws

    def log_density(self, thetas: Array) -> Array:
        """Log-densities up to a constant, shape (size,)."""
        dim = self.modes.shape[1]
        parts = []
        for mode, root in zip(self.modes, self.roots, strict=True):
            white = np.linalg.solve(root, (thetas - mode).T)
            tail = np.log1p(np.sum(white * white, axis=0) / FREEDOM)
            log_scale = float(np.linalg.slogdet(root)[1])
            parts.append(-0.5 * (FREEDOM + dim) * tail - log_scale)
        total: Array = logsumexp(parts, axis=0)
        return total


class Candidates:
    """What independence chains propose, and what decides whether they move there.

    Parameters
    ----------
    density : callable
        The log-density of the target, up to a constant.
    proposals : Proposals
    rng : numpy.random.Generator
    """

    def __init__(
        self, density: Callable[[Array], float], proposals: Proposals, rng: np.random.Generator
    ) -> None:
        self._density, self._proposals, self._rng = density, proposals, rng
        empty = np.empty((0, proposals.modes.shape[1])), np.empty(0), np.empty(0)
        self.chains = [empty] * NUM_CHAINS

    def extend(self, size: int) -> None:
        """Draw what is missing until each chain has `size` of them; those that are there stay."""
        for chain, (thetas, weights, barriers) in enumerate(self.chains):
            new = self._proposals.draw(size - len(thetas), self._rng)
            more = np.array([self._density(theta) for theta in new])
            more -= self._proposals.log_density(new)
            self.chains[chain] = (
                np.concatenate([thetas, new]),
                np.concatenate([weights, more]),
                np.concatenate([barriers, np.log(self._rng.random(len(new)))]),
            )


def independence_chains(candidates: Candidates, thinning: int) -> tuple[Array, float]:
    """Four chains, shape (2500, 4, d), every `thinning`-th state, and the acceptance."""
    length, accepted = NUM_DRAWS // NUM_CHAINS, 0
    candidates.extend(1 + length * thinning)
    kept = []
    for thetas, weights, barriers in candidates.chains:
        current, states = 0, np.empty((length, thetas.shape[1]))
        for k in range(1, len(thetas)):
            if barriers[k] < weights[k] - weights[current]:
                current = k
                accepted += 1
            if k % thinning == 0:
                states[k // thinning - 1] = thetas[current]
        kept.append(states)
    return np.stack(kept, axis=1), accepted / (NUM_CHAINS * length * thinning)


def _lag_1(chains: Array) -> float:
    values = [
        autocorrelation(chains[:, chain, k], 1)[1]
        for chain in range(chains.shape[1])
        for k in range(chains.shape[2])
    ]
    shape = (chains.shape[1], chains.shape[2])
    return float(np.abs(np.mean(np.reshape(values, shape), axis=0)).max())


def _sha256(draws: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(draws, dtype="<f8").tobytes()).hexdigest()


def _write(path: Path, draws: Array, quality: Quality) -> None:
    """Write draws beside their digest; a cache that cannot be written is none."""
    part = path.with_name(f"{path.stem}-{uuid.uuid4().hex}.npz")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        told = json.dumps({**asdict(quality), "sha256": _sha256(draws)})
        np.savez(part, draws=draws, quality=np.array(told))
        part.replace(path)
