"""Eight numbers at a time in compiled code.

A compiler turns a loop into vector instructions only once it knows that no array of the loop
overlaps another, and where it cannot, it asks anew each time the loop starts. The loops over the
weights of a small network are too short for that. Here eight neighbouring numbers of an array are
one value, with the operators of a number; LLVM makes of it what the machine has: one register of
512 bits, two of 256 or four of 128, with the same results but for the rounding of fused
multiplications.

``Numbers`` are eight float64, ``Words`` eight 64-bit integers, whose ``>>`` brings in zeros, and
``Mask`` eight booleans. All of them live in compiled functions only.

Elementary functions take a few multiplications, no call and no branch. Series and ranges are such
that the truncated rest is below the rounding of float64. Errors are relative, as measured by the
tests.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir as _ir
from numba import extending as _extending
from numba import types as _types

from dpmc.numerics.compiled import njit

# What Numba is made of is not annotated.
extending: Any = _extending
ir: Any = _ir
types: Any = _types

WIDTH = 8
# A product and the sum that it goes into may be rounded once instead of twice.
FLAGS = ("contract",)

ELEMENTS: dict[str, Any] = {
    "numbers": ir.DoubleType(),
    "words": ir.IntType(64),
    "mask": ir.IntType(1),
}
BYTES = 8


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function that is part of whatever calls it."""
    return njit(forceinline=True)(function)


def _intrinsic(function: Callable[..., Any]) -> Any:
    """Function of compiled code from one that returns its type and writes its code."""
    return extending.intrinsic(function)


def _vector(kind: Any) -> Any:
    return ir.VectorType(ELEMENTS[kind.name], WIDTH)


class LanesType(types.Type):  # type: ignore[misc]
    """The type of eight numbers, words or booleans."""


class _LanesModel(extending.models.PrimitiveModel):  # type: ignore[misc]
    """Lanes are passed on as they are, in registers."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _vector(kind))


extending.register_model(LanesType)(_LanesModel)

NUMBERS = LanesType("numbers")
WORDS = LanesType("words")
MASK = LanesType("mask")
# What a number or word beside eight of them may be: it is taken eight times.
SCALARS = {"numbers": types.float64, "words": types.int64}


def _spread(builder: Any, value: Any) -> Any:
    """Eight times a scalar."""
    kind = ir.VectorType(value.type, WIDTH)
    empty = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(first, empty, everywhere)


def _operator(function: Any, kind: Any, result: Any, build: Callable[..., Any]) -> None:
    """Let a binary operator of Python work on lanes of a kind."""
    scalar = SCALARS.get(kind.name)

    def typed(context: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lanes = [
                value if isinstance(value.type, ir.VectorType) else _spread(builder, value)
                for value in arguments
            ]
            return build(builder, *lanes)

        sides = (kind if a == kind else scalar, kind if b == kind else scalar)
        return result(*sides), code

    apply = _intrinsic(typed)

    @extending.overload(function, jit_options={"forceinline": True})  # type: ignore[untyped-decorator]
    def applied(a: Any, b: Any) -> Any:
        def call(a: Any, b: Any) -> Any:
            return apply(a, b)

        fits = kind in (a, b) and all(one == kind or _scalar(one, scalar) for one in (a, b))
        return call if fits else None


def _scalar(one: Any, scalar: Any) -> bool:
    """Whether a number may stand beside lanes: an integer also beside floats."""
    if isinstance(one, types.Integer | types.IntegerLiteral):
        return scalar is not None
    return scalar == types.float64 and isinstance(one, types.Float)


def _arithmetic(name: str) -> Callable[..., Any]:
    return lambda builder, a, b: getattr(builder, name)(a, b, flags=FLAGS)


def _plain(name: str) -> Callable[..., Any]:
    return lambda builder, a, b: getattr(builder, name)(a, b)


def _comparison(sign: str) -> Callable[..., Any]:
    return lambda builder, a, b: builder.fcmp_ordered(sign, a, b)


for _function, _name in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _operator(_function, NUMBERS, NUMBERS, _arithmetic(_name))
for _function, _name in (
    (operator.add, "add"),
    (operator.xor, "xor"),
    (operator.and_, "and_"),
    (operator.or_, "or_"),
    (operator.lshift, "shl"),
    (operator.rshift, "lshr"),
):
    _operator(_function, WORDS, WORDS, _plain(_name))
for _function, _name in ((operator.lt, "<"), (operator.gt, ">")):
    _operator(_function, NUMBERS, MASK, _comparison(_name))
_operator(operator.and_, MASK, MASK, _plain("and_"))


def _place(context: Any, builder: Any, kind: Any, array: Any, k: Any, element: Any) -> Any:
    """Pointer to eight elements of an array."""
    data = context.make_array(kind)(context, builder, array).data
    place = builder.gep(data, [k])
    return builder.bitcast(place, ir.PointerType(ir.VectorType(element, WIDTH)))


def _memory(kind: Any) -> tuple[Any, Any]:
    """Intrinsics that read lanes of a kind from an array, and that write them."""
    element = ELEMENTS[kind.name]

    def load(context: Any, array: Any, k: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, k = arguments
            place = _place(context, builder, signature.args[0], array, k, element)
            return builder.load(place, align=BYTES)

        return kind(array, types.intp), code

    def store(context: Any, array: Any, k: Any, lanes: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, k, value = arguments
            place = _place(context, builder, signature.args[0], array, k, element)
            builder.store(value, place, align=BYTES)
            return context.get_dummy_value()

        return types.none(array, types.intp, kind), code

    return _intrinsic(load), _intrinsic(store)


# ``load(array, k)`` and ``store(array, k, lanes)``: the elements k to k + 7 of a contiguous
# array of one dimension. Nothing checks that it has them.
load, store = _memory(NUMBERS)
load_words, store_words = _memory(WORDS)


@_intrinsic
def spread(context: Any, value: Any) -> Any:
    """Eight times one number."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _spread(builder, arguments[0])

    return NUMBERS(types.float64), code


