"""Plans: never over budget, one iteration short of it, and clear refusals."""

import math
import re

import numpy as np
import pytest
from dp_accounting import LaplaceDpEvent
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmc.privacy import Releases, accounting, barker, gaussian, plan, sampled_gaussian
from dpmc.privacy.audit import audit
from dpmc.types import Budget, DpmcError
from dpmc.types.roots import smallest_epsilon

log_uniform = st.floats(-1, 1).map(lambda u: 10**u)


def releases_of(initial, per_iteration):
    return Releases(
        tuple((gaussian(z), n) for z, n in initial),
        tuple((gaussian(z), n) for z, n in per_iteration),
    )


@given(
    initial=st.lists(st.tuples(log_uniform.map(lambda u: 30 * u), st.integers(0, 3)), max_size=2),
    per_iteration=st.lists(
        st.tuples(log_uniform.map(lambda u: 30 * u), st.integers(1, 30)), min_size=1, max_size=3
    ),
    epsilon=log_uniform.map(lambda u: 3 * u),
    delta=st.floats(-12, -1).map(lambda u: 10**u),
    num_chains=st.integers(1, 20),
    name=st.sampled_from(["gaussian", "zcdp"]),
)
@settings(max_examples=150, deadline=None)
def test_plan_spends_all_and_no_more(initial, per_iteration, epsilon, delta, num_chains, name):
    releases, budget = releases_of(initial, per_iteration), Budget(epsilon, delta, name)
    spent = accounting.load(name).delta
    try:
        made = plan(releases, budget, num_chains)
    except DpmcError:
        assert spent(releases.counts(1, num_chains), epsilon) > delta
        return
    assert spent(made.counts, epsilon) <= delta
    assert spent(releases.counts(made.num_iterations + 1, num_chains), epsilon) > delta
    assert made.guarantee.epsilon <= epsilon
    assert made.guarantee.delta == delta


@given(
    z=log_uniform.map(lambda u: 2 * u),
    batch_size=st.integers(1, 500),
    epsilon=log_uniform,
    delta=st.floats(-9, -3).map(lambda u: 10**u),
    num_chains=st.integers(1, 5),
    whole=st.booleans(),
    name=st.sampled_from(["subsampled", "poisson_pair"]),
)
@settings(max_examples=25, deadline=None)
def test_sampled_plan_spends_all_and_no_more(
    z, batch_size, epsilon, delta, num_chains, whole, name
):
    per_iteration = ((sampled_gaussian(z, batch_size, 1000), 1),)
    if whole:
        per_iteration += ((gaussian(40 * z), 1),)
    releases, budget = Releases((), per_iteration), Budget(epsilon, delta, name)
    spent = accounting.load(name).delta
    try:
        made = plan(releases, budget, num_chains)
    except DpmcError:
        assert spent(releases.counts(1, num_chains), epsilon) > delta
        return
    assert spent(made.counts, epsilon) <= delta
    assert spent(releases.counts(made.num_iterations + 1, num_chains), epsilon) > delta
    assert made.guarantee.epsilon <= epsilon


@given(
    batch_size=st.integers(20, 3000),
    ratio=st.integers(1, 100),
    noise_variance=st.floats(0.1, 3.2),
    share=st.floats(0.01, 0.9),
    epsilon=log_uniform.map(lambda u: 2 * u),
    delta=st.floats(-9, -3).map(lambda u: 10**u),
    num_chains=st.integers(1, 20),
    name=st.sampled_from(["barker_pld", "barker_rdp", "barker_rdp_published"]),
)
@settings(max_examples=10, deadline=None)
def test_barker_plan_spends_all_and_no_more(
    batch_size, ratio, noise_variance, share, epsilon, delta, num_chains, name
):
    if name == "barker_rdp_published":
        noise_variance, share = 2.0, min(share, 0.5)
    event = barker(
        noise_variance, math.sqrt(share * noise_variance), batch_size, ratio * batch_size
    )
    releases, budget = Releases((), ((event, 1),)), Budget(epsilon, delta, name)
    spent = accounting.load(name).delta
    try:
        made = plan(releases, budget, num_chains)
    except DpmcError:
        assert spent(releases.counts(1, num_chains), epsilon) > delta
        return
    assert spent(made.counts, epsilon) <= delta
    assert spent(releases.counts(made.num_iterations + 1, num_chains), epsilon) > delta
    assert made.guarantee.epsilon <= epsilon
    assert made.guarantee.accountant == "barker_pld"


