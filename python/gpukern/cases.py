"""What is compared: an operation, shapes and a dtype, and how a result is judged.

Each contender answers twice. The `random` inputs show how accurate it is. The `exact` inputs are
whole numbers chosen so that every order of summation in the dtype's accumulator gives the same
bits: a skipped tail, a lower precision (tf32 keeps 11 bits, these have 12) or a result kept from an
earlier call is then simply a different number, where a bound for random inputs would have to let
it pass.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern import bounds
from gpukern.catalogue import DTYPES, dtype_name
from gpukern.pieces import in_pieces

Array = npt.NDArray[Any]

# Operations that are NumPy's ufunc of that name.
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
# Reductions of all elements, or over an axis, which is part of the name.
AXES: dict[str, int | tuple[int, ...]] = {
    "sum axis=0": 0,
    "sum axis=1": 1,
    "sum axis=0,1": (0, 1),
}
KINDS = {
    **dict.fromkeys(ELEMENTWISE, "elementwise"),
    "sum": "sum",
    **dict.fromkeys(AXES, "sum"),
    **dict.fromkeys(("max", "min", "argmax", "argmin"), "selection"),
    "dot": "dot",
    "norm": "norm",
    "matmul": "matmul",
    "transpose": "transpose",
}
OPERATIONS = tuple(KINDS)

# What each operation takes.
_FLOATS = ("float32", "float64", "float16", "bfloat16")
_SUMMED = (*_FLOATS, "int32", "int64")
_BY_KIND = {"sum": _SUMMED, "dot": _FLOATS, "norm": _FLOATS, "matmul": _FLOATS}
DTYPES_OF = {op: _BY_KIND.get(kind, DTYPES) for op, kind in KINDS.items()}


@dataclass(frozen=True)
class Case:
    """An operation on operands of these shapes and this dtype."""

    op: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str

    @property
    def kind(self) -> str:
        """What is checked alike: "elementwise", "sum", "selection", "dot", ..."""
        return KINDS[self.op]

    @property
    def axis(self) -> int | tuple[int, ...] | None:
        """The axes of a reduction; None for all elements."""
        return AXES.get(self.op)

    @property
    def reduced(self) -> int:
        """How many elements each element of the result comes from."""
        return self.count // max(math.prod(self.result_shape), 1)

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
        """The dtype of the result: that of the operands, but for sums of int32, and places."""
        widened = self.kind == "sum" and self.dtype == "int32"
        return "int64" if widened or self.op.startswith("arg") else self.dtype

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of the result; () for a reduction of all elements."""
        shape = self.shapes[0]
        if self.kind == "elementwise":
            return shape
        if self.op == "transpose":
            return shape[::-1]
        if self.op == "matmul":
            return (shape[0], self.shapes[1][1])
        return (shape[1 - self.axis],) if isinstance(self.axis, int) else ()

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

    ``bound`` None asks for ``nearest`` itself, bit for bit. ``bound_in`` gives the bound of a sum
    that is carried in another dtype than the usual one.
    """

    exact: Array
    nearest: Array
    bound: Array | None
    serial_bound: Array | None = None
    bound_in: Callable[[str], Array] | None = None

    @cached_property
    def typical(self) -> float:
        """The root mean square of the result."""
        if not self.exact.size:
            return 0.0
        squares = in_pieces(lambda x: np.sum(np.square(x, dtype=np.float64)), self.exact)
        return math.sqrt(float(np.sum(squares)) / self.exact.size)

    def _ulp(self, exact: Array, typical: float) -> Array:
        """One unit in the last place of some elements.

        Where cancellation has left an element smaller than is typical of all, it is the unit of
        that: how accurate a sum is depends on its terms, not on what is left of them.
        """
        _, exponent = np.frexp(np.maximum(np.abs(exact), typical))
        bits = bounds.SIGNIFICAND[dtype_name(self.nearest.dtype)]
        return np.asarray(np.ldexp(1.0, exponent - bits))

    def distance(self, got: Array) -> tuple[float, float]:
        """The largest error of a result, absolute and in ulps."""
        if got is self.exact or not got.size:
            return 0.0, 0.0
        rounded = bounds.is_float(self.nearest.dtype)
        typical = self.typical

        def part(found: Array, exact: Array) -> tuple[float, float]:
            difference = _difference(found, exact)
            with np.errstate(invalid="ignore"):
                ulps = np.max(difference / self._ulp(exact, typical)) if rounded else 0.0
            return float(np.max(difference)), float(ulps)

        error, ulps = np.max(in_pieces(part, got, self.exact), axis=0)
        return float(error), float(ulps)

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


def widened(values: Array) -> Array:
    """In float64; by way of float32, from where NumPy itself converts, on all cores."""
    if dtype_name(values.dtype) == "bfloat16":
        values = values.astype(np.float32)
    return values.astype(np.float64)


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
    """A case from a size: n, or (rows, columns), or for matmul (m, k, n); for a
    reduction of all elements any shape.

    Raises ValueError for an unknown operation or dtype, and for a size that does not fit.
    """
    if op not in OPERATIONS:
        raise ValueError(f"unknown operation {op!r}; there are {', '.join(OPERATIONS)}")
    given = (size,) if isinstance(size, int) else tuple(size)
    if not given or min(given) < 1:
        raise ValueError(f"{op}: a size is made of positive numbers, not {size!r}")
    return Case(op, _shapes(op, given), dtype_name(dtype))


def _shapes(op: str, given: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    if op == "dot":
        if len(given) != 1:
            raise ValueError(f"dot: a size is n, not {given}")
        return given, given
    if KINDS[op] in ("sum", "selection", "norm") and op not in AXES:
        return (given,)
    square = given * 2 if len(given) == 1 else given
    if op == "matmul":
        m, k, n = given * 3 if len(given) == 1 else (*given, given[-1])[:3]
        if len(given) > 3:
            raise ValueError(f"matmul: a size is n or (m, k, n), not {given}")
        return (m, k), (k, n)
    if op == "transpose" or op in AXES:
        if len(square) != 2:
            raise ValueError(f"{op}: a size is n or (rows, columns), not {given}")
        return (square,)
    return square, square


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
    if _equal(array, nearest):
        error, ulps = expected.nearest_distance
        return Verdict(error, ulps=ulps)
    bound = expected.serial_bound if serial else expected.bound
    if carried and expected.bound_in:
        bound = expected.bound_in(carried)
    return _measured(array, expected, bound)


def _equal(got: Array, nearest: Array) -> bool:
    def part(a: Array, b: Array) -> bool:
        # The bits first, since half types compare slowly.
        if np.array_equal(a.view(np.uint8), b.view(np.uint8)):
            return True
        with np.errstate(invalid="ignore"):
            return bool(np.all(a == b))

    return all(in_pieces(part, got, nearest))


def _difference(got: Array, exact: Array) -> Array:
    # NaN and infinity are legitimate here: they are what a wrong result may hold.
    with np.errstate(invalid="ignore", over="ignore"):
        difference: Array = np.abs(widened(got) - exact.astype(np.float64, copy=False))
        return difference


def is_wrong(got: Array, expected: Expected, bound: Array | None) -> Any:
    """For each element whether it is out of its bound."""
    if bound is None:
        with np.errstate(invalid="ignore"):
            return got != expected.nearest
    return ~(_difference(got, expected.exact) <= bound)


def _measured(got: Array, expected: Expected, bound: Array | None) -> Verdict:
    wrong = np.asarray(is_wrong(got, expected, bound))
    error, ulps = expected.distance(got)
    count = int(np.count_nonzero(wrong))
    if not count:
        return Verdict(error, ulps=ulps)
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    where = f" at [{', '.join(str(int(i)) for i in at)}]" if wrong.ndim else ""
    allowed = (
        "" if bound is None else f" within {float(np.broadcast_to(bound, wrong.shape)[at]):.2g}"
    )
    share = f"{count} of {wrong.size} elements, the first" if wrong.ndim else "the result"
    return Verdict(
        error, f"{share}{where}: {got[at]} in place of {expected.nearest[at]}{allowed}", ulps
    )
