"""The league with a method of one's own: the template's lazy walk beside two methods of dpmc.

uv run python docs/examples/own_in_league.py
"""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pandas as pd

import dpmc
import dpmc_league

# Any object with `Params`, `releases` and `sampler` is a method: docs/extending.md.
TEMPLATE = Path(__file__).parents[2] / "templates/method/lazy_walk.py"
WALK = {"step": 0.003, "ratio_noise_multiplier": 15.0, "ratio_clip_bound": 6.0}


def main(path="docs/images/own_in_league.png", name="gaussian-2-v1", epsilon=4):
    """Score three methods on one task, whose posterior is known, and draw their intervals."""
    task = dpmc_league.task(name)
    mine = SimpleNamespace(**runpy.run_path(str(TEMPLATE), run_name="lazy_walk"))
    # A walk of a few steps has to start near the posterior: where that is costs a first release.
    place = dpmc.fit(task.model, task.dataset, epsilon=epsilon / 4, delta=task.delta)
    found = dpmc.compare(
        task.model,
        task.dataset,
        {"auto": {}, "dp_penalty": {}, "lazy walk": {"method": mine, **WALK}},
        epsilon=0.85 * epsilon,
        delta=task.delta,
        start=place.draws.mean(axis=(0, 1)),
    )
    scores = {
        label: dpmc_league.score(task, fit.kept(), (*place.ledger, *fit.ledger), epsilon=epsilon)
        for label, fit in found.fits.items()
    }
    columns = ["status", "mmd", "mean_error", "deviation_ratio", "effective_draws"]
    table = pd.DataFrame({k: vars(v) for k, v in scores.items()}).T[columns]
    print(table)
    found.plot().savefig(path, dpi=110)
    return table


if __name__ == "__main__":
    main()
