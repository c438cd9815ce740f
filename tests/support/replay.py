"""A run on one data set and on a neighbour that is given its answers, release by release.

What is released decides what is asked next. So a run is recorded, and another one, on a neighbour,
gets the recorded answers in the place of its own: whatever it asks, computes or returns that is not
the same depends on its rows without noise. Noise is known by what a generator gave, not by what a
ledger was told.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from dpmc.automatic.whitened import WhitenedRows
from dpmc.mcmc import clip_shares
from dpmc.mcmc.batch_ratios import BatchRatios
from dpmc.privacy import events, single_releases
from dpmc.privacy.clipped import Clipped
from dpmc.privacy.ledger import Ledger
from dpmc.privacy.nodes import NodeNoise
from dpmc.rows.sums import RowSums

# What computes something from rows, and is told where.
PASSES: dict[type, tuple[str, ...]] = {
    WhitenedRows: (
        "gradients_beyond",
        "gradient_sum",
        "large_sum",
        "slope_sum",
        "curvatures_beyond",
        "curvature_sum",
    ),
    RowSums: ("_any_ratio", "_any_gradient"),
    BatchRatios: ("estimate",),
}


@dataclass
class Release:
    """One release, as it was made.

    Parameters
    ----------
    name : str
        Of what computed the value.
    exact : ndarray
        The value before noise.
    given : ndarray
        What the generator gave for it.
    scale : float
        Of the noise that was added, over `given`.
    charged : float
        What was recorded: how many of these scales the value may move by.
    answer : float or ndarray
        The value with noise.
    """

    name: str
    exact: np.ndarray
    given: np.ndarray
    scale: float
    charged: float
    answer: Any

    def moved(self, other: Release) -> float:
        """Return the change between two data sets over what was paid for: at most 1."""
        return float(np.linalg.norm(self.exact - other.exact) / (self.scale * self.charged))


@dataclass
class Transcript:
    """Releases and questions of one run, in order, what it returned and what it claims."""

    releases: list[Release] = field(default_factory=list)
    questions: list[tuple[Any, ...]] = field(default_factory=list)
    outcome: Any = None
    outside: tuple[str, ...] = ()


class Probe(np.random.Generator):
    """A generator that keeps the numbers that it gives for noise."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng.bit_generator)
        self.given = np.empty(0)

    def standard_normal(self, size: Any = None, *more: Any) -> Any:
        given = super().standard_normal(size, *more)
        self.given = np.array(given)
        return given

    def laplace(self, loc: float = 0.0, scale: float = 1.0, size: Any = None) -> Any:
        given = super().laplace(loc, scale, size)
        self.given = np.array(given)
        return given


