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

SOURCE = Path(dpmc.__file__).parents[1]  # every package of the project
HOME = "dpmc/privacy/"
DATA = "dpmc_papers/data/"  # simulated, and split into training and test rows

ELSEWHERE = {
    "moves of a Markov chain: proposals, momenta, step sizes and acceptance tests, of what is "
    "released already or of rows in a run without privacy": """
        dpmc_league/gaussian_laws.py::approximate standard_normal
        dpmc_league/references.py::Candidates.extend random
        dpmc_league/references.py::Proposals.draw chisquare
        dpmc_league/references.py::Proposals.draw integers
        dpmc_league/references.py::Proposals.draw standard_normal
        dpmc_league/regressions/napsu_mq.py::LogLinear.draws random
        dpmc_league/regressions/napsu_mq.py::LogLinear.draws standard_normal 2
        dpmc_league/rivals/kinetic_langevin.py::chain standard_normal
        dpmc_league/rivals/penalty.py::chain standard_normal
        dpmc_league/trajectories.py::steps standard_normal
        dpmc/mcmc/barker_correction.py::Correction.draw random
        dpmc/mcmc/methods/dp_sgnht.py::sampler.init standard_normal
        dpmc/mcmc/moves.py::Mass.momentum standard_normal
        dpmc/mcmc/moves.py::Walk.direction choice
        dpmc/mcmc/moves.py::accept random
        dpmc/mcmc/moves.py::guided_walk integers
        dpmc/mcmc/moves.py::guided_walk standard_normal 2
        dpmc/mcmc/moves.py::random_walk integers
        dpmc/mcmc/moves.py::random_walk standard_normal 2
        dpmc/mcmc/moves.py::step_sizes random
        dpmc/linreg/gibbs/conditionals.py::accepts random
        dpmc/linreg/gibbs/conditionals.py::propose_variance standard_normal
        dpmc/linreg/gibbs/covariance_moves.py::move_jointly random 2
        dpmc/linreg/gibbs/scale_moves.py::scale_move standard_normal
        dpmc/releases/augmentation.py::Augmented._better random
        dpmc/releases/augmentation.py::Augmented._move_number random
        dpmc/releases/augmentation.py::Augmented._propose random
        dpmc/releases/augmentation.py::Augmented._write_number uniform
        dpmc/releases/normal.py::NormalSums._error standard_normal 2
        dpmc/releases/normal.py::NormalSums.update wald
        dpmc/releases/normal.py::truncated random
        dpmc/releases/moves.py::step choice
        dpmc/releases/moves.py::step integers 2
        dpmc/releases/moves.py::step permutation
        dpmc/releases/moves.py::step random
        dpmc/releases/moves.py::step standard_normal
        dpmc/releases/moves.py::tempered random
        dpmc/releases/posterior.py::_Start.of choice
        dpmc/releases/posterior.py::_check_statistic random
        dpmc/releases/records.py::rule random
        dpmc/releases/posterior.py::from_release choice
        dpmc/releases/problem.py::Problem.start standard_normal
        dpmc/statsel/chains/common.py::accepts random
        dpmc/statsel/chains/mean.py::make_averaged_ratio.averaged_ratio standard_normal 2
        dpmc/statsel/chains/mean.py::make_metropolis.metropolis standard_normal
        dpmc/statsel/chains/mean.py::make_pseudo_marginal.pseudo_marginal standard_normal
        dpmc/statsel/chains/order.py::make_averaged_ratio.averaged_ratio standard_normal
        dpmc/statsel/chains/records.py::make_averaged_ratio.averaged_ratio standard_normal
    """,
    "Gibbs draws of parameters and latent variables, given what is released": """
        dpmc/linreg/gibbs/conditionals.py::draw_coefficients standard_normal
        dpmc/linreg/gibbs/covariance_moves.py::draw_parameter random 3
        dpmc/linreg/gibbs/gaussian_moves.py::draw_deviation standard_normal 2
        dpmc/linreg/gibbs/latent_sums.py::direct_conditional standard_normal
        dpmc/linreg/gibbs/latent_sums.py::elliptical_slice random 3
        dpmc/linreg/gibbs/latent_sums.py::smooth standard_normal
        dpmc/linreg/gibbs/latent_sums.py::turned_conditional standard_normal
        dpmc/linreg/gibbs/conditionals.py::draw_conjugate standard_gamma
        dpmc/linreg/gibbs/conditionals.py::draw_conjugate standard_normal
        dpmc/linreg/gibbs/conditionals.py::draw_independent standard_gamma
        dpmc/linreg/gibbs/conditionals.py::draw_independent standard_normal
        dpmc/linreg/methods/data_augmentation.py::_sweep standard_normal 2
        dpmc/linreg/methods/data_augmentation.py::fit standard_normal 2
        dpmc/linreg/methods/mcmc_fixed_s.py::draw_theta standard_normal
        dpmc/numerics/small_matrices.py::bartlett standard_gamma
        dpmc/numerics/small_matrices.py::bartlett standard_normal
        dpmc/statsel/chains/common.py::pick random
        dpmc/statsel/chains/mean.py::make_pseudo_marginal.log_estimate standard_normal
        dpmc/statsel/chains/records.py::draw_base random 2
        dpmc/statsel/chains/records.py::draw_base standard_normal
        dpmc/statsel/order_draws.py::draw_centre standard_exponential 2
        dpmc/statsel/order_draws.py::draw_centre standard_gamma 2
        dpmc/statsel/order_draws.py::next_exponential standard_exponential
    """,
    "exact draws from a posterior in closed form: of a reference, or given releases": """
        dpmc_league/catalogue/circle_v1.py::build.draw rvs
        dpmc_league/catalogue/circle_v1.py::build.draw uniform
        dpmc_league/catalogue/hierarchical_10_v1.py::sample random
        dpmc_league/catalogue/hierarchical_10_v1.py::sample standard_normal 2
        dpmc_league/families.py::bent.draw standard_normal
        dpmc_league/families.py::gaussian.draw standard_normal
        dpmc_league/gaussian_laws.py::run standard_normal
        dpmc_league/rivals/hmc_releases.py::run standard_normal
        dpmc/families/intercepts.py::Intercepts.draws choice
        dpmc/families/intercepts.py::Intercepts.draws random
        dpmc/families/intercepts.py::Intercepts.draws standard_normal
        dpmc/families/mixture.py::_draws standard_normal
        dpmc/families/network.py::_draws gamma
        dpmc/families/network.py::_draws standard_normal
        dpmc/automatic/glm/run.py::_draws standard_normal
        dpmc/automatic/noise_aware.py::NoiseAware.draws random
        dpmc/automatic/noise_aware.py::NoiseAware.draws standard_normal
        dpmc/linreg/methods/bayes_fixed_s_fast.py::fit standard_normal
        dpmc/linreg/methods/posterior.py::fit standard_gamma
        dpmc/linreg/methods/posterior.py::fit standard_normal
        dpmc/models/banana.py::build.reference standard_normal
        dpmc/models/circle.py::build.reference rvs
        dpmc/models/circle.py::build.reference uniform
        dpmc/models/gaussian_mean.py::build.reference standard_normal
    """,
    "synthetic rows, of laws that are released": """
        dpmc_league/regressions/napsu_mq.py::_fit multinomial
        dpmc_league/synthetic.py::fit multinomial
    """,
    "responses of new rows, which are not private, under draws that are released": """
        dpmc/fits/predictive.py::Predictor._classes random
        dpmc/fits/predictive.py::_gamma standard_gamma
        dpmc/fits/predictive.py::_linear standard_normal
        dpmc/fits/predictive.py::_logistic logistic
        dpmc/fits/predictive.py::_mixture choice
        dpmc/fits/predictive.py::_mixture standard_normal
        dpmc/fits/predictive.py::_negative_binomial standard_gamma
        dpmc/fits/predictive.py::_network standard_normal
        dpmc/fits/predictive.py::_poisson normal
        dpmc/fits/predictive.py::_poisson poisson
        dpmc/fits/predictive.py::_student_t standard_t
        dpmc/fits/predictive.py::_successes binomial
        dpmc/fits/predictive.py::_weibull standard_exponential
    """,
    "simulated rows of tasks, which are nobody's": """
        dpmc_league/catalogue/circle_v1.py::build standard_normal
        dpmc_league/catalogue/hierarchical_10_v1.py::build standard_normal 2
        dpmc_league/catalogue/linear_5_v1.py::build standard_normal
        dpmc_league/catalogue/logistic_3_v1.py::build random
        dpmc_league/catalogue/mixture_2_v1.py::build random
        dpmc_league/catalogue/mixture_2_v1.py::build standard_normal
        dpmc_league/catalogue/network_6_v1.py::build standard_normal
        dpmc_league/catalogue/network_6_v1.py::build uniform
        dpmc_league/catalogue/poisson_3_v1.py::build poisson
        dpmc_league/catalogue/student_location_v1.py::build standard_t
        dpmc_league/families.py::bent standard_normal
        dpmc_league/families.py::gaussian standard_normal
        dpmc_league/simulate.py::regression_features standard_normal
    """,
    "made-up rows, or rows that a user names as not private, on which a plan is simulated": """
        dpmc/families/likelihoods.py::model_of standard_normal
        dpmc/planning/made_up.py::columns standard_normal 2
        dpmc/planning/made_up.py::columns uniform
        dpmc/planning/made_up.py::responses beta
        dpmc/planning/made_up.py::responses binomial
        dpmc/planning/made_up.py::responses exponential
        dpmc/planning/made_up.py::responses gamma
        dpmc/planning/made_up.py::responses gumbel
        dpmc/planning/made_up.py::responses logistic
        dpmc/planning/made_up.py::responses poisson
        dpmc/planning/made_up.py::responses random
        dpmc/planning/made_up.py::responses standard_gamma
        dpmc/planning/made_up.py::responses standard_normal 2
        dpmc/planning/made_up.py::responses standard_t
        dpmc/planning/simulated.py::Simulation.drawn integers
        dpmc/planning/simulated.py::Simulation.drawn standard_normal
    """,
    "the order of reference draws, directions of a score, seeds, and coins of attacks": """
        dpmc_league/score.py::_reference multivariate_normal
        dpmc_papers/studies/league_regression.py::_scored integers
        dpmc/sklearn.py::_Regression._seed randint
        dpmc_league/attack.py::attack integers
        dpmc_league/attack.py::attack random
        dpmc_league/measures.py::sliced_wasserstein standard_normal
        dpmc_league/references.py::make permutation
        dpmc_league/table.py::_key integers
        dpmc/statsel/posterior/order_table.py::OrderTable.__init__ integers
        dpmc_papers/studies/_league.py::terms integers
        dpmc_papers/studies/league_price.py::run.row integers
    """,
    "which published runs are made again, and from which last digits": """
        dpmc_papers/__main__.py::_rerun randbits
        dpmc_papers/pipeline/published_runs.py::one_of_each integers
        dpmc_papers/pipeline/published_runs.py::sample choice
        dpmc_papers/pipeline/rerun.py::moved integers
    """,
    "which rows a step uses, and in what order": """
        dpmc_league/rivals/hmc_batches.py::batch_gradient.gradient choice
        dpmc/automatic/counted.py::Counted.one_of integers
        dpmc/automatic/counted.py::Counted.one_of random
        dpmc/automatic/counted.py::Counted.some random
        dpmc/ep/network/vi.py::_one_pass permutation
        dpmc/ep/settings.py::pass_orders integers
        dpmc/ep/settings.py::pass_orders permutation
        dpmc/mcmc/batch_ratios.py::BatchRatios.sums random_raw
        dpmc/mcmc/stochastic_gradient.py::sampler.chain integers
    """,
    "dropped at once: the generator is to stand where that of the public code does": """
        dpmc/ep/mixture/published.py::legacy_stream standard_normal
        dpmc/ep/network/engine.py::_run standard_normal
    """,
    "Monte Carlo integrals and simulations of public quantities": """
        dpmc/diagnostics/mmd.py::cross_width integers 3
        dpmc/ep/network/vi.py::_one_pass standard_normal
        dpmc/ep/network/vi.py::fit standard_normal 2
        dpmc/ep/perturbation/noise.py::_symmetric standard_normal
        dpmc/ep/perturbation/noise.py::example_covariance standard_normal
        dpmc/ep/perturbation/noise.py::simulate standard_normal
        dpmc/ep/perturbation/noise.py::simulate_natural standard_normal
        dpmc/statsel/fisher/monte_carlo.py::estimate laplace
        dpmc/statsel/fisher/monte_carlo.py::of_mean.draw standard_normal
        dpmc/statsel/fisher/order_statistics.py::simulate uniform
        dpmc/statsel/fisher/order_statistics.py::sorted_latents uniform 2
        dpmc_papers/outputs/_league_table.py::_ratios integers
        dpmc_papers/verdicts/bootstrap.py::resample integers
        dpmc_papers/verdicts/power.py::_dealt permutation
    """,
    "start points, priors and simulated records": """
        dpmc_league/footing.py::_by_mean standard_normal
        dpmc_league/footing.py::_search standard_normal
        dpmc_league/price.py::Normal.of standard_normal
        dpmc/ep/network/engine.py::first_arrays standard_normal
        dpmc/linreg/profiles.py::make_prior standard_normal
        dpmc/numerics/covariances.py::random_covariance gamma
        dpmc/numerics/covariances.py::random_covariance uniform
        dpmc/statsel/types.py::Population.draw_base standard_normal
        dpmc/statsel/types.py::Population.draw_base uniform
        dpmc_papers/config/problems.py::start_points standard_normal
    """,
    "which rows are compared with each other: by a public seed, or by secret coins": """
        dpmc/automatic/counted.py::Counted.order permutation
    """,
    "which row stands for a person, by a public seed": """
        dpmc/rows/persons.py::Persons.one_each random
    """,
    "made-up rows and parameters on which a model is checked before it sees private rows": """
        dpmc/automatic/prior.py::_is_normal choice
        dpmc/rows/model_checks.py::_check_affine integers
        dpmc/rows/model_checks.py::_check_affine random
        dpmc/rows/model_checks.py::_check_affine standard_normal
        dpmc/rows/model_checks.py::_check_gradient.compare standard_normal
        dpmc/rows/probes.py::Probes.pairs permutation
        dpmc/rows/probes.py::bounded_rows standard_normal
        dpmc/rows/probes.py::rows choice 2
        dpmc/rows/probes.py::rows integers
        dpmc/rows/probes.py::rows poisson
        dpmc/rows/probes.py::rows random 2
        dpmc/rows/probes.py::rows standard_normal 2
        dpmc/rows/probes.py::thetas standard_normal
        dpmc/rows/regressions.py::example_rows standard_normal
    """,
    "noise of mechanisms that the league compares, on simulated rows": """
        dpmc_league/noises.py::hidden standard_normal 2
        dpmc_league/noises.py::parts standard_normal
        dpmc_league/noises.py::released standard_normal 2
        dpmc_league/synthetic.py::Desk.choose choice
        dpmc_league/regressions/noisy_statistics.py::_fit laplace
        dpmc_league/regressions/noisy_statistics.py::_fit standard_normal
        dpmc_league/regressions/one_sample.py::_draw chisquare
        dpmc_league/regressions/one_sample.py::_draw choice
        dpmc_league/regressions/one_sample.py::_draw standard_normal
    """,
    "the key of a generator": """
        dpmc/random_bits.py::cryptographic urandom
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
            "dpmc/linreg/release_terms.py",
            None,
            "def add(s, rng):\n    return s + rng.laplace(size=s.shape)\n",
            "dpmc/linreg/release_terms.py::add laplace",
        ),
        (
            "dpmc/statsel/releases.py",
            None,
            "def add(s, rng):\n    draw = rng.normal\n    return s + draw()\n",
            "dpmc/statsel/releases.py::add normal",
        ),
        (
            "dpmc/statsel/mechanisms.py",
            None,
            "def add(s, rng):\n    return s + getattr(rng, 'laplace')()\n",
            "dpmc/statsel/mechanisms.py::add laplace",
        ),
        (
            "dpmc/ep/mixture/states.py",
            None,
            "from numpy.random import normal\n",
            "dpmc/ep/mixture/states.py::module normal",
        ),
        (
            "dpmc/rows/kernels.py",
            None,
            "BODY = 'total += scale * rng.standard_normal()'\n",
            "dpmc/rows/kernels.py::module standard_normal",
        ),
        (  # one more where one is listed
            "dpmc/mcmc/moves.py",
            "    return math.log1p(-rng.random()) < log_ratio",
            "    return math.log1p(-rng.random()) < log_ratio + rng.random()",
            "dpmc/mcmc/moves.py::accept random",
        ),
        (  # where noise was once drawn
            "dpmc/ep/mixture/published.py",
            "        give_back(used)",
            "        give_back(used)\n        normals += rng.standard_normal(normals.shape)",
            "dpmc/ep/mixture/published.py::fit standard_normal",
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