@given(
    z=log_uniform.map(lambda u: 3 * u),
    batch_size=st.integers(1, 1000),
    epsilon=log_uniform.map(lambda u: 2 * u),
    delta=st.floats(-9, -3).map(lambda u: 10**u),
    num_chains=st.integers(1, 20),
    whole=st.booleans(),
    name=st.sampled_from(["rdp_integer", "rdp_truncated"]),
)
@settings(max_examples=60, deadline=None)
def test_integer_orders_spend_all_and_no_more(
    z, batch_size, epsilon, delta, num_chains, whole, name
):
    per_iteration = ((sampled_gaussian(z, batch_size, 1000), 1),)
    if whole:
        per_iteration += ((gaussian(40 * z), 1),)
    releases = Releases((), per_iteration)
    spent = accounting.load(name).delta
    k = accounting.max_iterations(releases, Budget(epsilon, delta, name), num_chains)
    if k:
        assert spent(releases.counts(k, num_chains), epsilon) <= delta
    assert spent(releases.counts(k + 1, num_chains), epsilon) > delta


@pytest.mark.parametrize("name", ["gaussian", "zcdp"])
def test_a_cap_leaves_the_rest_of_the_budget_unspent(name):
    releases, budget = releases_of([(80.0, 1)], [(31.6, 1)]), Budget(4, 1e-6, name)
    bought = plan(releases, budget, 2)
    capped = plan(releases, budget, 2, max_iterations=10)
    assert capped.num_iterations == 10
    assert capped.counts == releases.counts(10, 2)
    assert capped.guarantee.epsilon < 0.5 * bought.guarantee.epsilon
    assert capped.guarantee.epsilon == accounting.load("gaussian").epsilon(capped.counts, 1e-6)
    beyond = plan(releases, budget, 2, max_iterations=bought.num_iterations + 1)
    assert beyond.num_iterations == bought.num_iterations
    with pytest.raises(DpmcError, match="`max_iterations` must be an integer of at least 1, got 0"):
        plan(releases, budget, 2, max_iterations=0)


@pytest.mark.parametrize("name", ["rdp", "pld"])
def test_other_accountants_stay_within_budget(name):
    releases, budget = releases_of([(80.0, 1)], [(31.6, 1), (174.0, 26)]), Budget(4, 1e-6, name)
    made = plan(releases, budget, 4)
    spent = accounting.load(name).delta
    assert spent(made.counts, 4) <= 1e-6 < spent(releases.counts(made.num_iterations + 1, 4), 4)
    assert made.num_iterations <= plan(releases, Budget(4, 1e-6, "gaussian"), 4).num_iterations
    assert made.guarantee.accountant == "gaussian"
    assert made.guarantee.epsilon <= 4


def test_rdp_takes_batches():
    releases = Releases((), ((sampled_gaussian(8.0, 1000, 100000), 1),))
    by_rdp = plan(releases, Budget(2, 1e-6, "rdp"), 4)
    valid = plan(releases, Budget(2, 1e-6, "subsampled"), 4)
    assert 0.1 * valid.num_iterations < by_rdp.num_iterations < valid.num_iterations
    assert by_rdp.guarantee.epsilon < 2


def test_guarantee_of_the_authors_rule_is_the_valid_epsilon():
    releases = Releases((), ((sampled_gaussian(2.282177, 1000, 100000), 1),))
    made = plan(releases, Budget(4, 1e-6, "poisson_pair"), 4)
    assert made.guarantee.accountant == "subsampled"
    assert made.guarantee.epsilon < 3
    assert made.guarantee.epsilon == pytest.approx(audit(made.counts, 1e-6).epsilon, rel=1e-3)