class Recorder:
    """Stands between passes over rows, ledgers and noise."""

    def __init__(self, answers: Transcript | None, epsilon: float) -> None:
        self.seen, self.answers, self.epsilon = Transcript(), answers, epsilon
        self.names: dict[int, tuple[str, Any]] = {}  # with the value, so that no other has its id

    def named(self, name: str, found: Any) -> Any:
        if isinstance(found, Clipped):
            self.names[id(found)] = name, found
        elif isinstance(found, dict):
            for one in found.values():
                self.named(name, one)
        elif isinstance(found, tuple):
            for k, one in enumerate(found):
                self.named(f"{name}[{k}]", one)
        return found

    def name(self, value: Any) -> str:
        if id(value) in self.names:
            return self.names[id(value)][0]
        passes = [asked[0] for asked in self.seen.questions if asked[0] != "release"]
        return passes[-1] if passes else "statistic"

    def asked(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def passing(rows: Any, *arguments: Any) -> Any:
            told = [one for one in arguments if isinstance(one, np.ndarray | float | list)]
            self.seen.questions.append((name, *(np.asarray(one).tobytes() for one in told)))
            return self.named(name, original(rows, *arguments))

        return passing

    def answer(self, name: str, exact: Any, probe: Any, scale: float, charged: float, y: Any):
        if self.answers is not None:
            assert len(self.seen.releases) < len(self.answers.releases), "a release more"
            y = self.answers.releases[len(self.seen.releases)].answer
        kept = np.array(exact), np.array(probe), float(scale), charged
        self.seen.releases.append(Release(name, *kept, y))
        return y

    def release(self, ledger: Any, clipped: Any, multiplier: float, rng: Any, batch: Any = None):
        before, probe = ledger.counts, Probe(rng)
        noisy = RELEASE(ledger, clipped, multiplier, probe, batch)
        self.seen.questions.append(("release", clipped.sensitivity, multiplier, batch))
        if not clipped.sensitivity:
            return noisy
        charged = charge(ledger, before)
        scale = scale_of(noisy - clipped.value, probe.given, clipped.value)
        assert scale * charged == pytest.approx(clipped.sensitivity, rel=1e-6)
        name = self.name(clipped)
        return self.answer(name, clipped.value, probe.given, scale, charged, noisy)

    def barker(self, ledger: Any, ratio: Any, rng: Any):
        before, probe = ledger.counts, Probe(rng)
        noisy = BARKER(ledger, ratio, probe)
        ((event, _),) = increase(ledger, before).items()
        self.seen.questions.append(("release", event))
        scale = scale_of(noisy - ratio.value, probe.given, ratio.value)
        assert scale**2 == pytest.approx(event.noise_variance - ratio.batch_variance, rel=1e-6)
        # The mean and the variance have bounds of their own; together they cost what is recorded.
        exact = ratio.value / event.mean_change
        assert abs(ratio.batch_variance) <= event.clip_scale**2 * (1 + 1e-9)
        return self.answer("estimate", exact, probe.given, 1.0, 1.0, noisy)

    def nodes(self, how: NodeNoise, ledger: Any, nodes: Any, multiplier: float):
        before, probes = ledger.counts, [Probe(rng) for rng in how.generators]
        noisy = NODES(replace(how, generators=probes), ledger, nodes, multiplier)
        exact = np.array([one.value for one in nodes.values])
        given = sum(probe.given for probe in probes)
        of_node = scale_of(noisy - exact.sum(axis=0), given, exact)
        honest = len(probes) - how.colluding if how.sharing == "secure" else 1
        self.seen.questions.append(("release", nodes.values[0].sensitivity, multiplier))
        name, charged = self.name(nodes.values[0]), charge(ledger, before)
        scale = of_node * honest**0.5
        assert scale * charged == pytest.approx(nodes.values[0].sensitivity, rel=1e-6)
        return self.answer(name, exact, given / len(probes) ** 0.5, scale, charged, noisy)

    def laplace(self, value: Any, scale: float, rng: Any, noise: str, rounding: float):
        probe = Probe(single_releases.generator(rng))
        noisy = LAPLACE(value, scale, probe, noise, rounding)
        self.seen.questions.append(("release", scale))
        measured = scale_of(noisy - value, probe.given, value)
        return self.answer("laplace", value, probe.given, measured, self.epsilon, noisy)

    def private(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """A release whose scale is private, or that has none: its answer alone goes on."""

        def releasing(value: Any, *arguments: Any) -> Any:
            noisy = original(value, *arguments)
            return self.answer(name, 0.0 * np.asarray(value), noisy, 1.0, 1.0, noisy)

        return releasing


RELEASE, BARKER, NODES = Ledger.release, Ledger.release_barker, NodeNoise.release
LAPLACE = single_releases.laplace
PRIVATE = {
    "smooth_laplace": single_releases.smooth_laplace,
    "randomised_response": single_releases.randomised_response,
}


def scale_of(noise: Any, given: Any, value: Any) -> float:
    """Return the scale of noise, all of which has to be what a generator gave for it."""
    assert np.size(given) == np.size(noise) > 0, "noise that was not drawn for this release"
    scale = float(np.linalg.norm(noise) / np.linalg.norm(given))
    lost = 1e-12 * float(np.max(np.abs(value))) + 1e-9 * scale
    np.testing.assert_allclose(noise, scale * np.asarray(given), rtol=0, atol=1e4 * lost)
    return scale


def increase(ledger: Ledger, before: Any) -> dict[Any, int]:
    """Return what a ledger recorded since."""
    grown = {event: count - before.get(event, 0) for event, count in ledger.counts.items()}
    return {event: count for event, count in grown.items() if count}


def charge(ledger: Ledger, before: Any) -> float:
    """Return 1 / z of the one release that a ledger recorded since."""
    ((event, count),) = increase(ledger, before).items()
    noise = events.noise_of(event)
    assert count == 1
    assert noise is not None
    return 1 / noise[0]


@contextlib.contextmanager
def recording(answers: Transcript | None = None, epsilon: float = 1.0) -> Iterator[Transcript]:
    """Record what is asked and released, and give the answers of another run, if there are any."""
    recorder = Recorder(answers, epsilon)
    with pytest.MonkeyPatch.context() as patch:
        for kind, names in PASSES.items():
            for name in names:
                patch.setattr(kind, name, recorder.asked(name, getattr(kind, name)))
        shares = clip_shares.row_shares
        patch.setattr(clip_shares, "row_shares", lambda *a: recorder.named("shares", shares(*a)))
        for owner, name, method in (
            (Ledger, "release", recorder.release),
            (Ledger, "release_barker", recorder.barker),
            (NodeNoise, "release", recorder.nodes),
        ):
            # A bound method is no descriptor: the instance would not come with the call.
            patch.setattr(owner, name, lambda *a, method=method, **k: method(*a, **k))
        patch.setattr(single_releases, "laplace", recorder.laplace)
        for name, original in PRIVATE.items():
            patch.setattr(single_releases, name, recorder.private(name, original))
        yield recorder.seen


def outcome(fit: Any) -> tuple[Any, ...]:
    """Return all that a fit says, to be compared bit by bit."""
    return (
        fit.draws.tobytes(),
        fit.ledger,
        fit.status,
        fit.remarks,
        repr((fit.guarantee, fit.info, fit.totals, fit.plan, fit.names)),
    )


def transcript(run: Callable[[], Any], answers: Transcript | None = None, epsilon: float = 1.0):
    """Return the transcript of one run."""
    with recording(answers, epsilon) as seen:
        fit = run()
        seen.outcome, seen.outside = outcome(fit), fit.guarantee.outside
    return seen
