"""What is compared: an operation, shapes and a dtype, with inputs whose right answer is known.

Each contender answers twice. The `random` inputs show how accurate it is. The `exact` inputs are
whole numbers chosen so that every order of summation in the dtype's accumulator gives the same
bits: a skipped tail, a lower precision (tf32 keeps 11 bits, these have 12) or a result kept from an
earlier call is then simply a different number, where a bound for random inputs would have to let
it pass.
"""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern import bounds
from gpukern.catalogue import DTYPES, dtype_name

Array = npt.NDArray[Any]
OPERATIONS = ("add", "sum", "matmul", "transpose")

# What each operation takes.
DTYPES_OF = {
    "add": DTYPES,
    "sum": ("float32", "float64", "float16", "bfloat16", "int32", "int64"),
    "matmul": ("float32", "float64", "float16", "bfloat16"),
    "transpose": DTYPES,
}

# Sums of whole numbers stay exact while they are under this.
_EXACT = {"float32": 2**24, "float64": 2**53, "float16": 65504, "bfloat16": 2**24}
# A random sum of n terms of size m stays under this many times m * sqrt(n): 8 / sqrt(1/3) sigma.
_SPREAD = 8
_TAIL = 64


@dataclass(frozen=True)
class Case:
    """An operation on operands of these shapes and this dtype."""

    op: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str

    @property
    def size(self) -> str:
        """The size as a reader writes it: "1000x1000", for matmul "m x k x n" when not square."""
        if self.op == "matmul":
            (m, k), (_, n) = self.shapes
            return f"{m}x{n}" if m == k == n else f"{m}x{k}x{n}"
        return "x".join(map(str, self.shapes[0]))

    @property
    def count(self) -> int:
        """Elements of the first operand."""
        return math.prod(self.shapes[0])

    @property
    def result_dtype(self) -> str:
        """The dtype of the result: that of the operands, but for sums of int32."""
        return "int64" if self.op == "sum" and self.dtype == "int32" else self.dtype

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of the result; () for a sum."""
        if self.op == "add":
            return self.shapes[0]
        if self.op == "sum":
            return ()
        if self.op == "transpose":
            return self.shapes[0][::-1]
        return (self.shapes[0][0], self.shapes[1][1])

    @property
    def bytes_moved(self) -> int:
        """What a perfect kernel reads and writes."""
        elements = sum(math.prod(shape) for shape in self.shapes)
        written = math.prod(self.result_shape)
        return elements * itemsize(self.dtype) + written * itemsize(self.result_dtype)

    @property
    def operations(self) -> int:
        """Floating point operations of a matmul; 0 where moving the bytes is the work."""
        if self.op != "matmul":
            return 0
        (m, k), (_, n) = self.shapes
        return 2 * m * n * k


@dataclass(frozen=True)
class Expected:
    """The right answer, and how far from it a result may be.

    ``bound`` None asks for ``nearest`` itself, bit for bit. ``sum_of`` has the terms of a sum.
    """

    exact: Array
    nearest: Array
    bound: Array | None
    serial_bound: Array | None = None
    sum_of: Array | None = None

    @cached_property
    def ulp(self) -> Array:
        """One unit in the last place of each element.

        Where cancellation has left an element smaller than the root mean square of all, it is the
        unit of that: how accurate a sum is depends on its terms, not on what is left of them.
        """
        exact = self.exact.astype(np.float64, copy=False)
        typical = math.sqrt(float(np.mean(np.square(exact)))) if exact.size else 0.0
        _, exponent = np.frexp(np.maximum(np.abs(exact), typical))
        bits = bounds.SIGNIFICAND[dtype_name(self.nearest.dtype)]
        return np.asarray(np.ldexp(1.0, exponent - bits))

    def bound_in(self, carried: str) -> Array | None:
        """The bound of a sum that is carried in a narrower dtype than the usual one."""
        if self.sum_of is None:
            return self.bound
        terms = self.sum_of
        absolute = _absolute_sum(terms)
        name = dtype_name(self.nearest.dtype)
        bound = bounds.sum_bound(absolute, float(self.exact), terms.size, name, carried=carried)
        return np.asarray(bound)

    def distance(self, got: Array) -> tuple[float, float]:
        """The largest error of a result, absolute and in ulps."""
        if got is self.exact or not got.size:
            return 0.0, 0.0
        return self.largest(_difference(got, self.exact))

    def largest(self, difference: Array) -> tuple[float, float]:
        """The largest of some absolute errors, as it is and in ulps."""
        if not bounds.is_float(self.nearest.dtype):
            return float(np.max(difference)), 0.0
        with np.errstate(invalid="ignore"):
            return float(np.max(difference)), float(np.max(difference / self.ulp))

    @cached_property
    def nearest_distance(self) -> tuple[float, float]:
        """The same of the correctly rounded result, which most contenders return."""
        return self.distance(self.nearest)


@dataclass(frozen=True)
class Trial:
    """Inputs with their right answer."""

    name: str
    inputs: tuple[Array, ...]
    expected: Expected


@dataclass(frozen=True)
class Verdict:
    """``error`` is the largest absolute error, ``ulps`` the largest in units in the last place.

    ``detail`` says what is wrong, or is empty.
    """

    error: float
    detail: str = ""
    ulps: float = 0.0

    @property
    def right(self) -> bool:
        """Whether the result is within its bound everywhere."""
        return not self.detail


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of that name; bfloat16 is ml_dtypes's."""
    if name == "bfloat16":
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return found
    return np.dtype(name)


