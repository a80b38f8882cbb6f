"""Device memory that the harness owns and lends to every contender of a case.

Each region lies between guard words. All contenders work on the same inputs and the same output, so
that nobody has a better place in memory, and the harness can poison the output, change the inputs
under a contender's feet, and see what was written where nothing should be.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern import _core
from gpukern.bench.cases import bounds
from gpukern.bench.cases.pieces import in_pieces
from gpukern.bench.model.case import Case
from gpukern.bench.model.dtypes import itemsize, numpy_dtype

Array = npt.NDArray[Any]

# Bytes before and after; a multiple of 256, to which CUDA aligns allocations.
GUARD = 4096
_PATTERN = 0xA5
_WORD = 4


class Memory:
    """What ``__cuda_array_interface__`` says of a stretch of device memory; owns nothing."""

    def __init__(self, pointer: int, shape: tuple[int, ...], typestr: str) -> None:
        self.pointer = pointer
        self.shape = shape
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (pointer, False),
            "strides": None,
            "version": 3,
        }


@dataclass(frozen=True)
class Image:
    """The words of a region, guards included, as they are to be put there."""

    words: "_core.DeviceArray"
    checksum: int


class Region(Memory):
    """An array of ``shape`` and ``dtype`` between guards."""

    def __init__(self, shape: tuple[int, ...], dtype: str) -> None:
        self.dtype = dtype
        self.nbytes = math.prod(shape) * itemsize(dtype)
        padded = -(-self.nbytes // _WORD) * _WORD
        self._words = _core.empty((2 * GUARD + padded) // _WORD, "int32")
        pointer: int = self._words.__cuda_array_interface__["data"][0]
        super().__init__(pointer + GUARD, shape, _typestr(dtype))

    def reshaped(self, shape: tuple[int, ...]) -> Memory:
        """The same memory in another shape."""
        return Memory(self.pointer, shape, _typestr(self.dtype))

    def as_bits(self) -> Memory:
        """The same memory as integers of that width, for libraries that do not take bfloat16."""
        return Memory(self.pointer, self.shape, f"<i{itemsize(self.dtype)}")

    def image(self, values: Array) -> Image:
        """``values`` between guards, on the device, ready to be put into the region."""
        content = np.empty(self._words.nbytes, np.uint8)
        content[:GUARD] = content[GUARD + self.nbytes :] = _PATTERN
        flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        in_pieces(np.copyto, content[GUARD : GUARD + self.nbytes], flat)
        words = _core.to_device(content.view(np.int32))
        return Image(words, _checksum(words))

    def put(self, image: Image) -> None:
        """Overwrite all of the region, guards included."""
        _core.add(image.words, 0, out=self._words)

    def holds(self, image: Image) -> bool:
        """Whether the region and its guards are as they were put there."""
        return _checksum(self._words) == image.checksum

    def read(self) -> tuple[Array, str]:
        """What the region holds, and what is wrong with its guards, if anything is."""
        content = self._words.to_host().view(np.uint8)
        found = content[GUARD : GUARD + self.nbytes].view(numpy_dtype(self.dtype))
        before = int(np.count_nonzero(content[:GUARD] != _PATTERN))
        after = int(np.count_nonzero(content[GUARD + self.nbytes :] != _PATTERN))
        return found.reshape(self.shape), _damage(before, after)


def poison(case: Case) -> Array:
    """An array for the result, full of what no right result has: NaN, or the least integer."""
    dtype = numpy_dtype(case.result_dtype)
    if bounds.is_float(case.result_dtype):
        return np.full(case.result_shape, np.nan, dtype)
    return np.full(case.result_shape, np.iinfo(dtype).min, dtype)


def _typestr(dtype: str) -> str:
    return "<V2" if dtype == "bfloat16" else np.dtype(dtype).str


def _checksum(words: "_core.DeviceArray") -> int:
    return int(_core.sum(words).to_host())


def _damage(before: int, after: int) -> str:
    places = [
        f"{count} bytes {where} its output"
        for count, where in ((before, "before"), (after, "after"))
        if count
    ]
    return f"writes out of bounds: {' and '.join(places)}" if places else ""
