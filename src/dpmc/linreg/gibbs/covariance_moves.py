"""Moves of the sums of all nodes together with the covariance G of a row.

Given G the sums T_j follow it to within 1 / sqrt(n), and G follows the sums: where noise
hides them, updating one given the other is a walk of such small steps. Transforming rows by
w -> K w takes T_j to K T_j K' and G to K G K', and leaves the distribution of T_j given G as it
is: what changes is the prior of G and the density of the noise, which need not be close to before.

K is I + t c r' with r'c = 0, or I + (exp(t) - 1) c r' with r'c = 1: a group with parameter t,
so that t may be drawn with respect to its Haar measure [Liu and Sabatti 2000], here by slice
sampling [Neal 2003]. The density of the noise is a polynomial of degree four in t or in
exp(t) - 1; once its coefficients are known, trying a t costs nothing per node.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmc.linreg.gibbs.latent_sums import ReleasedSums
from dpmc.numerics.simd import WIDTH, inlined, load, spread, store, total
from dpmc.numerics.small_matrices import cholesky, compiled, gram, multiply, spectrum
from dpmc.numerics.small_matrices import solve_lower_matrix as solve_lower
from dpmc.types import Array

# Rows before all nodes: c, r, and sum_i V_ik c_i^2 for each k, where V is one over the variance of
# the noise, halved off the diagonal.
C, R, SQUARES, NUM_COMMON = range(4)
# Matrices before all nodes, after these rows: V, V_ik c_i and V_ik c_i c_k.
WEIGHT, HALF, WHOLE, NUM_WEIGHTS = range(4)
# Matrices of a node: T_j, and what was released less T_j. After them the row t.
SUMS, RESIDUAL, NUM_MATRICES = range(3)


class LatentNodes(NamedTuple):
    """Room for what moves of the sums know of the nodes."""

    num: int
    size: int  # p
    width: int  # of a padded row
    room: Any  # (rows * width,)


@compiled
def latent_nodes(released: Any, sums: Any) -> LatentNodes:
    """Copy the sums of all nodes, shape (J, p, p), and the noise on them."""
    num, size = sums.shape[0], sums.shape[1]
    width = (size + WIDTH - 1) // WIDTH * WIDTH
    rows = NUM_COMMON + NUM_WEIGHTS * size + num * (NUM_MATRICES * size + 1)
    nodes = LatentNodes(num, size, width, np.zeros(rows * width))
    for i in range(size):
        for k in range(size):
            weight = 1.0 / released.variances[i, k]
            at = weights(nodes, WEIGHT) + i * width + k
            nodes.room[at] = weight if i == k else 0.5 * weight
            for j in range(num):
                at = matrix(nodes, j, SUMS) + i * width + k
                nodes.room[at] = sums[j, i, k]
                at = matrix(nodes, j, RESIDUAL) + i * width + k
                nodes.room[at] = released.noisy[j, i, k] - sums[j, i, k]
    return nodes


@compiled
def copy_sums(nodes: Any, sums: Any) -> None:
    """Write the sums of all nodes."""
    for j in range(nodes.num):
        for i in range(nodes.size):
            for k in range(nodes.size):
                sums[j, i, k] = nodes.room[matrix(nodes, j, SUMS) + i * nodes.width + k]


@inlined
def common(nodes: Any, row: int) -> Any:
    """Place of a row that all nodes share."""
    return row * nodes.width


@inlined
def weights(nodes: Any, which: int) -> Any:
    """Place of a matrix that all nodes share."""
    return (NUM_COMMON + which * nodes.size) * nodes.width


@inlined
def matrix(nodes: Any, j: int, which: int) -> Any:
    """Place of a matrix of a node, or, after the last, of its row t."""
    before = NUM_COMMON + NUM_WEIGHTS * nodes.size + j * (NUM_MATRICES * nodes.size + 1)
    return (before + which * nodes.size) * nodes.width


@compiled
def aim(nodes: Any, c: Any, r: Any) -> None:
    """Set c and r of the next move, and what follows from them."""
    room, width = nodes.room, nodes.width
    for i in range(nodes.size):
        room[common(nodes, C) + i], room[common(nodes, R) + i] = c[i], r[i]
    for q in range(0, width, WIDTH):
        across = load(room, common(nodes, C) + q)
        squares = spread(0.0)
        for i in range(nodes.size):
            at, along = i * width + q, room[common(nodes, C) + i]
            half = load(room, weights(nodes, WEIGHT) + at) * along
            store(room, weights(nodes, HALF) + at, half)
            store(room, weights(nodes, WHOLE) + at, half * across)
            squares = squares + half * along
        store(room, common(nodes, SQUARES) + q, squares)


@inlined
def turn(nodes: Any, j: int) -> float:
    """Store t = T_j r; return r't."""
    room, size, lanes = nodes.room, nodes.size, spread(0.0)
    turned = matrix(nodes, j, NUM_MATRICES)
    for q in range(0, nodes.width, WIDTH):
        row = spread(0.0)
        for i in range(size):
            at = matrix(nodes, j, SUMS) + i * nodes.width + q
            row = row + load(room, at) * room[common(nodes, R) + i]
        store(room, turned + q, row)
        lanes = lanes + row * load(room, common(nodes, R) + q)
    return float(total(lanes))


