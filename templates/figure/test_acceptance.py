"""The example of a figure: what it shows is what the metrics hold."""

from types import SimpleNamespace

import pandas as pd
from acceptance import acceptance  # after copying: from the module of the paper


def test_every_run_is_a_dot_of_its_label():
    metrics = pd.DataFrame(
        {
            "label": ["dp_hmc", "dp_hmc", "dp_penalty"],
            "epsilon": [1.0, 2.0, 1.0],
            "acceptance_rate": [0.3, 0.5, 0.4],
        }
    )
    (axis,) = acceptance(SimpleNamespace(metrics=metrics)).axes
    shown = {line.get_label(): list(line.get_ydata()) for line in axis.lines}
    assert shown == {"dp_hmc": [0.3, 0.5], "dp_penalty": [0.4]}