@_intrinsic
def choose(context: Any, mask: Any, first: Any, second: Any) -> Any:
    """Numbers of `first` where `mask` holds, of `second` elsewhere."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    return NUMBERS(MASK, NUMBERS, NUMBERS), code


@_intrinsic
def total(context: Any, numbers: Any) -> Any:
    """Sum of eight numbers, in pairs."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        index = [ir.Constant(ir.IntType(32), k) for k in range(WIDTH)]
        parts = [builder.extract_element(arguments[0], k) for k in index]
        while len(parts) > 1:
            half = len(parts) // 2
            pairs = zip(parts[:half], parts[half:], strict=True)
            parts = [builder.fadd(a, b, flags=FLAGS) for a, b in pairs]
        return parts[0]

    return types.float64(NUMBERS), code


@_intrinsic
def root(context: Any, numbers: Any) -> Any:
    """Square roots."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_vector(NUMBERS), [_vector(NUMBERS)])
        function = builder.module.declare_intrinsic(f"llvm.sqrt.v{WIDTH}f64", (), kind)
        return builder.call(function, arguments)

    return NUMBERS(NUMBERS), code


def _conversion(name: str, source: Any, target: Any) -> Any:
    def convert(context: Any, lanes: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return getattr(builder, name)(arguments[0], _vector(target))

        return target(source), code

    return _intrinsic(convert)


# Whole numbers and words of the same value; numbers and words of the same bits.
to_numbers = _conversion("sitofp", WORDS, NUMBERS)
to_words = _conversion("fptosi", NUMBERS, WORDS)
numbers_of_bits = _conversion("bitcast", WORDS, NUMBERS)
bits_of_numbers = _conversion("bitcast", NUMBERS, WORDS)


MANTISSA, EXPONENT = 52, 1023
LOG2_E = 1.0 / math.log(2.0)
# ln 2 = LN2_HIGH + LN2_LOW; the first has 32 bits, so that its product with an exponent is exact.
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10

# Mills' ratio: see below. (1 + t) R(t) as a polynomial in (t - 5) / (t + 5), interpolated at 37
# Chebyshev nodes with 40 digits.
M0, M1, M2, M3 = 1.1568486282918946, -0.22948753825211315, 0.07778159886873769, 0.0250721793016388
M4, M5, M6, M7 = -0.0661776007790963, 0.0615050458401865, -0.03802659218584139, 0.01634823128102938
M8, M9 = -0.004201290329187307, 1.9530638370790786e-05
M10, M11 = 0.00045704392357953655, -0.0001343742785571135
M12, M13 = -2.480583845192319e-05, 2.270961270923768e-05
M14, M15 = -1.7633239265736722e-07, -3.2772876332088646e-06
M16, M17 = 3.205431665258954e-07, 4.919962331478334e-07
M18, M19 = -6.58897449110893e-08, -7.758520236786298e-08
M20, M21 = 9.092476134019043e-09, 1.1032071151574147e-08
M22, M23 = -7.073898575561392e-10, -9.564832934712206e-10

# Bits of sqrt(1/2), and of 1 less these.
ROOT_HALF_BITS = 0x3FE6A09E667F3BCD
SHIFT_BITS = 0x3FF0000000000000 - ROOT_HALF_BITS
FRACTION_BITS = (1 << MANTISSA) - 1


@inlined
def exponential(x: Any) -> Any:
    """Value of exp(x) for x in [-700, 0]: 2^n times a Taylor series on [-ln(2)/2, ln(2)/2]."""
    n = to_words(x * LOG2_E - 0.5)
    whole = to_numbers(n)
    r = (x - whole * LN2_HIGH) - whole * LN2_LOW
    p = r * (1 / 479001600) + 1 / 39916800
    p = p * r + 1 / 3628800
    p = p * r + 1 / 362880
    p = p * r + 1 / 40320
    p = p * r + 1 / 5040
    p = p * r + 1 / 720
    p = p * r + 1 / 120
    p = p * r + 1 / 24
    p = p * r + 1 / 6
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * numbers_of_bits((n + EXPONENT) << MANTISSA)


@inlined
def logarithm(x: Any) -> Any:
    """Ln(x) for normal x > 0: of 2^n m with m in [sqrt(1/2), sqrt(2)).

    ln m = 2 artanh((m - 1) / (m + 1)), whose series converges fast: the square of that ratio
    is at most 0.0295.
    """
    bits = bits_of_numbers(x) + SHIFT_BITS
    n = to_numbers(bits >> MANTISSA) - EXPONENT
    m = numbers_of_bits((bits & FRACTION_BITS) + ROOT_HALF_BITS)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = z * (1 / 17) + 1 / 15
    p = p * z + 1 / 13
    p = p * z + 1 / 11
    p = p * z + 1 / 9
    p = p * z + 1 / 7
    p = p * z + 1 / 5
    p = p * z + 1 / 3
    p = p * z + 1.0
    return n * LN2_HIGH + (2.0 * s * p + n * LN2_LOW)


@inlined
def circle(u: Any) -> Any:
    """Cos and sin of 2 pi u for u in [-1/2, 1/2]; the error is absolute.

    Taylor series at a quarter of the angle, which is doubled twice.
    """
    x = (0.5 * math.pi) * u
    z = x * x
    s = z * (1 / 1307674368000) * -1.0 + 1 / 6227020800
    s = s * z - 1 / 39916800
    s = s * z + 1 / 362880
    s = s * z - 1 / 5040
    s = s * z + 1 / 120
    s = s * z - 1 / 6
    s = s * z + 1.0
    s = s * x
    c = z * (1 / 20922789888000) - 1 / 87178291200
    c = c * z + 1 / 479001600
    c = c * z - 1 / 3628800
    c = c * z + 1 / 40320
    c = c * z - 1 / 720
    c = c * z + 1 / 24
    c = c * z - 0.5
    c = c * z + 1.0
    s, c = 2.0 * s * c, 1.0 - 2.0 * s * s
    return 1.0 - 2.0 * s * s, 2.0 * s * c


@inlined
def mills(t: Any) -> Any:
    """Mills' ratio R(t) = (1 - Phi(t)) / phi(t) of the normal distribution, for t >= 0.

    ``(1 + t) R(t)`` is smooth in ``(t - 5) / (t + 5)`` on all of [-1, 1]
    [Shepherd and Laframboise 1981].
    """
    y = (t - 5.0) / (t + 5.0)
    p = y * M23 + M22
    p = p * y + M21
    p = p * y + M20
    p = p * y + M19
    p = p * y + M18
    p = p * y + M17
    p = p * y + M16
    p = p * y + M15
    p = p * y + M14
    p = p * y + M13
    p = p * y + M12
    p = p * y + M11
    p = p * y + M10
    p = p * y + M9
    p = p * y + M8
    p = p * y + M7
    p = p * y + M6
    p = p * y + M5
    p = p * y + M4
    p = p * y + M3
    p = p * y + M2
    p = p * y + M1
    p = p * y + M0
    return p / (1.0 + t)