def test_chains_share_the_budget():
    releases = releases_of([(174.0, 1)], [(31.6, 1)])
    made = plan(releases, Budget(4, 1e-6, "gaussian"), 4)
    assert made.counts == {gaussian(174.0): 4, gaussian(31.6): 4 * made.num_iterations}


def test_smallest_epsilon_in_the_refusal_will_do():
    releases = releases_of([(20.0, 2)], [(10.0, 1)])
    with pytest.raises(DpmcError) as caught:
        plan(releases, Budget(0.01, 1e-6, "gaussian"), 4)
    message = str(caught.value)
    assert "\n" not in message
    found = re.match(r"`epsilon` must be at least ([0-9.]+), got 0\.01: ", message)
    assert found is not None
    smallest = float(found[1])
    assert plan(releases, Budget(smallest, 1e-6, "gaussian"), 4).num_iterations == 1
    with pytest.raises(DpmcError):
        plan(releases, Budget(smallest * (1 - 1e-4), 1e-6, "gaussian"), 4)


@pytest.mark.parametrize("name", accounting.names())
def test_every_accountant_keeps_to_the_interface(name):
    accountant = accounting.load(name)
    counts = {gaussian(20.0): 10}
    if name == "barker_rdp_published":
        counts = {barker(2.0, 1.0, 1300, 100_000): 10_000}
    epsilon = accountant.epsilon(counts, 1e-5)
    assert isinstance(accountant.UPPER_BOUND, bool)
    assert accountant.REMARK
    assert accountant.delta(counts, epsilon) <= 1e-5 * (1 + 1e-6)
    assert accountant.delta(counts, 0.98 * epsilon) > 1e-5
    assert accountant.epsilon(counts, 1e-5) == epsilon
    assert accountant.delta({}, 1.0) == 0.0
    (event,), (number,) = counts, counts.values()
    by_count = [accountant.delta({event: n}, 2.0) for n in (number, 4 * number, 40 * number)]
    by_epsilon = [accountant.delta(counts, x) for x in (0.0, 1e-3, 0.5, 5.0, 600.0)]
    assert by_count == sorted(by_count)
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    assert all(0 <= delta <= 1 for delta in by_count + by_epsilon)
    with pytest.raises(DpmcError, match="`epsilon` must be at least 0 and finite, got nan"):
        accountant.delta(counts, math.nan)
    with pytest.raises(DpmcError, match=r"`delta` must be in \(0, 1\), got 0"):
        accountant.epsilon(counts, 0)
    with pytest.raises(DpmcError, match=r"only, got .*LaplaceDpEvent"):
        accountant.delta({LaplaceDpEvent(1.0): 1}, 1.0)


@pytest.mark.parametrize("event", [sampled_gaussian(5.0, 10, 1000), barker(2.0, 1.0, 10, 1000)])
@pytest.mark.parametrize("name", ["gaussian", "zcdp", "pld"])
def test_batches_are_refused_by_accountants_of_all_rows(name, event):
    with pytest.raises(DpmcError, match=r"accountant .* only, got (sampled_gaussian|barker)\("):
        accounting.load(name).delta({event: 3}, 1.0)


@pytest.mark.parametrize("root", [0.5, 1.0, 1.5, 7.3, 1e3 + 0.5, 123456.7, 9.9e11])
@pytest.mark.parametrize("power", [0.3, 1.0, 9.0])
@pytest.mark.parametrize("guess", [1, 5, 10**6])
def test_largest_count_of_a_power_law(root, power, guess):
    calls = []

    def excess(k):
        calls.append(k)
        return power * math.log(k / root)

    assert accounting.largest(excess, guess) == math.floor(root)
    assert len(calls) < 60


@pytest.mark.parametrize("root", [1e-4, 0.3, 1.0, 40.0, 3e3])
def test_smallest_epsilon_is_an_upper_bound(root):
    def delta_at(epsilon):
        return float(np.exp(-3 * (epsilon / root) ** 2))

    found = smallest_epsilon(delta_at, math.exp(-3))
    assert root <= found <= root * (1 + 2e-7)
