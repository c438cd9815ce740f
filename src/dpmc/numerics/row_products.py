"""Products of many rows with a small matrix, in pieces that one processor works on.

Libraries of linear algebra share one large product among all processors, and those wait for each
other without rest: beside other work, or in threads of which each has rows of its own, they take
up to a hundred times as long. A product of few rows is left to the processor that asks for it.
"""

from __future__ import annotations

import numpy as np

from dpmc.types import Array

# Multiplications of a piece: below what is shared among processors.
PIECE = 1 << 18


def times(rows: Array, matrix: Array) -> Array:
    """Product of rows with a matrix; each row by the same operations.

    Parameters
    ----------
    rows : ndarray of shape (m, k), contiguous
    matrix : ndarray of shape (k, l)

    Returns
    -------
    ndarray of shape (m, l)

    Examples
    --------
    >>> times(np.ones((3, 2)), np.eye(2)).sum()
    6.0
    """
    count, (size, width) = len(rows), matrix.shape
    out = np.empty((count, width))
    piece = 1 << max(0, (PIECE // (size * width)).bit_length() - 1)
    whole = count // piece * piece
    if whole:
        np.matmul(rows[:whole].reshape(-1, piece, size), matrix, out=_pieces(out[:whole], piece))
    if whole < count:
        np.matmul(rows[whole:], matrix, out=out[whole:])
    return out


def _pieces(out: Array, piece: int) -> Array:
    return out.reshape(-1, piece, out.shape[1])


def gram(rows: Array, weights: Array) -> Array:
    """Sum over rows of a weight times the outer product of a row with itself.

    Parameters
    ----------
    rows : ndarray of shape (m, k), contiguous
    weights : ndarray of shape (m,)

    Returns
    -------
    ndarray of shape (k, k)

    Examples
    --------
    >>> gram(np.eye(2), np.array([1.0, 2.0])).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    count, size = rows.shape
    weighted = rows * weights[:, None]
    piece = 1 << max(0, (PIECE // (size * size)).bit_length() - 1)
    whole = count // piece * piece
    parts = np.matmul(
        weighted[:whole].reshape(-1, piece, size).transpose(0, 2, 1),
        rows[:whole].reshape(-1, piece, size),
    )
    total: Array = parts.sum(axis=0) + weighted[whole:].T @ rows[whole:]
    return total
