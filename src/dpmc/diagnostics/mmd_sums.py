"""The compiled inner loop of discrepancies: sums of Gaussian kernels over a block of pairs."""

from __future__ import annotations

from typing import Any

from dpmc.numerics.compiled import njit

REDUCED, CUT = 1.0 / 64.0, -40.0
# Of the polynomial, from z^2 on.
C = (1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040)


@njit(fastmath=True)
def add_block(  # pragma: no cover
    gram: Any,
    rows: Any,
    columns: Any,
    row_weights: Any,
    column_weights: Any,
    scales: Any,
    factor: Any,
    sums: Any,
) -> None:
    """Add ``factor * sum_ij w_i w_j exp(-s |x_i - y_j|^2)`` to `sums`, one entry per scale s.

    ``exp(z) = exp(z / 64)**64`` by a Taylor polynomial of degree 7 turns into vector
    instructions, which a call of ``exp`` does not; for z <= 0 it is off by less than 3e-14.
    """
    for k in range(scales.size):
        scale = scales[k] * REDUCED
        total = 0.0
        for i in range(rows.size):
            products, square = gram[i], rows[i]
            inner = 0.0
            for j in range(columns.size):
                # Rounding can leave a negative distance between equal points.
                z = scale * (2.0 * products[j] - square - columns[j])
                z = max(min(z, 0.0), CUT * REDUCED)
                p = C[5] * z + C[4]
                p = p * z + C[3]
                p = p * z + C[2]
                p = p * z + C[1]
                p = p * z + C[0]
                p = p * z + 1.0
                p = p * z + 1.0
                p = p * p
                p = p * p
                p = p * p
                p = p * p
                p = p * p
                p = p * p
                inner += column_weights[j] * p
            total += row_weights[i] * inner
        sums[k] += factor * total