@compiled
def noise_polynomial(nodes: Any, out: Any) -> None:
    """Write how the log-density of all noise changes with s.

    The noise on an entry becomes e - s f - s^2 g with f = c_i t_k + t_i c_k and g = r't c_i c_k:
    its log-density is minus V / 2 times the square of that, over all i and k.

    `nodes`: aimed; their rows t are overwritten. `out`, shape (5,): overwritten with the
    coefficients of 1, s, ..., s^4, and with 0 for the first.
    """
    room = nodes.room
    one, two, three, four, fourth = 0.0, 0.0, 0.0, 0.0, spread(0.0)
    for q in range(0, nodes.width, WIDTH):
        c = load(room, common(nodes, C) + q)
        fourth = fourth + load(room, common(nodes, SQUARES) + q) * c * c
    last = total(fourth)
    for j in range(nodes.num):
        square, turned = turn(nodes, j), matrix(nodes, j, NUM_MATRICES)
        # Sums of V e f / 2, V e g / r't, V f^2 / 2 and V f g / (2 r't).
        on_first, on_second = spread(0.0), spread(0.0)
        first_square, product = spread(0.0), spread(0.0)
        for q in range(0, nodes.width, WIDTH):
            pull, spin = spread(0.0), spread(0.0)
            for i in range(nodes.size):
                at = i * nodes.width + q
                noise = load(room, matrix(nodes, j, RESIDUAL) + at)
                pull = pull + load(room, weights(nodes, HALF) + at) * noise
                spin = spin + load(room, weights(nodes, WHOLE) + at) * room[turned + i]
            t, c = load(room, turned + q), load(room, common(nodes, C) + q)
            own = load(room, common(nodes, SQUARES) + q) * t
            on_first = on_first + pull * t
            on_second = on_second + pull * c
            first_square = first_square + (spin + own) * t
            product = product + own * c
        one += 2.0 * total(on_first)
        two += square * total(on_second) - total(first_square)
        three -= 2.0 * square * total(product)
        four -= 0.5 * square * square * last
    out[0], out[1], out[2], out[3], out[4] = 0.0, one, two, three, four


@compiled
def turn_sums(nodes: Any, s: float) -> None:
    """Replace T_j by K T_j K', for the t that :func:`noise_polynomial` has left."""
    room, size, width = nodes.room, nodes.size, nodes.width
    for j in range(nodes.num):
        turned, square = matrix(nodes, j, NUM_MATRICES), 0.0
        for i in range(size):
            square += room[turned + i] * room[common(nodes, R) + i]
        half = 0.5 * s * s * square
        for q in range(0, width, WIDTH):
            c = load(room, common(nodes, C) + q)
            store(room, turned + q, load(room, turned + q) * s + c * half)
        for q in range(0, width, WIDTH):
            c, u = load(room, common(nodes, C) + q), load(room, turned + q)
            for i in range(size):
                change = u * room[common(nodes, C) + i] + c * room[turned + i]
                at = matrix(nodes, j, SUMS) + i * width + q
                store(room, at, load(room, at) + change)
                at = matrix(nodes, j, RESIDUAL) + i * width + q
                store(room, at, load(room, at) - change)


# First width of a bracket, and how often it may grow or shrink.
BRACKET = 1.0
MOST_STEPS = 50


class Forms(NamedTuple):
    """Products u'Mu of a symmetric matrix with the vectors of a :class:`Line`."""

    h: float  # h'Mh, h the last column of H
    r: float
    image: float
    h_r: float
    h_image: float
    r_image: float


