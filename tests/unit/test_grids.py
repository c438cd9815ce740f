"""Names and groups of the points of a grid."""

from __future__ import annotations

from dpmc import grids


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
