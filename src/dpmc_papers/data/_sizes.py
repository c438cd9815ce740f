"""Sizes of data sets, known without making them."""

from __future__ import annotations

from dpmc_papers.config.setups import ProblemSetup
from dpmc_papers.data import _uci_tables

BYTES_PER_MB = 1e6
BYTES_PER_NUMBER = 8


def shape(problem: ProblemSetup) -> tuple[int, int]:
    """Return the rows and columns of the data of a problem.

    Data that say nothing of their size count as 100,000 rows of 10 numbers.
    """
    params = problem.data.params
    if "dataset" in params:
        name = _uci_tables.ALIASES.get(params["dataset"], params["dataset"])
        table = _uci_tables.TABLES.get(name)
        if table is not None:
            return table.num_rows, len(table.features) + 1
    vectors = (params[key] for key in ("theta", "mean") if isinstance(params.get(key), list))
    columns = next((len(vector) for vector in vectors), 0)
    return int(params.get("num_rows", 100_000)), columns or int(params.get("dim", 9)) + 1


def megabytes(problem: ProblemSetup) -> float:
    """Return the size of the rows of a problem."""
    rows, columns = shape(problem)
    return rows * columns * BYTES_PER_NUMBER / BYTES_PER_MB
