"""The products that are measured: how they lie, their sizes, their operands."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpukern import _core

# Each with its elements in 16 bytes.
_WIDTHS = {"float32": 4, "bfloat16": 8, "float16": 8, "float64": 2}
DTYPES = tuple(_WIDTHS)

# The borders of the ranges of sizes, two an octave, as csrc/device/tuned.c has them.
SIZES = tuple(sorted([64 << i for i in range(9)] + [96 << i for i in range(8)]))

_SEED = 15
# So many elements are drawn; a longer operand repeats them.
_DRAWN = 2**22


@dataclass(frozen=True)
class Way:
    """How the operands of a product lie: transposed or not, and rows of whole 16 bytes or not."""

    dtype: str
    a_transposed: bool
    b_transposed: bool
    aligned: bool

    @property
    def text(self) -> str:
        """As a line of the table has it."""
        lie = "nt"[self.a_transposed] + "nt"[self.b_transposed]
        return f"{self.dtype} {lie} {16 if self.aligned else 1}"

    @property
    def width(self) -> int:
        """Elements in 16 bytes."""
        return _WIDTHS[self.dtype]

    def has(self, m: int, n: int, k: int) -> bool:
        """Whether a product of these sizes, packed, is one of those that are measured for it.

        One whose rows alone are of whole 16 bytes, and not those along K, is neither aligned nor
        ragged.
        """
        rows = (m if self.a_transposed else k, k if self.b_transposed else n, n)
        whole = not any(size % self.width for size in rows)
        return whole and k % self.width == 0 if self.aligned else not whole


@dataclass(frozen=True)
class Product:
    """A product to be measured."""

    way: Way
    m: int
    n: int
    k: int


class Operands:
    """Device memory that the operands of every product lie in, normal random numbers."""

    def __init__(self) -> None:
        few = np.random.default_rng(_SEED).standard_normal(_DRAWN)
        self._normal = few.astype(np.float32)
        self._drawn: dict[str, Any] = {}
        self._held: dict[tuple[str, int], Any] = {}

    def of(self, product: Product) -> tuple[Any, Any, Any]:
        """The operands and the result; what other dtypes hold is given up where memory is short."""
        try:
            return self._of(product)
        except MemoryError:
            self._drawn.clear()
            self._held.clear()
        return self._of(product)

    def _of(self, product: Product) -> tuple[Any, Any, Any]:
        way, m, n, k = product.way, product.m, product.n, product.k
        a, b, c = (self._room(way.dtype, i, size) for i, size in enumerate((m * k, k * n, m * n)))
        return (
            a.reshape(k, m).T if way.a_transposed else a.reshape(m, k),
            b.reshape(n, k).T if way.b_transposed else b.reshape(k, n),
            c.reshape(m, n),
        )

    def _room(self, dtype: str, number: int, count: int) -> Any:
        """So many elements; memory that is too short is given back, and taken longer."""
        held = self._held.get((dtype, number))
        if held is None or held.size < count:
            held = self._held[dtype, number] = None
            drawn = self._numbers(dtype)
            held = _core.empty((count,), dtype)
            for first in range(0, count, _DRAWN):
                held[first : first + _DRAWN] = drawn[: min(_DRAWN, count - first)]
            self._held[dtype, number] = held
        return held[:count]

    def _numbers(self, dtype: str) -> Any:
        if dtype not in self._drawn:
            self._drawn[dtype] = _core.to_device(self._normal).astype(dtype)
        return self._drawn[dtype]
