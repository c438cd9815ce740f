"""Privacy noise is drawn in `dpmc.privacy` alone: every other draw is listed here with its reason.

An entry is ``file::function method``, followed by the number of such calls unless it is one.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import dpmc
from tests.support.random_draws import draws

SOURCE = Path(dpmc.__file__).parent
HOME = "privacy/"
DATA = "experiments/data/"  # simulated, and split into training and test rows

ELSEWHERE = {
    "moves of a Markov chain: proposals, momenta, step sizes and acceptance tests, of what is "
    "released already or of rows in a run without privacy": """
        league/gaussian_laws.py::approximate standard_normal
        league/references.py::Candidates.extend random
        league/references.py::Proposals.draw chisquare
        league/references.py::Proposals.draw integers
        league/references.py::Proposals.draw standard_normal
        league/rivals/kinetic_langevin.py::chain standard_normal
        league/rivals/penalty.py::chain standard_normal
        league/trajectories.py::steps standard_normal
        mcmc/barker_correction.py::Correction.draw random
        mcmc/barker_correction.py::Correction.sample random
        mcmc/methods/dp_sgnht.py::sampler.init standard_normal
        mcmc/moves.py::Mass.momentum standard_normal
        mcmc/moves.py::Walk.direction choice
        mcmc/moves.py::accept random
        mcmc/moves.py::guided_walk integers
        mcmc/moves.py::guided_walk standard_normal 2
        mcmc/moves.py::random_walk integers
        mcmc/moves.py::random_walk standard_normal 2
        mcmc/moves.py::step_sizes random
        linreg/gibbs/conditionals.py::accepts random
        linreg/gibbs/conditionals.py::propose_variance standard_normal
        linreg/gibbs/covariance_moves.py::move_jointly random 2
        linreg/gibbs/scale_moves.py::scale_move standard_normal
        statsel/chains/common.py::accepts random
        statsel/chains/mean.py::make_averaged_ratio.averaged_ratio standard_normal 2
        statsel/chains/mean.py::make_metropolis.metropolis standard_normal
        statsel/chains/mean.py::make_pseudo_marginal.pseudo_marginal standard_normal
        statsel/chains/order.py::make_averaged_ratio.averaged_ratio standard_normal
        statsel/chains/records.py::make_averaged_ratio.averaged_ratio standard_normal
    """,
    "Gibbs draws of parameters and latent variables, given what is released": """
        linreg/gibbs/conditionals.py::draw_coefficients standard_normal
        linreg/gibbs/covariance_moves.py::draw_parameter random 3
        linreg/gibbs/gaussian_moves.py::draw_deviation standard_normal 2
        linreg/gibbs/latent_sums.py::direct_conditional standard_normal
        linreg/gibbs/latent_sums.py::elliptical_slice random 3
        linreg/gibbs/latent_sums.py::smooth standard_normal
        linreg/gibbs/latent_sums.py::turned_conditional standard_normal
        linreg/gibbs/conditionals.py::draw_conjugate standard_gamma
        linreg/gibbs/conditionals.py::draw_conjugate standard_normal
        linreg/gibbs/conditionals.py::draw_independent standard_gamma
        linreg/gibbs/conditionals.py::draw_independent standard_normal
        linreg/methods/data_augmentation.py::_sweep standard_normal 2
        linreg/methods/data_augmentation.py::fit standard_normal 2
        linreg/methods/mcmc_fixed_s.py::draw_theta standard_normal
        numerics/small_matrices.py::bartlett standard_gamma
        numerics/small_matrices.py::bartlett standard_normal
        statsel/chains/common.py::pick random
        statsel/chains/mean.py::make_pseudo_marginal.log_estimate standard_normal
        statsel/chains/records.py::draw_base random 2
        statsel/chains/records.py::draw_base standard_normal
        statsel/order_draws.py::draw_centre standard_exponential 2
        statsel/order_draws.py::draw_centre standard_gamma 2
        statsel/order_draws.py::next_exponential standard_exponential
    """,
    "exact draws from a posterior in closed form: of a reference, or given releases": """
        league/catalogue/circle_v1.py::build.draw rvs
        league/catalogue/circle_v1.py::build.draw uniform
        league/catalogue/hierarchical_10_v1.py::sample random
        league/catalogue/hierarchical_10_v1.py::sample standard_normal 2
        league/families.py::bent.draw standard_normal
        league/families.py::gaussian.draw standard_normal
        league/gaussian_laws.py::run standard_normal
        league/rivals/hmc_releases.py::run standard_normal
        families/mixture.py::_draws standard_normal
        families/network.py::_draws gamma
        families/network.py::_draws standard_normal
        automatic/glm/run.py::_draws standard_normal
        automatic/noise_aware.py::NoiseAware.draws random
        automatic/noise_aware.py::NoiseAware.draws standard_normal
        linreg/methods/bayes_fixed_s_fast.py::fit standard_normal
        linreg/methods/posterior.py::fit standard_gamma
        linreg/methods/posterior.py::fit standard_normal
        models/banana.py::build.reference standard_normal
        models/circle.py::build.reference rvs
        models/circle.py::build.reference uniform
        models/gaussian_mean.py::build.reference standard_normal
    """,
    "responses of new rows, which are not private, under draws that are released": """
        fits/predictive.py::_linear standard_normal
        fits/predictive.py::_logistic logistic
        fits/predictive.py::_mixture choice
        fits/predictive.py::_mixture standard_normal
        fits/predictive.py::_network standard_normal
        fits/predictive.py::_poisson normal
        fits/predictive.py::_poisson poisson
        fits/predictive.py::_student_t standard_t
    """,
    "simulated rows of tasks, which are nobody's": """
        league/catalogue/circle_v1.py::build standard_normal
        league/catalogue/hierarchical_10_v1.py::build standard_normal 2
        league/catalogue/linear_5_v1.py::build standard_normal
        league/catalogue/logistic_3_v1.py::build random
        league/catalogue/mixture_2_v1.py::build random
        league/catalogue/mixture_2_v1.py::build standard_normal
        league/catalogue/network_6_v1.py::build standard_normal
        league/catalogue/network_6_v1.py::build uniform
        league/catalogue/poisson_3_v1.py::build poisson
        league/catalogue/student_location_v1.py::build standard_t
        league/families.py::bent standard_normal
        league/families.py::gaussian standard_normal
        league/simulate.py::regression_features standard_normal
    """,
    "the order of reference draws, directions of a score, seeds, and coins of attacks": """
        league/attack.py::attack integers
        league/attack.py::attack random
        league/measures.py::sliced_wasserstein standard_normal
        league/references.py::make permutation
        league/table.py::_key integers
        statsel/posterior/quadrature.py::OrderTable.__init__ integers
        experiments/studies/_league.py::terms integers
        experiments/studies/league_price.py::run integers
    """,
    "which published runs are made again, and from which last digits": """
        experiments/commands.py::_rerun randbits
        experiments/pipeline/published_runs.py::one_of_each integers
        experiments/pipeline/published_runs.py::sample choice
        experiments/pipeline/rerun.py::moved integers
    """,
    "which rows a step uses, and in what order": """
        league/rivals/hmc_batches.py::batch_gradient.gradient choice
        ep/network/vi.py::_one_pass permutation
        ep/settings.py::pass_orders integers
        ep/settings.py::pass_orders permutation
        mcmc/batch_ratios.py::BatchRatios.sums random_raw
        mcmc/stochastic_gradient.py::sampler.chain integers
    """,
    "dropped at once: the generator is to stand where that of the public code does": """
        ep/mixture/published.py::legacy_stream standard_normal
        ep/network/engine.py::_run standard_normal
    """,
    "Monte Carlo integrals and simulations of public quantities": """
        diagnostics/mmd.py::cross_width integers 3
        ep/network/vi.py::_one_pass standard_normal
        ep/network/vi.py::fit standard_normal 2
        ep/perturbation/noise.py::_symmetric standard_normal
        ep/perturbation/noise.py::example_covariance standard_normal
        ep/perturbation/noise.py::simulate standard_normal
        ep/perturbation/noise.py::simulate_natural standard_normal
        statsel/fisher/monte_carlo.py::estimate laplace
        statsel/fisher/monte_carlo.py::of_mean.draw standard_normal
        statsel/fisher/order_statistics.py::simulate uniform
        statsel/fisher/order_statistics.py::sorted_latents uniform 2
        experiments/outputs/_league_table.py::_ratios integers
        experiments/verdicts/bootstrap.py::resample integers
        experiments/verdicts/power.py::_dealt permutation
    """,
    "start points, priors and simulated records": """
        league/footing.py::_by_mean standard_normal
        league/footing.py::_search standard_normal
        league/price.py::Normal.of standard_normal
        ep/network/engine.py::first_arrays standard_normal
        linreg/profiles.py::make_prior standard_normal
        numerics/covariances.py::random_covariance gamma
        numerics/covariances.py::random_covariance uniform
        statsel/types.py::Population.draw_base standard_normal
        statsel/types.py::Population.draw_base uniform
        experiments/config/problems.py::start_points standard_normal
    """,
    "which rows are compared with each other, by a public seed": """
        automatic/glm/units.py::find permutation
    """,
    "made-up rows and parameters on which a model is checked before it sees private rows": """
        automatic/normal_prior.py::_is_normal choice
        rows/model_checks.py::_check_affine integers
        rows/model_checks.py::_check_affine random
        rows/model_checks.py::_check_affine standard_normal
        rows/model_checks.py::_check_gradient.compare standard_normal
        rows/probes.py::Probes.pairs permutation
        rows/probes.py::bounded_rows standard_normal
        rows/probes.py::rows choice 2
        rows/probes.py::rows integers
        rows/probes.py::rows poisson
        rows/probes.py::rows random 2
        rows/probes.py::rows standard_normal 2
        rows/probes.py::thetas standard_normal
        rows/regressions.py::example_rows standard_normal
    """,
    "the key of a generator": """
        random_bits.py::cryptographic urandom
    """,
}
# What may be given the stream of privacy noise: a ledger, or a function that takes a ledger too.
DRAWERS = {
    "ledger.release",
    "ledger.release_barker",
    "ledger.noise_block",
    "released_diagnostics",
    "Purse",  # holds a ledger, and gives it the stream with each release
    "Till",  # the same
}


def listed() -> Counter[str]:
    """Return the draws that are listed, each with its number of calls."""
    number: Counter[str] = Counter()
    for entries in ELSEWHERE.values():
        for entry in filter(None, map(str.strip, entries.splitlines())):
            place, method, *count = entry.split()
            number[f"{place} {method}"] += int(*count or (1,))
    return number


def outside(every: Counter[str]) -> Counter[str]:
    """Return the draws that are neither at home nor of data."""
    return Counter({at: n for at, n in every.items() if not at.startswith((HOME, DATA))})


def strangers(every: Counter[str]) -> list[str]:
    """Return the draws that are not listed."""
    return sorted(outside(every) - listed())


@pytest.fixture(scope="module")
def every() -> Counter[str]:
    return draws(SOURCE)


def misused_streams(source: str) -> list[str]:
    """Return what is done with ``streams.noise`` but giving it to one of `DRAWERS`."""
    tree = ast.parse(source)
    uses = {
        node: "not an argument"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "streams.noise"
    }
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
                if argument in uses:
                    uses[argument] = ast.unparse(call.func)
    return sorted(set(uses.values()) - DRAWERS)


def test_every_draw_outside_of_privacy_is_listed(every):
    assert strangers(every) == []


def test_every_draw_that_is_listed_is_there(every):
    assert sorted(listed() - outside(every)) == []


def test_noise_is_drawn_at_home(every):
    """Without it the list above would say nothing."""
    files = {at.split("::")[0] for at in every if at.startswith(HOME)}
    assert {f"{HOME}{name}.py" for name in ("ledger", "single_releases", "discrete")} <= files


@pytest.mark.parametrize(
    ("file", "text", "planted", "expected"),
    [
        (
            "linreg/release_terms.py",
            None,
            "def add(s, rng):\n    return s + rng.laplace(size=s.shape)\n",
            "linreg/release_terms.py::add laplace",
        ),
        (
            "statsel/releases.py",
            None,
            "def add(s, rng):\n    draw = rng.normal\n    return s + draw()\n",
            "statsel/releases.py::add normal",
        ),
        (
            "statsel/mechanisms.py",
            None,
            "def add(s, rng):\n    return s + getattr(rng, 'laplace')()\n",
            "statsel/mechanisms.py::add laplace",
        ),
        (
            "ep/mixture/states.py",
            None,
            "from numpy.random import normal\n",
            "ep/mixture/states.py::module normal",
        ),
        (
            "rows/kernels.py",
            None,
            "BODY = 'total += scale * rng.standard_normal()'\n",
            "rows/kernels.py::module standard_normal",
        ),
        (  # one more where one is listed
            "mcmc/moves.py",
            "    return math.log1p(-rng.random()) < log_ratio",
            "    return math.log1p(-rng.random()) < log_ratio + rng.random()",
            "mcmc/moves.py::accept random",
        ),
        (  # where noise was once drawn
            "ep/mixture/published.py",
            "        give_back(used)",
            "        give_back(used)\n        normals += rng.standard_normal(normals.shape)",
            "ep/mixture/published.py::fit standard_normal",
        ),
    ],
)
def test_a_planted_draw_is_found(tmp_path, file, text, planted, expected):
    source = (SOURCE / file).read_text()
    copy = tmp_path / file
    copy.parent.mkdir(parents=True)
    copy.write_text(source)
    assert strangers(draws(tmp_path)) == []
    if text is None:
        copy.write_text(f"{source}\n\n{planted}")
    else:
        assert source.count(text) == 1
        copy.write_text(source.replace(text, planted))
    assert strangers(draws(tmp_path)) == [expected]


def test_only_ledgers_draw_from_the_stream_of_noise():
    """What is given the stream of privacy noise records before it draws."""
    files = [path for path in SOURCE.rglob("*.py") if "streams.noise" in path.read_text()]
    assert len(files) >= 6
    assert {str(path): misused_streams(path.read_text()) for path in files} == {
        str(path): [] for path in files
    }


@pytest.mark.parametrize(
    ("planted", "expected"),
    [
        ("theta += streams.noise.standard_normal()", ["not an argument"]),
        ("own = streams.noise", ["not an argument"]),
        ("theta += draw(streams.noise)", ["draw"]),
        ("ledger.release(ratio, 1.0, rng=streams.noise)", []),
    ],
)
def test_a_planted_use_of_the_stream_of_noise_is_found(planted, expected):
    assert misused_streams(planted) == expected
