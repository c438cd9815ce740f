"""``python -m dpmc plan``: the command of the reproduction, :mod:`dpmc.experiments`."""

from __future__ import annotations

import runpy

if __name__ == "__main__":
    runpy.run_module("dpmc.experiments", run_name="__main__")
