"""Sensitivities of regression statistics, against an adversary who looks for the worst rows.

The search is a steepest ascent from several starts, with a fixed seed: it cannot fail by
chance. What it reaches is a lower bound on the sensitivity.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmc.linreg.sensitivity import (
    s_sensitivity,
    scaled_sensitivity,
    smallest_eigenvalue_sensitivity,
    statistics_sensitivity,
    z_sensitivity,
)
from dpmc.rng import stream
from dpmc.types import DpmcError

STARTS, STEPS = 12, 30
BOUNDS = [(1.0, 0.3), (1.0, 1.0), (0.5, 0.6), (1.0, 2.5)]
RELATIONS = ["add_remove", "replace"]


def project(rows, x_bound, y_bound):
    """Return rows (x, y), shape (..., d + 1), moved to the nearest ones within the bounds."""
    x, y = rows[..., :-1], rows[..., -1:]
    x = x / np.maximum(1.0, np.linalg.norm(x, axis=-1, keepdims=True) / x_bound)
    return np.concatenate([x, np.clip(y, -y_bound, y_bound)], axis=-1)


def statistics(rows, parts="sz"):
    """Return the named statistics of sets of rows, shape (starts, m, d + 1)."""
    x, y = rows[..., :-1], rows[..., -1]
    s = np.swapaxes(x, -1, -2) @ x
    i, j = np.triu_indices(x.shape[-1])
    z = (x * y[..., None]).sum(axis=-2)
    blocks = {"s": s[..., i, j], "z": z, "u": (y**2).sum(axis=-1)[..., None]}
    blocks["l"] = np.linalg.eigvalsh(s)[..., :1]
    return np.concatenate([blocks[part] for part in parts], axis=-1)


def worst_change(of, bounds, dim, neighbours, others=0):
    """Return the largest change found in ``of(rows)``, among `others` rows that stay.

    The last two rows are the one that is in the data and the one that it is replaced by:
    zeros, where it is removed, which adds nothing to any sum of products.
    """
    rng = stream(7, "tests", "sensitivity", *bounds, dim, neighbours, others)
    scale, shape = max(bounds), (others + 2, dim + 1)
    moves = np.concatenate([np.eye(math.prod(shape)), -np.eye(math.prod(shape))])
    moves = 1e-5 * scale * moves.reshape(-1, *shape)
    sizes = scale * 2.0 ** -np.arange(12)[:, None, None]

    def change(rows):
        rows = rows.reshape(-1, *shape)
        return np.linalg.norm(of(rows[:, :-1]) - of(np.delete(rows, -2, axis=1)), axis=-1)

    def allowed(rows):
        rows = project(rows, *bounds)
        if neighbours == "add_remove":
            rows[..., -1, :] = 0
        return rows

    rows = allowed(scale * rng.standard_normal((STARTS, *shape)))
    for _ in range(STEPS):
        up, down = np.split(change(rows[:, None] + moves).reshape(STARTS, -1), 2, axis=1)
        slope = (up - down).reshape(STARTS, 1, *shape)
        slope /= np.linalg.norm(slope, axis=(2, 3), keepdims=True) + 1e-300
        tried = np.concatenate([rows[:, None], allowed(rows[:, None] + sizes * slope)], axis=1)
        best = change(tried).reshape(STARTS, -1).argmax(axis=1)
        rows = tried[np.arange(STARTS), best]
    return change(rows).max()


def agrees(found, formula):
    return (1 - 1e-3) * formula <= found <= (1 + 1e-9) * formula


def part_sensitivity(parts, bounds, dim, neighbours):
    if parts == "s":
        return s_sensitivity(bounds[0], dim, neighbours)
    if parts == "z":
        return z_sensitivity(*bounds, neighbours)
    return statistics_sensitivity(*bounds, dim, neighbours, with_u=parts == "szu")


@pytest.mark.parametrize("parts", ["s", "z", "sz", "szu"])
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_an_adversary_reaches_the_sensitivity_and_no_more(parts, neighbours, dim):
    for bounds in BOUNDS:
        found = worst_change(lambda rows: statistics(rows, parts), bounds, dim, neighbours)
        formula = part_sensitivity(parts, bounds, dim, neighbours)
        assert agrees(found, formula), (bounds, found / formula)
        assert not agrees(found, 0.97 * formula)
        assert not agrees(found, 1.03 * formula)


@pytest.mark.parametrize("parts", ["sz", "szu"])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_the_printed_sensitivity_is_found_out_when_a_row_is_replaced(parts, bounds):
    found = worst_change(lambda rows: statistics(rows, parts), bounds, 2, "replace")
    printed = statistics_sensitivity(*bounds, 2, "add_remove", parts == "szu")
    assert found > 1.01 * printed


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_an_adversary_reaches_the_sensitivity_of_the_smallest_eigenvalue(neighbours, dim):
    bounds = 1.5, 1.0
    found = worst_change(lambda rows: statistics(rows, "l"), bounds, dim, neighbours, dim)
    assert agrees(found, smallest_eigenvalue_sensitivity(bounds[0]))
    assert not agrees(found, 0.97 * smallest_eigenvalue_sensitivity(bounds[0]))


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("dim", [1, 2])
def test_noise_of_two_sizes_has_the_sensitivity_of_scaled_rows(neighbours, dim):
    bounds, s_sd, z_sd = (1.2, 0.7), 3.0, 0.5

    def scaled(rows):
        return np.concatenate([statistics(rows, "s") / s_sd, statistics(rows, "z") / z_sd], -1)

    found = worst_change(scaled, bounds, dim, neighbours)
    formula = scaled_sensitivity(*bounds, dim, neighbours, s_sd, z_sd)
    assert agrees(found, formula)
    assert not agrees(found, 0.97 * formula)
    same = scaled_sensitivity(*bounds, dim, neighbours, 2.0, 2.0)
    assert same == pytest.approx(statistics_sensitivity(*bounds, dim, neighbours) / 2, rel=1e-12)


@pytest.mark.parametrize("relation", RELATIONS)
def test_releasing_y_y_too_costs_more_where_features_are_few(relation):
    """With features of unit size B^2 is d; a replaced row costs nothing more from d = 5 on."""
    few, more, most = (
        statistics_sensitivity(math.sqrt(d), 3.0, d, relation, with_u=True)
        / statistics_sensitivity(math.sqrt(d), 3.0, d, relation)
        for d in (2, 5, 20)
    )
    assert few > 1.1 * more
    assert more >= most >= 1


@pytest.mark.parametrize("with_u", [False, True])
@pytest.mark.parametrize("dim", [1, 2])
def test_closed_forms_equal_the_maximum_on_a_grid(with_u, dim):
    """The worst rows have norm B; the other target and the angle are left to the grid."""
    t, s = np.meshgrid(np.linspace(-1, 1, 601), np.linspace(-1, 1, 601))
    for bounds in [*BOUNDS, (1.0, 0.7), (1.0, 1.45), (2.0, 0.1), (0.1, 2.0)]:
        b2, y2 = bounds[0] ** 2, bounds[1] ** 2
        if dim == 1:  # x' = t B
            squared = b2**2 * (1 - t**2) ** 2 + b2 * y2 * (1 - t * s) ** 2
        else:  # the cosine is t
            squared = 2 * b2**2 * (1 - t**2) + b2 * y2 * (1 + s**2 - 2 * t * s)
        squared += y2**2 * (1 - s**2) ** 2 if with_u else 0.0
        formula = statistics_sensitivity(*bounds, dim, "replace", with_u)
        assert math.sqrt(squared.max()) == pytest.approx(formula, rel=1e-5)
        assert math.sqrt(squared.max()) <= formula * (1 + 1e-12)


# --- variants


def averaged_statistics(with_u):
    def of(rows):  # one block
        block = rows.sum(axis=-2, keepdims=True) / math.sqrt(rows.shape[-2])
        return statistics(block, "szu" if with_u else "sz")

    return of


def test_averaging_changes_the_sensitivity_that_the_thesis_says_it_keeps():
    found = worst_change(averaged_statistics(False), (1.0, 0.3), 2, "add_remove", others=3)
    assert found > 1.7 * statistics_sensitivity(1.0, 0.3, 2, "add_remove")


@pytest.mark.parametrize(("size", "factor"), [(2, 1.41), (3, 1.89), (5, 2.26)])
def test_a_row_that_is_replaced_in_a_block_moves_s_by_more(size, factor):
    """By 4 (k - 1)/k in place of sqrt(2), with rows of length 1."""

    def of(rows):
        block = rows.sum(axis=-2, keepdims=True) / math.sqrt(rows.shape[-2])
        return statistics(block, "s")

    found = worst_change(of, (1.0, 0.3), 2, "replace", others=size - 1)
    assert found == pytest.approx(factor * math.sqrt(2), rel=5e-3)
    assert found == pytest.approx(4 * (size - 1) / size, rel=1e-3)


def test_an_intercept_costs_less_than_the_bound_on_longer_rows():
    """n is public: its entry of S takes no noise."""

    def of(rows):
        alive = rows.any(axis=-1, keepdims=True)  # a removed row takes its one along
        extended = np.concatenate([np.where(alive, 1.0, 0.0), rows], axis=-1)
        return statistics(extended, "sz")[..., 1:]

    found = worst_change(of, (1.0, 0.5), 2, "add_remove")
    assert agrees(found, math.sqrt((1 + 1) * (1 + 0.5**2)))
    longer = statistics_sensitivity(math.sqrt(2), 0.5, 3, "add_remove")
    assert longer**2 - found**2 == pytest.approx(1 + 1, rel=1e-3)


@pytest.mark.parametrize(
    ("bounds", "ratio"),
    [
        ((1.0, 0.3), 1.4155),
        ((1.0, 1.0), 1.5),
        ((1.0, 1.3), 1.5909),
        ((1.0, 2.0), 1.7889),
        ((3.0, 1.0), 1.4162),
    ],
)
def test_ratios_of_the_two_relations(bounds, ratio):
    both = [statistics_sensitivity(*bounds, 3, relation) for relation in RELATIONS]
    assert both[0] == pytest.approx(math.sqrt(bounds[0] ** 4 + (bounds[0] * bounds[1]) ** 2))
    assert both[1] / both[0] == pytest.approx(ratio, abs=6e-5)


def test_the_entries_of_s_are_counted_once():
    """Counted twice, as in the Frobenius norm, a row off the axes would move S as far."""
    x = np.array([[1.0, 1.0]]) / math.sqrt(2)
    rows = np.concatenate([x, np.ones((1, 1))], axis=1)[None]
    assert np.linalg.norm(statistics(rows, "s")) == pytest.approx(math.sqrt(0.75))
    assert s_sensitivity(1.0, 2, "add_remove") == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 1.0, 2), r"x_bound.*0\.0"),
        ((1.0, math.inf, 2), r"y_bound.*inf"),
        ((1.0, math.nan, 2), r"y_bound.*nan"),
        ((1.0, 1.0, 0), r"dim.*0"),
        ((1.0, 1.0, 2, "remove"), r"neighbours.*'remove'"),
    ],
)
def test_arguments_that_are_refused(arguments, message):
    with pytest.raises(DpmcError, match=message):
        statistics_sensitivity(*arguments)
    with pytest.raises(DpmcError, match=r"s_sd.*0"):
        scaled_sensitivity(1.0, 1.0, 2, "replace", 0, 1.0)