def itemsize(name: str) -> int:
    """Bytes of one element."""
    return 2 if name == "bfloat16" else np.dtype(name).itemsize


def poison(case: Case) -> Array:
    """An array for the result, full of what no right result has: NaN, or the least integer."""
    dtype = numpy_dtype(case.result_dtype)
    if bounds.is_float(case.result_dtype):
        return np.full(case.result_shape, np.nan, dtype)
    return np.full(case.result_shape, np.iinfo(dtype).min, dtype)


def make_case(op: str, size: int | Sequence[int], dtype: npt.DTypeLike = "float32") -> Case:
    """A case from a size: n, or (rows, columns), or for matmul (m, k, n); for sum any shape.

    Raises ValueError for an unknown operation or dtype, and for a size that does not fit.
    """
    if op not in OPERATIONS:
        raise ValueError(f"unknown operation {op!r}; there are {', '.join(OPERATIONS)}")
    given = (size,) if isinstance(size, int) else tuple(size)
    if not given or min(given) < 1:
        raise ValueError(f"{op}: a size is made of positive numbers, not {size!r}")
    return Case(op, _shapes(op, given), dtype_name(dtype))


def _shapes(op: str, given: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    if op == "sum":
        return (given,)
    square = given * 2 if len(given) == 1 else given
    if op == "matmul":
        m, k, n = given * 3 if len(given) == 1 else (*given, given[-1])[:3]
        if len(given) > 3:
            raise ValueError(f"matmul: a size is n or (m, k, n), not {given}")
        return (m, k), (k, n)
    if op == "transpose":
        if len(square) != 2:
            raise ValueError(f"transpose: a size is n or (rows, columns), not {given}")
        return (square,)
    return square, square


def make_trials(case: Case, seed: int) -> tuple[Trial, Trial]:
    """Fresh inputs: the same case and seed always give the same ones."""
    label = f"{case.op} {case.shapes} {case.dtype}".encode()
    rng = np.random.default_rng([seed, zlib.crc32(label)])
    return _trial(case, "random", _random(case, rng)), _trial(case, "exact", _whole(case, rng))


def _random(case: Case, rng: np.random.Generator) -> tuple[Array, ...]:
    return tuple(_random_array(shape, case.dtype, rng) for shape in case.shapes)


def _random_array(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Array:
    target = numpy_dtype(dtype)
    if not bounds.is_float(dtype):
        limits = np.iinfo(target)
        return rng.integers(limits.min, limits.max, shape, target, endpoint=True)
    # Normal, since uniform numbers are multiples of one step: adding two would round nothing.
    drawn = rng.standard_normal(shape, np.float64 if dtype == "float64" else np.float32)
    return drawn.astype(target, copy=False)


def _whole(case: Case, rng: np.random.Generator) -> tuple[Array, ...]:
    if not bounds.is_float(case.dtype) or case.op in ("add", "transpose"):
        return _random(case, rng)
    if case.op == "sum":
        return (_whole_terms(case, rng),)
    return _whole_factors(case, rng)


def _largest(dtype: str, terms: int) -> int:
    """The largest whole number of which so many can be added up without rounding."""
    room = int(_EXACT[dtype] / (_SPREAD * math.sqrt(terms)))
    precision = 12 if dtype == "float32" else min(bounds.SIGNIFICAND[dtype], 30)
    widest: int = 2**precision - 1
    return max(1, min(room, widest))


def _whole_terms(case: Case, rng: np.random.Generator) -> Array:
    largest = _largest(case.dtype, case.count)
    values = rng.integers(1, largest, case.count, np.int32, endpoint=True)
    values *= rng.integers(0, 1, case.count, np.int8, endpoint=True) * np.int8(2) - np.int8(1)
    # All of one sign, so that leaving out any part of the tail shows.
    values[-_TAIL:] = np.abs(values[-_TAIL:])
    return values.reshape(case.shapes[0]).astype(numpy_dtype(case.dtype))


def _whole_factors(case: Case, rng: np.random.Generator) -> tuple[Array, ...]:
    """Wide numbers against +-1, on either side, so that no product and no sum is rounded."""
    (m, k), (_, n) = case.shapes
    largest = _largest(case.dtype, k)
    a = rng.integers(0, 1, (m, k), np.int32, endpoint=True) * 2 - 1
    b = rng.integers(0, 1, (k, n), np.int32, endpoint=True) * 2 - 1
    half = (k + 1) // 2
    a[:, :half] *= rng.integers(1, largest, (m, half), np.int32, endpoint=True)
    b[half:] *= rng.integers(1, largest, (k - half, n), np.int32, endpoint=True)
    dtype = numpy_dtype(case.dtype)
    return a.astype(dtype), b.astype(dtype)


def _trial(case: Case, name: str, inputs: tuple[Array, ...]) -> Trial:
    if case.op == "transpose":
        exact: Array = inputs[0].T
        return Trial(name, inputs, Expected(exact, exact, None))
    if not bounds.is_float(case.dtype):
        whole = inputs[0] + inputs[1] if case.op == "add" else np.asarray(np.sum(inputs[0]))
        return Trial(name, inputs, Expected(whole, whole, None))
    exact = _oracle(case, inputs)
    with np.errstate(over="ignore"):
        nearest = exact.astype(numpy_dtype(case.result_dtype))
    if name == "exact" or case.op == "add":
        terms = inputs[0] if case.op == "sum" else None
        return Trial(name, inputs, Expected(exact, nearest, None, sum_of=terms))
    return Trial(name, inputs, _bounded(case, inputs, exact, nearest))


def _oracle(case: Case, inputs: tuple[Array, ...]) -> Array:
    """The result in float64."""
    if case.op == "sum":
        return np.asarray(np.sum(inputs[0], dtype=np.float64))
    a, b = (x.astype(np.float64, copy=False) for x in inputs)
    return np.asarray(a + b if case.op == "add" else a @ b)


def _bounded(case: Case, inputs: tuple[Array, ...], exact: Array, nearest: Array) -> Expected:
    if case.op == "sum":
        absolute = _absolute_sum(inputs[0])
        tree, serial = (
            np.asarray(bounds.sum_bound(absolute, float(exact), case.count, case.dtype, serial))
            for serial in (False, True)
        )
        return Expected(exact, nearest, tree, serial, inputs[0])
    a, b = (np.abs(x.astype(np.float64)) for x in inputs)
    bound = bounds.matmul_bound(a @ b, exact, a.shape[1], case.dtype)
    return Expected(exact, nearest, bound)


def _absolute_sum(values: Array) -> float:
    """In pieces, so that a large array is not copied whole."""
    flat = values.reshape(-1)
    step = 2**22
    pieces = range(0, flat.size, step)
    return float(sum(np.sum(np.abs(flat[i : i + step]), dtype=np.float64) for i in pieces))


def check(got: Any, expected: Expected, serial: bool = False, carried: str = "") -> Verdict:
    """Whether a result is right.

    ``serial`` allows a sum for any order of its additions, ``carried`` for an accumulator of that
    dtype.
    """
    array = np.asarray(got)
    nearest = expected.nearest
    if array.shape != nearest.shape or array.dtype != nearest.dtype:
        wanted = f"{nearest.dtype} of shape {nearest.shape}"
        return Verdict(math.nan, f"{array.dtype} of shape {array.shape} in place of {wanted}")
    with np.errstate(invalid="ignore"):
        equal = np.array_equal(array, nearest)
    if equal:
        error, ulps = expected.nearest_distance
        return Verdict(error, ulps=ulps)
    bound = expected.serial_bound if serial else expected.bound
    if carried:
        bound = expected.bound_in(carried)
    return _measured(array, expected, bound)


def _difference(got: Array, exact: Array) -> Array:
    # NaN and infinity are legitimate here: they are what a wrong result may hold.
    with np.errstate(invalid="ignore", over="ignore"):
        return np.abs(got.astype(np.float64) - exact.astype(np.float64, copy=False))


def is_wrong(got: Array, expected: Expected, bound: Array | None) -> Any:
    """For each element whether it is out of its bound."""
    if bound is None:
        with np.errstate(invalid="ignore"):
            return got != expected.nearest
    return ~(_difference(got, expected.exact) <= bound)


def _measured(got: Array, expected: Expected, bound: Array | None) -> Verdict:
    difference = _difference(got, expected.exact)
    with np.errstate(invalid="ignore"):
        wrong = got != expected.nearest if bound is None else ~(difference <= bound)
    error, ulps = expected.largest(difference)
    count = int(np.count_nonzero(wrong))
    if not count:
        return Verdict(error, ulps=ulps)
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    where = f" at [{', '.join(str(int(i)) for i in at)}]" if wrong.ndim else ""
    allowed = (
        "" if bound is None else f" within {float(np.broadcast_to(bound, wrong.shape)[at]):.2g}"
    )
    share = f"{count} of {wrong.size} elements, the first" if wrong.ndim else "the sum"
    return Verdict(
        error, f"{share}{where}: {got[at]} in place of {expected.nearest[at]}{allowed}", ulps
    )
