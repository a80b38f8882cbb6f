"""What is compared: an operation on operands of some shapes and a dtype."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.model.dtypes import itemsize
from gpukern.catalogue import DTYPES, dtype_name

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
# Memory of bool cannot be filled with what no right result has.
_OTHERS = tuple(dtype for dtype in DTYPES if dtype != "bool")
DTYPES_OF = {op: _BY_KIND.get(kind, _OTHERS) for op, kind in KINDS.items()}


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


def make_case(op: str, size: int | Sequence[int], dtype: npt.DTypeLike = "float32") -> Case:
    """A case from a size: n, or (rows, columns), or for matmul (m, k, n); for a
    reduction of all elements any shape.

    Raises ValueError for an unknown operation or dtype, and for a size that does not fit.
    """
    if op not in OPERATIONS:
        raise ValueError(f"unknown operation {op!r}; there are {', '.join(OPERATIONS)}")
    try:
        given = tuple(map(index, size if isinstance(size, Sequence) else (size,)))
    except TypeError:
        given = ()
    if not given or min(given) < 1:
        raise ValueError(f"a size of {op} is made of positive whole numbers, not {size!r}")
    return Case(op, _shapes(op, given), dtype_name(dtype))


def _shapes(op: str, given: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    if op == "dot":
        if len(given) != 1:
            raise ValueError(f"a size of dot is n, not {given}")
        return given, given
    if KINDS[op] in ("sum", "selection", "norm") and op not in AXES:
        return (given,)
    square = given * 2 if len(given) == 1 else given
    if op == "matmul":
        m, k, n = given * 3 if len(given) == 1 else (*given, given[-1])[:3]
        if len(given) > 3:
            raise ValueError(f"a size of matmul is n or (m, k, n), not {given}")
        return (m, k), (k, n)
    if op == "transpose" or op in AXES:
        if len(square) != 2:
            raise ValueError(f"a size of {op} is n or (rows, columns), not {given}")
        return (square,)
    return square, square
