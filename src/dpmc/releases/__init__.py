"""Posteriors of what others published: no row is read."""

from dpmc.releases.posterior import from_release
from dpmc.releases.problem import Release

__all__ = ["Release", "from_release"]
