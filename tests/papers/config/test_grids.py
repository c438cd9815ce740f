"""Names and groups of the points of a grid."""

from __future__ import annotations

from dpmc_papers.config import grids
from dpmc_papers.config.settings import Method


def test_points_are_grouped_by_what_they_share():
    grid = {"num_nodes": [1, 5], "epsilon": [0.1, 1]}
    apart = list(grids.together(grid, ()))
    assert [name for name, _ in apart] == ["J=1,eps=0.1", "J=1,eps=1", "J=5,eps=0.1", "J=5,eps=1"]
    grouped = list(grids.together(grid, ["epsilon"]))
    assert [name for name, _ in grouped] == ["J=1", "J=5"]
    assert grouped[1][1] == [{"num_nodes": 5, "epsilon": 0.1}, {"num_nodes": 5, "epsilon": 1}]
    ((name, points),) = grids.together(grid, ["epsilon", "num_nodes"])
    assert name == "all"
    assert points == [point for _, (point,) in apart]


def test_every_point_has_a_name_of_its_own():
    grid = {"ratio_clip_bound": [0.5, 1.0], "steps": [3, 4]}
    method = Method(method="hmc", variant="v", params={}, grid=grid)
    found = list(grids.points(method, [1, 2.5]))
    names = [name for name, _, _ in found]
    assert names[:2] == ["eps=1,clip_bound=0.5,steps=3", "eps=1,clip_bound=0.5,steps=4"]
    assert len(set(names)) == len(names) == 8
    assert found[-1][1:] == (2.5, {"ratio_clip_bound": 1.0, "steps": 4})
    bare = Method(method="hmc", variant="v", params={})
    assert [name for name, _, _ in grids.points(bare, [None])] == ["single"]


def test_every_value_of_a_grid_is_in_some_point():
    grid = {"a": [1, 2, 3], "b": [4, 5]}
    found = list(grids.each_value(grid))
    assert found == [{"a": 1, "b": 4}, {"a": 2, "b": 4}, {"a": 3, "b": 4}, {"a": 1, "b": 5}]
    assert list(grids.each_value({})) == [{}]
