"""A figure: a function of a context, to copy into the module that holds those of a paper.

Named in the configuration of the paper::

    outputs:
      acceptance:
        {kind: figure, function: acceptance, metrics: [comparison], caption: acceptance.rst}

with its caption in ``workflow/report/acceptance.rst``. A table is a function that returns a
``pandas.DataFrame``, of ``kind: table``.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure


def acceptance(context: Any) -> Figure:
    """Accepted share of proposals against epsilon, a line of dots for each label."""
    figure = Figure(figsize=(4, 3), layout="constrained")
    axis = figure.subplots()
    for label, rows in context.metrics.groupby("label"):
        axis.plot(rows["epsilon"], rows["acceptance_rate"], "o", label=label)
    axis.set_xlabel("epsilon")
    axis.set_ylabel("share of proposals accepted")
    axis.legend()
    return figure