class Line(NamedTuple):
    """One family of K at a state of the chain: what the density of t depends on.

    The inverse of K G K' is (I - s r c') H (I - s c r') with H that of G: what the prior reads of
    it are polynomials in s, whose coefficients are products with h, r and H c, without their last
    entries where a matrix or a vector of the prior of d features stands.
    """

    size: int  # p
    scales: bool  # Whether r'c = 1 and K = I + (exp(t) - 1) c r'
    noise: Array  # (5,): from :func:`dpmc.linreg.gibbs.covariance_moves.noise_polynomial`
    length: float  # c'H c
    # last, r_last and image_last: last entries of h, r and H c.
    last: float
    r_last: float
    image_last: float
    trace: float  # tr(Lambda H) over the features
    # scale, precision: of Lambda, and of the precision of theta.
    scale: Forms
    precision: Forms
    # h_shift, r_shift and image_shift: products with the precision of theta times its mean.
    h_shift: float
    r_shift: float
    image_shift: float


def directions(released: ReleasedSums) -> tuple[Array, Array]:
    """Vectors c and r of moves: a basis, and its dual, in rows, shape (p, p) each.

    Eigenvectors of the sum of all that was released, scaled by the roots of their
    eigenvalues, which are raised to the noise. They depend on no state of a chain.
    """
    values, vectors = spectrum(released.noisy.sum(axis=0))
    least = math.sqrt(released.variances.max() * len(released.counts))
    lengths = np.sqrt(np.maximum(values, least))
    return np.ascontiguousarray((vectors * lengths).T), np.ascontiguousarray((vectors / lengths).T)


@compiled
def inverse(matrix: Any, work: Any, out: Any) -> bool:
    """Write the inverse of a positive definite matrix; return False if it is not that."""
    if not cholesky(matrix, work):
        return False
    root = np.zeros(matrix.shape)
    for i in range(matrix.shape[0]):
        root[i, i] = 1.0
    solve_lower(work, root)
    gram(root, out)
    return True


@compiled
def forms_of(matrix: Any, h: Any, r: Any, image: Any) -> Forms:
    """Products of a matrix of d rows with the first d entries of three vectors."""
    h_h, r_r, i_i, h_r, h_i, r_i = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(matrix.shape[0]):
        on_h, on_r, on_image = 0.0, 0.0, 0.0
        for k in range(matrix.shape[0]):
            on_h += matrix[i, k] * h[k]
            on_r += matrix[i, k] * r[k]
            on_image += matrix[i, k] * image[k]
        h_h += h[i] * on_h
        r_r += r[i] * on_r
        i_i += image[i] * on_image
        h_r += h[i] * on_r
        h_i += h[i] * on_image
        r_i += r[i] * on_image
    return Forms(h_h, r_r, i_i, h_r, h_i, r_i)


@compiled
def line_of(
    precision: Any, image: Any, c: Any, r: Any, scales: bool, noise: Any, beliefs: Any
) -> Line:
    """Family of K, with `precision` = H and `image` = H c."""
    d, h = c.size - 1, precision[c.size - 1]
    trace, length = 0.0, c[d] * image[d]
    h_shift, r_shift, image_shift = 0.0, 0.0, 0.0
    for i in range(d):
        length += c[i] * image[i]
        h_shift += h[i] * beliefs.shift[i]
        r_shift += r[i] * beliefs.shift[i]
        image_shift += image[i] * beliefs.shift[i]
        for k in range(d):
            trace += beliefs.scale[i, k] * precision[i, k]
    scale = forms_of(beliefs.scale, h, r, image)
    form = forms_of(beliefs.precision, h, r, image)
    last, shifts = (h[d], r[d], image[d]), (h_shift, r_shift, image_shift)
    return Line(c.size, scales, noise, length, *last, trace, scale, form, *shifts)


@compiled
def turn_precision(image: Any, length: float, r: Any, s: float, precision: Any) -> None:
    """Replace H by (I - s r c') H (I - s c r'), with `image` = H c and `length` = c'H c."""
    for i in range(r.size):
        row = s * (s * length * r[i] - image[i])
        for k in range(r.size):
            precision[i, k] += row * r[k] - s * r[i] * image[k]


@compiled
def form_at(forms: Any, a: float, b: float) -> float:
    """V'Mv for v = h + a r + b H c."""
    value = forms.h + a * a * forms.r + b * b * forms.image
    return float(value + 2.0 * (a * forms.h_r + b * forms.h_image + a * b * forms.r_image))


