"""Names of what can be chosen: public modules only, each with its own streams in a run."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from dpmc import registry
from dpmc.mcmc import fit as fitting
from dpmc_papers.config import problems
from dpmc_papers.pipeline import run_chains
from tests.mcmc.test_fit import PROBLEM, chain_settings
from tests.support import setups


@pytest.mark.parametrize("kind", registry.KINDS)
def test_helpers_are_not_offered(kind):
    """Modules whose names begin with an underscore help others; some packages have them."""
    names = registry.names(kind)
    assert names == tuple(sorted(names))
    assert not any(name.startswith("_") for name in names)


def test_what_the_library_looks_up_is_there_without_the_packages_that_stand_on_it():
    """In a process of its own: here others have added their kinds."""
    code = (
        "import sys\nfrom dpmc import registry\nfrom dpmc.statsel.sampling import DEFAULTS, KIND\n"
        "assert 'dpmc_papers' not in sys.modules\n"
        "assert set(DEFAULTS.values()) <= set(registry.names(KIND))\n"
        "assert all(map(registry.names, registry.KINDS))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_replicate_and_chain_has_streams_of_its_own(monkeypatch):
    """No two of six streams of moves and six of noise share a word of 64 bits."""
    seen, run = [], fitting.run

    def recording(sampler, plan, iterations, starts, streams, *rest):
        seen.extend(g for one in streams for g in (one.chain, one.noise))
        return run(sampler, plan, iterations, starts, streams, *rest)

    monkeypatch.setattr(fitting, "run", recording)
    dataset = problems.make_data(setups.problem(PROBLEM), 5)
    settings = chain_settings(max_iterations=2)
    list(run_chains.run_chains(settings, dataset, np.zeros((1, 5, 2)), [0, 4]))
    words = [g.integers(0, 2**64, 500, dtype=np.uint64).tolist() for g in seen]
    assert len(words) == 12
    assert len(set().union(*words)) == 12 * 500