@compiled
def log_prior(line: Any, s: float, log_size: float, beliefs: Any) -> float:
    """Log-density of the prior with respect to G, up to a constant.

    -inf where H has lost its positive diagonal to rounding.

    Parameters
    ----------
    line : Line
        Where H, the inverse of G, is turned.
    s : float
        How far.
    log_size : float
        log |G|, up to a constant.
    """
    d = line.size - 1
    # The last column of H becomes h + a r + b H c.
    a, b = s * (s * line.length * line.r_last - line.image_last), -s * line.r_last
    last = line.last + a * line.r_last + b * line.image_last
    if not last > 0.0:
        return -math.inf
    # theta = -h / H_pp, and the inverse of Sx is H_xx - h h' / H_pp, with h = H_xp.
    linear = line.h_shift + a * line.r_shift + b * line.image_shift
    form = form_at(line.precision, a, b)
    trace = line.trace + s * (s * line.length * line.scale.r - 2.0 * line.scale.r_image)
    trace -= form_at(line.scale, a, b) / last
    distance = beliefs.square + (2.0 * linear + form / last) / last
    # |Sx| = |G| / sigma_y^2, and dG = |Sx| d(Sx, theta, sigma_y^2).
    log_last = math.log(last)
    value = -0.5 * trace - (0.5 * (beliefs.dof + d + 1) + 1.0) * (log_size + log_last)
    value += (beliefs.shape + 1.0) * log_last - beliefs.rate * last
    if beliefs.conjugate:
        return float(value + 0.5 * d * log_last - 0.5 * distance * last)
    return float(value - 0.5 * distance)


@compiled
def back(t: float, scales: bool) -> float:
    """S with K^-1 = I - s c r'."""
    return -math.expm1(-t) if scales else t


@compiled
def log_density(t: float, line: Any, beliefs: Any) -> float:
    """Log-density of t, up to a constant."""
    s = math.expm1(t) if line.scales else t
    a = line.noise
    noise = s * (a[1] + s * (a[2] + s * (a[3] + s * a[4])))
    # |K| = exp(t) where it scales: (p + 1) log |K| is the Jacobian of G -> K G K'.
    log_size = t if line.scales else 0.0
    prior = log_prior(line, back(t, line.scales), 2.0 * log_size, beliefs)
    return float(prior + (line.size + 1) * log_size + noise)


@compiled
def draw_parameter(line: Any, beliefs: Any, rng: Any) -> float:
    """Draw t by slice sampling from 0, stepping out; 0 if no point was accepted."""
    # The level of the slice: the log-density at the current point less an exponential variable.
    level = log_density(0.0, line, beliefs) + math.log1p(-rng.random())
    # A bracket placed at random around 0, whose ends step out until they are off the slice.
    low = -BRACKET * rng.random()
    high = low + BRACKET
    for _ in range(MOST_STEPS):
        if not log_density(low, line, beliefs) > level:
            break
        low -= BRACKET
    for _ in range(MOST_STEPS):
        if not log_density(high, line, beliefs) > level:
            break
        high += BRACKET
    # Points of the bracket, which shrinks towards 0 after each that is off the slice.
    for _ in range(MOST_STEPS):
        t = low + (high - low) * rng.random()
        if log_density(t, line, beliefs) > level:
            return float(t)
        if t < 0.0:
            low = t
        else:
            high = t
    return 0.0


@compiled
def move_jointly(
    released: Any, beliefs: Any, axes: Any, num_moves: int, joint: Any, sums: Any, rng: Any
) -> float:
    """Transform all sums and G by random members of the family of K.

    Parameters
    ----------
    axes : tuple of ndarray of shape (p, p)
        From :func:`directions`.
    num_moves : int
        How many K are drawn, each with its own c and r.
    sums : ndarray of shape (J, p, p)
        Updated in place.

    Returns
    -------
    float
        The sigma_y^2 of the new G; NaN, and nothing done, where G has no inverse.
    """
    p = joint.shape[0]
    precision, work = np.empty((p, p)), np.empty((p, p))
    polynomial, image = np.empty(5), np.empty(p)
    if not inverse(joint, work, precision):
        return math.nan
    nodes = latent_nodes(released, sums)
    for _ in range(num_moves):
        first, second = int(p * rng.random()), int(p * rng.random())
        c, r = axes[0][first], axes[1][second]
        aim(nodes, c, r)
        noise_polynomial(nodes, polynomial)
        multiply(precision, c, image)
        line = line_of(precision, image, c, r, first == second, polynomial, beliefs)
        t = draw_parameter(line, beliefs, rng)
        turn_sums(nodes, math.expm1(t) if line.scales else t)
        turn_precision(image, line.length, r, back(t, line.scales), precision)
    copy_sums(nodes, sums)
    return float(1.0 / precision[p - 1, p - 1])
